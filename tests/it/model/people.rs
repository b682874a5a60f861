//! People in the model: their sign-ups, their sessions, and whether their addresses are verified.

use std::sync::LazyLock;

use chrono::{DateTime, Duration, Utc};
use dropdex::accounts::{
    Attempt, Caller, CommandError, Email, IfLeaving, Password, PasswordHash, SessionLife, Token,
    VerificationLink,
};
use dropdex::vocab::day::Day;
use dropdex::vocab::plan::Plan;
use dropdex::vocab::secret::Secret;

use super::{Account, Run};

const PASSWORD: &str = "correct horse";
/// All accounts share one password, since hashing is slow.
static HASH: LazyLock<PasswordHash> = LazyLock::new(|| password().hash().expect("hashed"));

fn password() -> Password {
    Password::new(Secret::new(PASSWORD.into())).expect("long enough")
}

/// Sessions and links of an account.
#[derive(Default)]
pub struct ModelPeople {
    has_password: bool,
    /// Oldest first.
    sessions: Vec<ModelSession>,
    /// `None` once the address is verified.
    pub unverified: Option<ModelLinks>,
    chat: Option<String>,
}

struct ModelSession {
    token: Token,
    began: DateTime<Utc>,
    seen: DateTime<Utc>,
    life: SessionLife,
}

#[derive(Default)]
pub struct ModelLinks {
    newest: Option<(Token, DateTime<Utc>)>,
    on: Option<(Day, u32)>,
}

impl ModelSession {
    fn holds(&self, now: DateTime<Utc>) -> bool {
        match self.life {
            SessionLife::Short => {
                now < self.began + Duration::hours(12) && now < self.seen + Duration::minutes(30)
            }
            SessionLife::Kept => now < self.began + Duration::days(30),
        }
    }
}

impl ModelPeople {
    pub fn end_all(&mut self) {
        self.sessions.clear();
    }

    fn begin(&mut self, token: Token, life: SessionLife, now: DateTime<Utc>) {
        self.sessions.retain(|session| session.holds(now));
        if self.sessions.len() == 20 {
            self.sessions.remove(0);
        }
        self.sessions.push(ModelSession { token, began: now, seen: now, life });
    }
}

impl Run {
    pub fn sign_up(&mut self) {
        let email: Email = format!("a{}@example.com", self.rng.below(5)).parse().expect("one");
        let store = self.store();
        let is_verified = self.rng.chance(50);
        let done = store.sign_up(
            email.clone(),
            Plan::Core,
            password(),
            is_verified,
            Attempt::FIRST_VISIT,
            self.now,
        );
        let is_taken = self.model.iter().any(|account| account.email == email.as_str());
        let is_added = self.runtime.block_on(done).expect("written");
        assert_eq!(is_added, !is_taken);
        if is_added {
            self.added += 1;
            let mut account = Account::new(email.to_string(), Plan::Core);
            account.people.has_password = true;
            account.people.unverified = (!is_verified).then(ModelLinks::default);
            self.model.push(account);
            self.give_key(self.model.len() - 1);
        }
    }

    pub fn set_password(&mut self) {
        let at = self.rng.below(self.model.len());
        let set = self.store().set_password(&self.email(at), HASH.clone());
        let account = &mut self.model[at];
        match set {
            Ok(()) => {
                assert!(!account.shut);
                account.people.has_password = true;
                account.people.sessions.clear();
            }
            Err(CommandError::Refused(_)) => assert!(account.shut),
            Err(err) => panic!("{err}"),
        }
    }

    pub fn log_in(&mut self) {
        let life = if self.rng.chance(30) { SessionLife::Kept } else { SessionLife::Short };
        let at = self.rng.below(self.model.len());
        let is_right = self.rng.chance(80);
        let typed = Secret::new(if is_right { PASSWORD } else { "wrong horse" }.to_owned());
        let email = self.email(at);
        let done = self.store();
        let done = done.log_in(&email, typed, life, IfLeaving::Ask, Attempt::FIRST_VISIT, self.now);
        let token = self.runtime.block_on(done).expect("written").token();
        let account = &mut self.model[at];
        let may = is_right && account.people.has_password && !account.shut;
        assert_eq!(token.is_some(), may);
        if let Some(token) = token {
            account.people.begin(token, life, self.now);
            self.seen.log_ins += 1;
        }
    }

    /// Returns a session of any account, valid or not.
    fn some_session(&mut self) -> Option<(usize, usize)> {
        let at = self.rng.below(self.model.len());
        let count = self.model[at].people.sessions.len();
        (count > 0).then(|| (at, self.rng.below(count)))
    }

    pub fn visit(&mut self) {
        let Some((at, which)) = self.some_session() else { return };
        let (store, now) = (self.store(), self.now);
        let people = &mut self.model[at].people;
        let (token, holds) = {
            let session = &people.sessions[which];
            (session.token.clone(), session.holds(now))
        };
        let person = store.person(&token, now);
        assert_eq!(person.is_some(), holds);
        let Some(person) = person else {
            self.seen.over += 1;
            return;
        };
        if now >= people.sessions[which].seen + Duration::minutes(5) {
            people.sessions[which].seen = now;
            people.sessions.retain(|session| session.holds(now));
            // The use is written without waiting, so it must be visible in the next comparison.
            let is_noted = || {
                let profile = store.profile(&person.caller, now).expect("there");
                profile.sessions.iter().any(|it| {
                    person.session.is_some_and(|own| it.digest.is(&own)) && it.seen.instant() == now
                })
            };
            let from = std::time::Instant::now();
            while !is_noted() {
                assert!(from.elapsed().as_secs() < 30, "a use was not noted");
                std::thread::yield_now();
            }
        }
        self.compare_people(at, &person.caller);
    }

    pub fn log_out(&mut self) {
        let Some((at, which)) = self.some_session() else { return };
        let (store, everywhere) = (self.store(), self.rng.chance(20));
        let token = self.model[at].people.sessions[which].token.clone();
        // The session is only queried in that case, because a query records a use, which removes
        // expired sessions.
        let person = everywhere.then(|| store.person(&token, self.now)).flatten();
        match person.map(|person| person.caller) {
            Some(caller) => {
                self.runtime.block_on(store.log_out_everywhere(&caller)).expect("written");
                self.model[at].people.sessions.clear();
            }
            None => {
                self.runtime.block_on(store.log_out(&token)).expect("written");
                self.model[at].people.sessions.remove(which);
            }
        }
        assert!(store.person(&token, self.now).is_none());
    }

    pub fn ask_link(&mut self) {
        let Some((at, caller)) = self.someone() else { return };
        let (store, now) = (self.store(), self.now);
        let asked = self.runtime.block_on(store.ask_verification(&caller, now)).expect("written");
        let today = Day::from_instant(now).expect("a day");
        let people = &mut self.model[at].people;
        match (&mut people.unverified, asked) {
            (None, VerificationLink::Verified) => {}
            (Some(links), VerificationLink::Wait(_)) => {
                let soon =
                    links.newest.as_ref().is_some_and(|(_, it)| now < *it + Duration::minutes(1));
                assert!(soon || links.on == Some((today, 5)));
            }
            (Some(_), VerificationLink::Made { token, email }) => {
                assert_eq!(email.as_str(), self.model[at].email);
                let links = self.model[at].people.unverified.as_mut().expect("it is not");
                let before =
                    links.on.filter(|(day, _)| *day == today).map_or(0, |(_, count)| count);
                assert!(before < 5);
                links.on = Some((today, before + 1));
                links.newest = Some((token, now));
            }
            (unverified, _) => panic!("account {at}, unverified: {}", unverified.is_some()),
        }
    }

    pub fn verify(&mut self) {
        let at = self.rng.below(self.model.len());
        let account = &self.model[at];
        let newest = account.people.unverified.as_ref().and_then(|links| links.newest.clone());
        let Some((token, made)) = newest else { return };
        let is_good = !account.shut && self.now < made + Duration::hours(24);
        assert_eq!(self.store().is_good_link(&token, self.now), is_good);
        let store = self.store();
        let verified = self.runtime.block_on(store.verify_email(&token, self.now));
        assert_eq!(verified.expect("written"), is_good);
        if is_good {
            self.model[at].people.unverified = None;
            self.seen.verified += 1;
        }
    }

    pub fn set_chat(&mut self) {
        let Some((at, caller)) = self.someone() else { return };
        let chat = self.rng.maybe(30, |rng| format!("-100{}", rng.below(10)));
        let store = self.store();
        self.runtime.block_on(store.set_telegram_chat(&caller, chat.clone())).expect("set");
        self.model[at].people.chat = chat;
    }

    pub fn compare_people(&self, at: usize, caller: &Caller) {
        let (profile, people) = (self.store().profile(caller, self.now), &self.model[at].people);
        let profile = profile.expect("there");
        let found: Vec<_> = profile
            .sessions
            .iter()
            .rev()
            .map(|it| (it.began.instant(), it.seen.instant(), it.life))
            .collect();
        let kept = people.sessions.iter().filter(|it| it.holds(self.now));
        let kept: Vec<_> = kept.map(|it| (it.began, it.seen, it.life)).collect();
        assert_eq!(found, kept);
        assert_eq!(profile.is_verified, people.unverified.is_none());
        assert_eq!(profile.telegram_chat, people.chat);
    }
}
