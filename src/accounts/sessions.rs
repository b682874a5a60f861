//! Log-ins, passwords and addresses: what people do to get in and to be reached.

use chrono::{DateTime, Utc};

use super::rules::is_chat_id;
use super::{Decided, invalid};
use crate::accounts::access::{Address, LINK_AGE_MAX, LINK_PAUSE, LINKS_PER_DAY_MAX, is_younger};
use crate::accounts::event::{Event, StoredDay};
use crate::accounts::keys::StoredKey;
use crate::accounts::password::PasswordHash;
use crate::accounts::state::Account;
use crate::accounts::token::TokenDigest;
use crate::accounts::write::WriteError;
use crate::vocab::day::Day;
use crate::vocab::time::UnixMs;

/// A log-in at `now` of somebody whose password fits `verified`; told whether it came to be. It does
/// not where the account was shut or got another password since.
pub(in crate::accounts) fn log_in(
    account: &Account,
    verified: &PasswordHash,
    digest: TokenDigest,
    now: UnixMs,
) -> Decided<bool> {
    let may = !account.disabled && account.password.as_ref() == Some(verified);
    let began = Event::SessionBegan { account: account.id, digest, at: now };
    Decided { events: may.then_some(began).into_iter().collect(), answer: may }
}

/// The end of one session, if it is there.
pub(in crate::accounts) fn log_out(account: &Account, digest: &TokenDigest) -> Decided<()> {
    let ended = |_| Event::SessionEnded { account: account.id, digest: *digest };
    Decided { events: account.access.session(digest).map(ended).into_iter().collect(), answer: () }
}

/// The end of all sessions.
pub(in crate::accounts) fn log_out_everywhere(account: &Account) -> Decided<()> {
    let sessions = account.access.sessions.iter();
    let ended = |digest| Event::SessionEnded { account: account.id, digest };
    Decided { events: sessions.map(|it| ended(it.digest)).collect(), answer: () }
}

/// Another password in place of `verified`, and a session at `now` in place of all there are; told
/// whether it came to be, as with [`log_in`].
pub(in crate::accounts) fn change_password(
    account: &Account,
    verified: &PasswordHash,
    password: PasswordHash,
    digest: TokenDigest,
    now: UnixMs,
) -> Decided<bool> {
    let id = account.id;
    if account.disabled || account.password.as_ref() != Some(verified) {
        return Decided { events: Vec::new(), answer: false };
    }
    let events = vec![
        Event::PasswordSet { account: id, password },
        Event::SessionBegan { account: id, digest, at: now },
    ];
    Decided { events, answer: true }
}

/// A new key in place of the one there is; told whether there was one.
pub(in crate::accounts) fn issue_key(
    account: &Account,
    key: StoredKey,
    today: Day,
) -> Result<Decided<bool>, WriteError> {
    if account.disabled {
        return Err(WriteError::NotFound);
    }
    let issued = Event::KeyIssued { account: account.id, key, on: StoredDay(today) };
    Ok(Decided { events: vec![issued], answer: account.key.is_some() })
}

/// Why no link is made.
pub(in crate::accounts) enum NoLink {
    /// There is nothing to verify.
    Verified,
    /// Not before then.
    Wait(DateTime<Utc>),
}

/// A link that verifies the address, asked for at `now`.
pub(in crate::accounts) fn ask_link(
    account: &Account,
    digest: TokenDigest,
    now: UnixMs,
) -> Decided<Result<(), NoLink>> {
    let refused = |why| Decided { events: Vec::new(), answer: Err(why) };
    let Address::Unverified(links) = &account.access.address else {
        return refused(NoLink::Verified);
    };
    let today = Day::of(now.instant()).unwrap_or(Day::MAX);
    match (links.newest, links.on) {
        (_, Some((day, count))) if day >= today && count >= LINKS_PER_DAY_MAX => {
            return refused(NoLink::Wait(day.plus(1).start()));
        }
        (Some((_, last)), _) if is_younger(last, LINK_PAUSE, now) => {
            return refused(NoLink::Wait(last.instant() + LINK_PAUSE));
        }
        _ => {}
    }
    let asked = Event::EmailVerificationAsked { account: account.id, digest, at: now };
    Decided { events: vec![asked], answer: Ok(()) }
}

/// Whether the link verifies the account's address at `now`.
pub(in crate::accounts) fn is_good_link(
    account: &Account,
    digest: &TokenDigest,
    now: UnixMs,
) -> bool {
    let link = account.access.link().filter(|(link, _)| link.is(digest));
    !account.disabled && link.is_some_and(|(_, at)| is_younger(*at, LINK_AGE_MAX, now))
}

/// The link was followed at `now`; told whether it was good.
pub(in crate::accounts) fn verify(
    account: &Account,
    digest: &TokenDigest,
    now: UnixMs,
) -> Decided<bool> {
    let good = is_good_link(account, digest, now);
    let verified = Event::EmailVerified { account: account.id };
    Decided { events: good.then_some(verified).into_iter().collect(), answer: good }
}

/// Another chat for new alert rules to begin with.
pub(in crate::accounts) fn set_chat(
    account: &Account,
    chat: Option<String>,
) -> Result<Decided<()>, WriteError> {
    if chat.as_deref().is_some_and(|chat| !is_chat_id(chat)) {
        return Err(invalid(
            "chatId",
            "must be a chat's number, or @ and the name of a public one",
        ));
    }
    let is_new = account.access.telegram_chat.as_deref() != chat.as_deref();
    let chat = chat.map(Into::into);
    let set = Event::TelegramChatSet { account: account.id, chat };
    Ok(Decided { events: is_new.then_some(set).into_iter().collect(), answer: () })
}
