//! How the owner of an account gets in with a browser, and is reached: log-ins, whether the e-mail
//! address is proven, the Telegram chat that new rules begin with.
//!
//! Nothing here reads a clock: whether something still holds is judged at a time that the caller
//! gives, and what is over goes with the next event that tells the time.

use chrono::TimeDelta;
use compact_str::CompactString;

use super::token::TokenDigest;
use crate::vocab::day::Day;
use crate::vocab::time::UnixMs;

/// A session that nothing was asked with for so long is over (issue 7; OWASP, Session Management).
pub const SESSION_IDLE_MAX: TimeDelta = TimeDelta::minutes(30);
/// A session is over so long after its log-in, whatever it was used for.
pub const SESSION_AGE_MAX: TimeDelta = TimeDelta::hours(12);
/// A use is written down when the last one noted is so old: what is idle is then judged to five
/// minutes, on the strict side, and a busy page costs no write a request.
pub const SEEN_NOTED_EVERY: TimeDelta = TimeDelta::minutes(5);
/// Sessions of one account at most; with one more the oldest ends.
pub const SESSIONS_MAX: usize = 20;
/// A link that verifies an address is good for so long.
pub const LINK_AGE_MAX: TimeDelta = TimeDelta::hours(24);
/// A link is asked for again so long after the last one at the earliest.
pub const LINK_PAUSE: TimeDelta = TimeDelta::minutes(1);
/// Links that an account may ask for in a UTC day: mails to an address that may be another's.
pub const LINKS_PER_DAY_MAX: u32 = 5;

/// How an account is entered by people, and reached. The default is that of an account which an
/// operator added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Log-ins, oldest first. At most [`SESSIONS_MAX`].
    pub(super) sessions: Vec<Session>,
    pub(super) address: Address,
    /// The chat that new alert rules begin with.
    pub(super) telegram_chat: Option<CompactString>,
}

/// One log-in that was not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    pub digest: TokenDigest,
    pub began: UnixMs,
    /// When it was last noted to be used.
    pub seen: UnixMs,
}

/// Whether the e-mail address is known to be the owner's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Address {
    /// An operator named it, or its owner opened the link in a mail to it.
    #[default]
    Verified,
    /// Somebody signed up with it. Nothing but that link is mailed to it.
    Unverified(Links),
}

/// What was mailed to an address that is not verified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Links {
    /// The one link that works, and since when.
    pub newest: Option<(TokenDigest, UnixMs)>,
    /// The last UTC day with links, and how many.
    pub on: Option<(Day, u32)>,
}

impl Session {
    /// Whether it still lets its holder in at `now`.
    pub fn holds_at(&self, now: UnixMs) -> bool {
        is_younger(self.began, SESSION_AGE_MAX, now) && is_younger(self.seen, SESSION_IDLE_MAX, now)
    }

    /// Whether a use of it at `now` is to be written down.
    pub fn is_to_be_noted(&self, now: UnixMs) -> bool {
        !is_younger(self.seen, SEEN_NOTED_EVERY, now)
    }
}

impl Access {
    /// That of somebody who signs up.
    pub(super) fn unverified() -> Access {
        Access { address: Address::Unverified(Links::default()), ..Access::default() }
    }

    /// Whether mails may go to the address.
    pub fn is_verified(&self) -> bool {
        self.address == Address::Verified
    }

    /// The session with this digest, whether it still holds or not.
    pub(super) fn session(&self, digest: &TokenDigest) -> Option<&Session> {
        self.sessions.iter().find(|session| session.digest.is(digest))
    }

    /// A log-in at `at`: what is over by then goes, and the oldest where there are too many.
    pub(super) fn begin(&mut self, digest: TokenDigest, at: UnixMs) {
        self.sessions.retain(|session| session.holds_at(at));
        let excess = (self.sessions.len() + 1).saturating_sub(SESSIONS_MAX);
        self.sessions.drain(..excess);
        self.sessions.push(Session { digest, began: at, seen: at });
    }

    /// A session was used at `at`. One that was over by then is not brought back.
    pub(super) fn see(&mut self, digest: &TokenDigest, at: UnixMs) {
        self.sessions.retain(|session| session.holds_at(at));
        if let Some(session) = self.sessions.iter_mut().find(|it| it.digest.is(digest)) {
            session.seen = session.seen.max(at);
        }
    }

    /// A session was ended.
    pub(super) fn end(&mut self, digest: &TokenDigest) {
        self.sessions.retain(|session| !session.digest.is(digest));
    }

    /// A link was asked for at `at`; the one before works no longer.
    pub(super) fn ask(&mut self, digest: TokenDigest, at: UnixMs) {
        let Address::Unverified(links) = &mut self.address else { return };
        let day = Day::of(at.instant()).unwrap_or(Day::MAX);
        links.newest = Some((digest, at));
        links.on = Some(match links.on {
            Some((last, count)) if last >= day => (last, count.saturating_add(1)),
            _ => (day, 1),
        });
    }

    /// The digest that verifies the address.
    pub(super) fn link(&self) -> Option<&(TokenDigest, UnixMs)> {
        match &self.address {
            Address::Verified => None,
            Address::Unverified(links) => links.newest.as_ref(),
        }
    }
}

/// Whether less than `age` has passed since `from`. A clock that stepped back has passed nothing.
pub(super) fn is_younger(from: UnixMs, age: TimeDelta, now: UnixMs) -> bool {
    now.instant() - from.instant() < age
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
        let session = Session { digest: digest(1), began: at(0), seen: at(0) };
        assert!(session.holds_at(at(29)) && !session.holds_at(at(30)), "idle");
        let used = Session { seen: at(719), ..session };
        assert!(used.holds_at(at(719)) && !used.holds_at(at(720)), "twelve hours in all");
        let ahead = Session { began: at(9), seen: at(9), ..session };
        assert!(ahead.holds_at(at(0)), "a clock that stepped back ends nothing");
        assert!(!session.is_to_be_noted(at(4)) && session.is_to_be_noted(at(5)));
    }

    #[test]
    fn the_oldest_session_makes_room() {
        let mut access = Access::default();
        for number in 0..=SESSIONS_MAX as u8 {
            access.begin(digest(number), at(u64::from(number)));
        }
        assert_eq!(access.sessions.len(), SESSIONS_MAX);
        assert!(access.session(&digest(0)).is_none() && access.session(&digest(1)).is_some());
        access.begin(digest(99), at(40));
        let over: Vec<_> = access.sessions.iter().filter(|it| !it.holds_at(at(40))).collect();
        assert!(over.is_empty(), "{over:?}");
    }

    #[test]
    fn a_use_brings_nothing_back() {
        let mut access = Access::default();
        access.begin(digest(1), at(0));
        access.see(&digest(1), at(20));
        access.see(&digest(1), at(10));
        assert_eq!(access.session(&digest(1)).map(|it| it.seen), Some(at(20)));
        access.see(&digest(2), at(21));
        access.see(&digest(1), at(50));
        assert_eq!(access.sessions, [], "it was idle for half an hour");
    }

    #[test]
    fn links_are_counted_by_day() {
        let mut access = Access::unverified();
        let day = |at: UnixMs| Day::of(at.instant()).expect("a day");
        access.ask(digest(1), at(0));
        access.ask(digest(2), at(1));
        assert_eq!(access.link(), Some(&(digest(2), at(1))));
        let Address::Unverified(links) = &access.address else { panic!("{access:?}") };
        assert_eq!(links.on, Some((day(at(0)), 2)));
        access.ask(digest(3), at(24 * 60));
        let Address::Unverified(links) = &access.address else { panic!("{access:?}") };
        assert_eq!(links.on, Some((day(at(24 * 60)), 1)));
        let mut verified = Access::default();
        verified.ask(digest(1), at(0));
        assert_eq!(verified, Access::default(), "there is nothing to prove");
    }
}
