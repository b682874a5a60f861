//! Sign-up, login, sessions and verification links.

use super::*;
use crate::data::access::{LINKS_PER_DAY_MAX, SESSIONS_MAX, SessionLife};
use crate::sessions::IfLeaving;
use crate::vocab::secret::Secret;

const RIGHT: &str = "correct horse";

fn secret(text: &str) -> Secret {
    Secret::new(text.to_owned())
}

fn password(text: &str) -> Password {
    Password::new(secret(text)).expect("long enough")
}

fn after(minutes: i64) -> DateTime<Utc> {
    noon() + Duration::minutes(minutes)
}

impl World {
    fn sign_up(&self, address: &str) -> Token {
        let done =
            self.store.sign_up(email(address), Plan::Free, password(RIGHT), false, ATTEMPT, noon());
        assert!(self.wait(done).expect("written"), "{address} is taken");
        self.log_in(address, RIGHT, noon()).expect("the right password")
    }

    fn log_in(&self, address: &str, typed: &str, now: DateTime<Utc>) -> Option<Token> {
        self.wait(self.store.log_in(
            &email(address),
            secret(typed),
            SessionLife::Short,
            IfLeaving::Ask,
            ATTEMPT,
            now,
        ))
        .expect("written")
        .token()
    }

    fn ask_link(&self, caller: &Caller, now: DateTime<Utc>) -> VerificationLink {
        self.wait(self.store.ask_verification(caller, now)).expect("written")
    }
}

#[test]
fn sessions_survive_restarts_until_logout() {
    let world = World::new();
    let first = world.sign_up("ann@example.com");
    let ann = world.store.person(&first, after(1)).expect("a session");
    assert_eq!((ann.email.as_str(), ann.caller.plan), ("ann@example.com", Plan::Free));
    let second = world.log_in("ann@example.com", RIGHT, after(1)).expect("the right password");
    assert_ne!(first.reveal(), second.reveal(), "each session has its own id");
    let world = world.reopened();
    assert!(world.store.person(&first, after(2)).is_some(), "sessions survive a restart");
    world.wait(world.store.log_out(&first)).expect("written");
    assert!(world.store.person(&first, after(2)).is_none(), "the cookie is invalid after logout");
    assert!(world.store.person(&second, after(2)).is_some());
    world.wait(world.store.log_out(&first)).expect("a second logout does nothing");
    world.wait(world.store.log_out_everywhere(&ann.caller)).expect("written");
    assert!(world.store.person(&second, after(2)).is_none());
    let world = world.reopened();
    assert!(world.store.person(&first, after(2)).is_none(), "ended sessions stay ended");
    assert!(world.store.person(&second, after(2)).is_none());
}

#[test]
fn sessions_expire() {
    let world = World::new();
    let token = world.sign_up("ann@example.com");
    let idle = world.log_in("ann@example.com", RIGHT, noon()).expect("logged in");
    let mut at = 0;
    while at < 12 * 60 {
        assert!(world.store.person(&token, after(at)).is_some(), "{at} minutes");
        // The recorded use is applied asynchronously.
        let (from, digest) = (std::time::Instant::now(), token.digest());
        let is_noted = || {
            let state = world.store.state();
            let (_, session) = state.by_session(&digest).expect("there");
            !session.is_to_be_noted(UnixMs::from_instant(after(at)))
        };
        while !is_noted() {
            assert!(from.elapsed().as_secs() < 10, "the use at {at} minutes was not recorded");
            std::thread::yield_now();
        }
        at += 24;
    }
    assert!(world.store.person(&token, after(12 * 60)).is_none(), "sessions end after 12 hours");
    assert!(world.store.person(&idle, after(30)).is_none(), "idle");
    let world = world.reopened();
    assert!(world.store.person(&token, after(12 * 60 - 1)).is_some());
    let profile = |at| {
        let ann = world.store.person(&token, after(12 * 60 - 1)).expect("a session");
        world.store.profile(&ann.caller, after(at)).expect("there").sessions.len()
    };
    assert_eq!((profile(12 * 60 - 1), profile(12 * 60)), (1, 0));
}

#[test]
fn only_the_right_password_of_an_enabled_account_logs_in() {
    let world = World::new();
    world.sign_up("ann@example.com");
    world.store.add_account(&email("keyed@example.com"), Plan::Pro, None).expect("added");
    let hash = password(RIGHT).hash().expect("hashed");
    let disabled = email("disabled@example.com");
    world.store.add_account(&disabled, Plan::Pro, Some(hash.clone())).expect("added");
    let in_time = world.log_in("disabled@example.com", RIGHT, noon()).expect("logged in");
    world.store.disable(&disabled).expect("disabled");
    assert!(world.store.person(&in_time, noon()).is_none(), "a disabled account has no session");
    for (address, typed) in [
        ("ann@example.com", "wrong horse"),
        ("ann@example.com", ""),
        ("ann@example.com", &RIGHT.repeat(1_000)),
        ("keyed@example.com", RIGHT),
        ("unknown@example.com", RIGHT),
        ("disabled@example.com", RIGHT),
    ] {
        assert!(world.log_in(address, typed, noon()).is_none(), "{address} {typed:.20}");
    }
    assert!(
        world.log_in("ANN@example.com ", RIGHT, noon()).is_some(),
        "case and space are ignored"
    );
    assert!(matches!(
        world.store.set_password(&disabled, hash),
        Err(CommandError::Refused(Refusal::Disabled(_)))
    ));
}

#[test]
fn an_address_can_be_used_once() {
    let world = World::new();
    let token = world.sign_up("ann@example.com");
    let again = |address: &str| {
        let done =
            world.store.sign_up(email(address), Plan::Free, password(RIGHT), true, ATTEMPT, noon());
        world.wait(done).expect("written")
    };
    assert!(!again("Ann@example.com"));
    world.store.add_account(&email("bob@example.com"), Plan::Api, None).expect("added");
    assert!(!again("bob@example.com"), "also taken by an operator");
    assert!(world.store.has_account(&email("bob@example.com")));
    assert!(!world.store.has_account(&email("eve@example.com")));
    assert!(world.store.person(&token, noon()).is_some());
    // All clients sign up at once, and only one gets the address.
    let store = world.store.clone();
    let all = (0..8).map(|_| {
        let store = store.clone();
        world.runtime.spawn(async move {
            let eve = email("eve@example.com");
            let done = store.sign_up(eve, Plan::Free, password(RIGHT), true, ATTEMPT, noon());
            done.await.expect("written")
        })
    });
    let all: Vec<_> = all.collect();
    let done = all.into_iter().map(|task| world.wait(task).expect("no panic"));
    assert_eq!(done.filter(|done| *done).count(), 1);
    assert_eq!(world.store.list().len(), 3);
    drop(store);
    world.reopened();
}

#[test]
fn a_new_password_ends_all_other_sessions() {
    let world = World::new();
    let one = world.sign_up("ann@example.com");
    let other = world.log_in("ann@example.com", RIGHT, noon()).expect("logged in");
    let ann = world.store.person(&one, noon()).expect("a session").caller;
    let change = |present: &str, new: &str| {
        let new = password(new);
        world.wait(world.store.change_password(&ann, secret(present), new, ATTEMPT, noon()))
    };
    let wrong = change("wrong horse", "battery staple").expect("written");
    assert!(matches!(wrong, PasswordChange::WrongPassword));
    assert!(world.store.person(&other, noon()).is_some(), "a wrong password changes nothing");
    let PasswordChange::Done(new) = change(RIGHT, "battery staple").expect("written") else {
        panic!("the right password")
    };
    for old in [&one, &other] {
        assert!(world.store.person(old, noon()).is_none());
    }
    assert!(world.store.person(&new, noon()).is_some());
    assert!(world.log_in("ann@example.com", RIGHT, noon()).is_none());
    assert!(world.log_in("ann@example.com", "battery staple", noon()).is_some());
    // An operator sets the password.
    let hash = password("operator's own").hash().expect("hashed");
    world.store.set_password(&email("ann@example.com"), hash).expect("set");
    assert!(world.store.person(&new, noon()).is_none());
    let world = world.reopened();
    assert!(world.log_in("ann@example.com", "operator's own", noon()).is_some());
    assert!(world.log_in("ann@example.com", "battery staple", noon()).is_none());
}

#[test]
fn an_account_has_at_most_20_sessions() {
    let world = World::new();
    let first = world.sign_up("ann@example.com");
    for _ in 0..SESSIONS_MAX - 1 {
        world.log_in("ann@example.com", RIGHT, noon()).expect("logged in");
    }
    assert!(world.store.person(&first, noon()).is_some());
    let last = world.log_in("ann@example.com", RIGHT, noon()).expect("logged in");
    assert!(world.store.person(&first, noon()).is_none(), "the oldest session ended");
    let ann = world.store.person(&last, noon()).expect("a session").caller;
    let profile = world.store.profile(&ann, noon()).expect("there");
    assert_eq!(profile.sessions.len(), SESSIONS_MAX);
    world.reopened();
}

#[test]
fn alerts_are_mailed_to_verified_addresses_only() {
    let world = World::new();
    let token = world.sign_up("ann@example.com");
    let ann = world.store.person(&token, noon()).expect("a session").caller;
    assert_invalid(world.add_rule(&ann, by_email("short")), InvalidField::Channel(0));
    assert!(!world.store.profile(&ann, noon()).expect("there").is_verified);
    let VerificationLink::Made { token: first, email } = world.ask_link(&ann, noon()) else {
        panic!("no link was made before")
    };
    assert_eq!(email.as_str(), "ann@example.com");
    assert!(matches!(
        world.ask_link(&ann, noon()),
        VerificationLink::Wait(until) if until == after(1)
    ));
    let VerificationLink::Made { token: second, .. } = world.ask_link(&ann, after(1)) else {
        panic!("the pause is over")
    };
    let world = world.reopened();
    assert!(!world.store.is_good_link(&first, after(2)), "an older link is invalid");
    assert!(world.store.is_good_link(&second, after(24 * 60)));
    assert!(!world.store.is_good_link(&second, after(24 * 60 + 1)), "valid for 24 hours");
    let verify = |token, now| world.wait(world.store.verify_email(token, now)).expect("written");
    assert!(!verify(&first, after(2)) && !verify(&token, after(2)));
    assert!(!verify(&second, after(24 * 60 + 1)));
    assert!(verify(&second, after(2)));
    assert!(!verify(&second, after(2)), "once");
    assert!(matches!(world.ask_link(&ann, after(3)), VerificationLink::Verified));
    world.add_rule(&ann, by_email("short")).expect("the address is verified");
    let world = world.reopened();
    assert!(world.store.profile(&ann, noon()).expect("there").is_verified);
}

#[test]
fn verification_links_are_limited_per_day() {
    let world = World::new();
    let token = world.sign_up("ann@example.com");
    let ann = world.store.person(&token, noon()).expect("a session").caller;
    for at in 0..LINKS_PER_DAY_MAX {
        let made = world.ask_link(&ann, after(i64::from(at)));
        assert!(matches!(made, VerificationLink::Made { .. }), "{at}");
    }
    let midnight = noon() + Duration::hours(12);
    assert!(matches!(
        world.ask_link(&ann, after(60)),
        VerificationLink::Wait(until) if until == midnight
    ));
    assert!(matches!(world.ask_link(&ann, midnight), VerificationLink::Made { .. }));
}

#[test]
fn mail_channels_need_a_verified_address() {
    let world = World::new();
    let token = world.sign_up("ann@example.com");
    let ann = world.store.person(&token, noon()).expect("a session").caller;
    world.store.set_plan(&email("ann@example.com"), Plan::Pro).expect("set");
    let hook = webhook("https://hooks.example.com/x");
    let rule = NewRule { channels: vec![hook.clone()], ..by_email("hooked") };
    let rule = world.add_rule(&ann, rule).expect("a webhook needs no verified address");
    let with = |channels| RulePatch { channels: Some(channels), ..RulePatch::default() };
    assert_invalid(
        world.change_rule(&ann, rule, with(vec![hook, Channel::Email])),
        InvalidField::Channel(1),
    );
}

#[test]
fn the_default_chat_is_set_and_removed() {
    let world = World::new();
    let ann = world.account("ann@example.com", Plan::Core);
    let set = |chat: Option<&str>| {
        world.wait(world.store.set_telegram_chat(&ann, chat.map(str::to_owned)))
    };
    for bad in ["", "chat", "@a", "-", "1 2"] {
        assert_invalid(set(Some(bad)), InvalidField::ChatId);
    }
    set(Some("-1001234")).expect("a chat");
    let chat = |world: &World| world.store.profile(&ann, noon()).expect("there").telegram_chat;
    assert_eq!(chat(&world).as_deref(), Some("-1001234"));
    set(None).expect("removed");
    assert_eq!(chat(&world), None);
    set(Some("@somewhere")).expect("a chat");
    world.store.snapshot_now().expect("written");
    let world = world.reopened();
    assert_eq!(chat(&world).as_deref(), Some("@somewhere"));
}

#[test]
fn owners_issue_keys_and_see_their_usage() {
    let world = World::new();
    let ann = world.account("ann@example.com", Plan::Pro);
    let issued = world.wait(world.store.issue_own_key(&ann, noon())).expect("issued");
    assert!(issued.replaced);
    let caller = world.store.authenticate(issued.key.reveal()).expect("it works");
    world.store.charge_request(&caller, noon());
    let profile = world.store.profile(&ann, noon()).expect("there");
    assert_eq!((profile.requests_today, profile.exports_today), (1, 0));
    assert_eq!(profile.resets_at, noon() + Duration::hours(12));
    assert_eq!(profile.keys.last().expect("one").key.last4(), issued.key.reveal()[48..]);
    assert!(profile.is_verified, "addresses added by an operator are verified");
    world.store.disable(&email("ann@example.com")).expect("disabled");
    assert_not_found(world.wait(world.store.issue_own_key(&ann, noon())).map(|_| ()));
}

/// No file of the store contains a session id, a link or a password.
#[test]
fn tokens_and_passwords_are_not_stored() {
    let world = World::new();
    let session = world.sign_up("ann@example.com");
    let ann = world.store.person(&session, noon()).expect("a session").caller;
    let VerificationLink::Made { token: link, .. } = world.ask_link(&ann, noon()) else {
        panic!("no link was made before")
    };
    world.store.snapshot_now().expect("written");
    let folder = world.dir.path().join("journal");
    let mut files = 0;
    for file in std::fs::read_dir(folder).expect("a folder") {
        let bytes = std::fs::read(file.expect("an entry").path()).expect("readable");
        for text in [session.reveal(), link.reveal(), RIGHT] {
            let raw = hex::decode(text).unwrap_or_else(|_| text.as_bytes().to_vec());
            for secret in [text.as_bytes(), raw.as_slice()] {
                assert!(!bytes.windows(secret.len()).any(|window| window == secret));
            }
        }
        files += 1;
    }
    assert!(files >= 3, "segment, mark, snapshot: {files}");
}
