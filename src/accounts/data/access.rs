//! Access to an account and contact data of its owner: sessions, API keys, feeds, the state of the
//! e-mail address, the Telegram chat for new rules.
//!
//! Nothing here reads a clock: the caller passes the time. Expired sessions are dropped by the next
//! event that carries a time.

use chrono::TimeDelta;
use compact_str::CompactString;
use serde::{Deserialize, Serialize};

use crate::data::feeds::Feeds;
use crate::data::fields::row;
use crate::data::keys::Keys;
use crate::token::TokenDigest;
use crate::vocab::day::Day;
use crate::vocab::time::UnixMs;

/// Idle time after which a session ends (OWASP, Session Management).
pub const SESSION_IDLE_MAX: TimeDelta = TimeDelta::minutes(30);
/// Time after login at which a session ends, even if it is in use.
pub const SESSION_AGE_MAX: TimeDelta = TimeDelta::hours(12);
/// Time after login at which a "keep me signed in" session ends, even if it is in use.
pub const SESSION_KEPT_MAX: TimeDelta = TimeDelta::days(30);
/// Minimum time between two recorded uses of a session. A session may therefore end up to five
/// minutes early, but a busy page does not cause a write per request.
pub const SEEN_NOTED_EVERY: TimeDelta = TimeDelta::minutes(5);
/// Maximum sessions of an account; an additional one ends the oldest.
pub const SESSIONS_MAX: usize = 20;
/// Lifetime of a verification link.
pub const LINK_AGE_MAX: TimeDelta = TimeDelta::hours(24);
/// Minimum time between two verification links.
pub const LINK_PAUSE: TimeDelta = TimeDelta::minutes(1);
/// Maximum verification links per account and UTC day. The links are limited because they go to an
/// unverified address.
pub const LINKS_PER_DAY_MAX: u32 = 5;

/// Sessions, keys, feeds and contact data of an account. The default value is for an account that
/// an operator added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Sessions, oldest first, up to [`SESSIONS_MAX`].
    pub sessions: Vec<Session>,
    pub keys: Keys,
    pub feeds: Feeds,
    pub address: Address,
    /// The default chat of new alert rules.
    pub telegram_chat: Option<CompactString>,
}

/// A session that its owner has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    pub digest: TokenDigest,
    pub began: UnixMs,
    /// The last recorded use, accurate to about five minutes.
    pub seen: UnixMs,
    pub life: SessionLife,
    /// Browser and system, as in `Firefox on Linux`; empty if unknown.
    pub browser: CompactString,
}

row!(Session { 1 digest, 2 began, 3 seen } optional { 4 life, 5 browser });

/// Lifetime of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SessionLife {
    /// Ends when the session has been idle for [`SESSION_IDLE_MAX`] or is [`SESSION_AGE_MAX`] old.
    #[default]
    Short,
    /// Ends when the session is [`SESSION_KEPT_MAX`] old.
    Kept,
}

/// Returns true if the session is valid by its age; see [`is_younger`].
const SET_BACK_MAX: TimeDelta = TimeDelta::days(2);

/// State of verification of the e-mail address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Address {
    /// An operator entered the address, or the owner followed a verification link.
    #[default]
    Verified,
    /// The address was entered at sign-up. Only verification links are sent to it.
    Unverified(Links),
}

/// Verification links sent to an unverified address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Links {
    /// The only valid link, and its time of creation.
    pub newest: Option<(TokenDigest, UnixMs)>,
    /// The latest UTC day with links, and the number of links.
    pub on: Option<(Day, u32)>,
}

row!(Links { } optional { 1 newest, 2 on });

impl Session {
    /// Returns true if the session is valid at `now`.
    pub fn is_valid_at(&self, now: UnixMs) -> bool {
        match self.life {
            SessionLife::Kept => is_younger(self.began, SESSION_KEPT_MAX, now),
            SessionLife::Short => {
                is_younger(self.began, SESSION_AGE_MAX, now)
                    && is_younger(self.seen, SESSION_IDLE_MAX, now)
            }
        }
    }

    /// Returns true if a use at `now` must be recorded.
    pub fn is_to_be_noted(&self, now: UnixMs) -> bool {
        !is_younger(self.seen, SEEN_NOTED_EVERY, now)
    }
}

impl Access {
    /// Returns the access of an account that was created by sign-up.
    pub fn unverified() -> Access {
        Access { address: Address::Unverified(Links::default()), ..Access::default() }
    }

    /// Revokes everything that gives access to the account: sessions, keys and feeds.
    pub fn close(&mut self) {
        self.sessions.clear();
        self.keys = Keys::default();
        self.feeds = Feeds::default();
    }

    /// Returns true if alerts may be mailed to the address.
    pub fn is_verified(&self) -> bool {
        self.address == Address::Verified
    }

    /// Returns the session with this digest, valid or not.
    pub fn session(&self, digest: &TokenDigest) -> Option<&Session> {
        self.sessions.iter().find(|session| session.digest.is(digest))
    }

    /// Adds a session that begins at `at`, or replaces the one with the same digest. Drops expired
    /// sessions, and the oldest one if the limit is exceeded.
    pub fn begin_session(&mut self, digest: TokenDigest, at: UnixMs, life: SessionLife) {
        self.sessions.retain(|session| session.is_valid_at(at) && !session.digest.is(&digest));
        let excess = (self.sessions.len() + 1).saturating_sub(SESSIONS_MAX);
        self.sessions.drain(..excess);
        let browser = CompactString::default();
        self.sessions.push(Session { digest, began: at, seen: at, life, browser });
    }

    /// Records a use at `at` by a browser, if it has a name. A session that has already expired is not resumed.
    pub fn touch_session(&mut self, digest: &TokenDigest, at: UnixMs, browser: CompactString) {
        self.sessions.retain(|session| session.is_valid_at(at));
        if let Some(session) = self.sessions.iter_mut().find(|it| it.digest.is(digest)) {
            session.seen = session.seen.max(at);
            if !browser.is_empty() {
                session.browser = browser;
            }
        }
    }

    pub fn end_session(&mut self, digest: &TokenDigest) {
        self.sessions.retain(|session| !session.digest.is(digest));
    }

    /// Adds a verification link; the previous one becomes invalid.
    pub fn add_link(&mut self, digest: TokenDigest, at: UnixMs) {
        let Address::Unverified(links) = &mut self.address else { return };
        let day = Day::nearest(at.instant());
        links.newest = Some((digest, at));
        links.on = Some(match links.on {
            Some((last, count)) if !day.replaces(last) => (last, count.saturating_add(1)),
            _ => (day, 1),
        });
    }

    /// Returns the newest verification link and its time of creation.
    pub fn link(&self) -> Option<&(TokenDigest, UnixMs)> {
        match &self.address {
            Address::Verified => None,
            Address::Unverified(links) => links.newest.as_ref(),
        }
    }
}

/// Returns true if less than `age` has passed since `from`. This also holds if the clock was set
/// back by up to two days; a time further ahead must come from a wrong clock.
pub fn is_younger(from: UnixMs, age: TimeDelta, now: UnixMs) -> bool {
    let passed = now.instant() - from.instant();
    passed < age && passed > -SET_BACK_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minutes: u64) -> UnixMs {
        UnixMs::new(1_790_000_000_000 + minutes * 60_000).expect("an instant")
    }

    fn digest(byte: u8) -> TokenDigest {
        TokenDigest::new([byte; 32])
    }

    #[test]
    fn a_session_ends_when_idle_and_when_old() {
        let life = SessionLife::Short;
        let browser = CompactString::default();
        let session = Session { digest: digest(1), began: at(0), seen: at(0), life, browser };
        assert!(session.is_valid_at(at(29)) && !session.is_valid_at(at(30)), "idle");
        let used = Session { seen: at(719), ..session.clone() };
        assert!(used.is_valid_at(at(719)) && !used.is_valid_at(at(720)), "12 hours in all");
        let ahead = Session { began: at(9), seen: at(9), ..session.clone() };
        assert!(ahead.is_valid_at(at(0)), "a clock that was set back ends no session");
        let wrong = Session { began: at(3 * 1_440), seen: at(3 * 1_440), ..session.clone() };
        assert!(!wrong.is_valid_at(at(0)), "a session of a clock that was years ahead has ended");
        let kept = Session { life: SessionLife::Kept, ..session.clone() };
        assert!(kept.is_valid_at(at(30 * 1_440 - 1)) && !kept.is_valid_at(at(30 * 1_440)));
        assert!(!session.is_to_be_noted(at(4)) && session.is_to_be_noted(at(5)));
    }

    #[test]
    fn one_session_too_many_ends_the_oldest() {
        let mut access = Access::default();
        for number in 0..=SESSIONS_MAX as u8 {
            access.begin_session(digest(number), at(u64::from(number)), SessionLife::Short);
        }
        assert_eq!(access.sessions.len(), SESSIONS_MAX);
        assert!(access.session(&digest(0)).is_none() && access.session(&digest(1)).is_some());
        access.begin_session(digest(99), at(40), SessionLife::Short);
        let expired: Vec<_> = access.sessions.iter().filter(|it| !it.is_valid_at(at(40))).collect();
        assert!(expired.is_empty(), "{expired:?}");
    }

    #[test]
    fn a_use_does_not_revive_an_expired_session() {
        let mut access = Access::default();
        access.begin_session(digest(1), at(0), SessionLife::Short);
        access.touch_session(&digest(1), at(20), CompactString::default());
        access.touch_session(&digest(1), at(10), CompactString::default());
        assert_eq!(access.session(&digest(1)).map(|it| it.seen), Some(at(20)));
        access.touch_session(&digest(2), at(21), CompactString::default());
        access.touch_session(&digest(1), at(50), CompactString::default());
        assert_eq!(access.sessions, [], "idle for 30 minutes");
    }

    #[test]
    fn links_are_counted_by_day() {
        let mut access = Access::unverified();
        let day = |at: UnixMs| Day::from_instant(at.instant()).expect("a day");
        access.add_link(digest(1), at(0));
        access.add_link(digest(2), at(1));
        assert_eq!(access.link(), Some(&(digest(2), at(1))));
        let Address::Unverified(links) = &access.address else { panic!("{access:?}") };
        assert_eq!(links.on, Some((day(at(0)), 2)));
        access.add_link(digest(3), at(24 * 60));
        let Address::Unverified(links) = &access.address else { panic!("{access:?}") };
        assert_eq!(links.on, Some((day(at(24 * 60)), 1)));
        let mut verified = Access::default();
        verified.add_link(digest(1), at(0));
        assert_eq!(verified, Access::default(), "nothing to verify");
    }
}
