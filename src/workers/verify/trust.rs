//! How far the 404s of RDAP servers are trusted. Pure: the time is an argument.
//!
//! A 404 of a server counts only if, within a day, the server has described a registered name of the same
//! suffix (the control); for a name that becomes free, within minutes. It does not count for an hour after
//! the server contradicted the DNS too often, or alternated between 404 and failures, as servers under
//! maintenance do.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

/// Maximum time for which a control counts.
pub const CONTROL_KEPT: Duration = Duration::from_secs(24 * 3_600);
/// Time after which a failed control is tried again.
const CONTROL_AGAIN: Duration = Duration::from_secs(3_600);
/// Time for which the 404s of a server do not count.
const DISTRUSTED: Duration = Duration::from_secs(3_600);
/// Changes between 404 and failure within [`DISTRUSTED`] after which a server is distrusted.
const FLIPS_MAX: u32 = 4;
/// Minimum 404s of a server of which the share that the DNS contradicts is known.
const MISSING_MIN: u32 = 5;

/// State of a control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// The server has described a registered name.
    Passed,
    /// The server did not describe the control name.
    Failed,
    /// It has to be asked.
    Due,
}

/// The trust in all servers.
#[derive(Debug, Default)]
pub struct Trust {
    /// Last control by server and suffix.
    controls: HashMap<(String, String), (Instant, bool)>,
    servers: HashMap<String, Record>,
}

/// Answers of a server since `since`.
#[derive(Debug)]
struct Record {
    since: Instant,
    missing: u32,
    /// Names of `missing` that are delegated in the DNS.
    contradicted: u32,
    flips: u32,
    was_missing: Option<bool>,
    distrusted_until: Option<Instant>,
}

impl Trust {
    /// Returns what is known about the control of a suffix. A passed one counts for `kept`.
    pub fn control(&self, server: &str, suffix: &str, kept: Duration, now: Instant) -> Control {
        match self.controls.get(&(server.to_owned(), suffix.to_owned())) {
            Some(&(at, true)) if now < at + kept => Control::Passed,
            Some(&(at, false)) if now < at + CONTROL_AGAIN => Control::Failed,
            _ => Control::Due,
        }
    }

    /// Records a control, or any other description of a registered name.
    pub fn controlled(&mut self, server: &str, suffix: &str, passed: bool, now: Instant) {
        self.controls.insert((server.to_owned(), suffix.to_owned()), (now, passed));
    }

    /// Returns true if the 404s of a server count.
    pub fn is_trusted(&self, server: &str, now: Instant) -> bool {
        let record = self.servers.get(server);
        record.is_none_or(|record| record.distrusted_until.is_none_or(|until| until <= now))
    }

    /// Records a 404 or a failure (5xx). Returns true if the server is distrusted from now on.
    pub fn answered(&mut self, server: &str, is_missing: bool, now: Instant) -> bool {
        let record = self.record(server, now);
        record.missing += u32::from(is_missing);
        record.flips += u32::from(record.was_missing.is_some_and(|before| before != is_missing));
        record.was_missing = Some(is_missing);
        record.flips >= FLIPS_MAX && record.distrust(now)
    }

    /// Records that a name with a 404 is delegated. Returns true if the server is distrusted from now on.
    pub fn contradicted(&mut self, server: &str, now: Instant) -> bool {
        let record = self.record(server, now);
        record.contradicted += 1;
        record.missing >= MISSING_MIN
            && record.contradicted * 5 > record.missing
            && record.distrust(now)
    }

    /// Forgets servers and controls of which nothing is left to know.
    pub fn prune(&mut self, now: Instant) {
        self.controls.retain(|_, (at, _)| now < *at + CONTROL_KEPT);
        let is_distrusted =
            |record: &Record| record.distrusted_until.is_some_and(|until| until > now);
        self.servers.retain(|_, record| now < record.since + DISTRUSTED || is_distrusted(record));
    }

    fn record(&mut self, server: &str, now: Instant) -> &mut Record {
        let new = || Record {
            since: now,
            missing: 0,
            contradicted: 0,
            flips: 0,
            was_missing: None,
            distrusted_until: None,
        };
        let record = self.servers.entry(server.to_owned()).or_insert_with(new);
        if now >= record.since + DISTRUSTED {
            let distrusted_until = record.distrusted_until.filter(|&until| until > now);
            *record = Record { distrusted_until, ..new() };
        }
        record
    }
}

impl Record {
    /// Distrusts the server for an hour. Returns false if it is distrusted already.
    fn distrust(&mut self, now: Instant) -> bool {
        let is_new = self.distrusted_until.is_none_or(|until| until <= now);
        self.distrusted_until = Some(now + DISTRUSTED);
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    #[test]
    fn a_control_counts_for_a_day_and_a_failed_one_for_an_hour() {
        let (now, mut trust) = (Instant::now(), Trust::default());
        assert_eq!(trust.control("a", "com", HOUR, now), Control::Due);
        trust.controlled("a", "com", true, now);
        assert_eq!(trust.control("a", "com", HOUR / 4, now + HOUR / 3), Control::Due);
        for (server, suffix, after, expected) in [
            ("a", "com", 0, Control::Passed),
            ("a", "com", 23, Control::Passed),
            ("a", "com", 24, Control::Due),
            ("a", "net", 0, Control::Due),
            ("b", "com", 0, Control::Due),
        ] {
            assert_eq!(trust.control(server, suffix, CONTROL_KEPT, now + HOUR * after), expected);
        }
        trust.controlled("a", "com", false, now);
        assert_eq!(trust.control("a", "com", HOUR, now + HOUR / 2), Control::Failed);
        assert_eq!(trust.control("a", "com", HOUR, now + HOUR), Control::Due);
        trust.prune(now + HOUR * 24);
        assert!(trust.controls.is_empty());
    }

    #[test]
    fn a_server_under_maintenance_is_distrusted_for_an_hour() {
        let (now, mut trust) = (Instant::now(), Trust::default());
        let turns = [true, false, true, false, true]
            .map(|is_missing| (trust.answered("a", is_missing, now), trust.is_trusted("a", now)));
        assert_eq!(
            turns,
            [(false, true), (false, true), (false, true), (false, true), (true, false)]
        );
        assert!(trust.is_trusted("b", now) && !trust.is_trusted("a", now + HOUR / 2));
        trust.prune(now + HOUR - Duration::from_secs(1));
        assert!(!trust.is_trusted("a", now + HOUR / 2), "it is not forgotten");
        assert!(trust.is_trusted("a", now + HOUR));
        let late = now + HOUR - Duration::from_secs(60);
        for is_missing in [true, false, true, false] {
            trust.answered("d", is_missing, now);
        }
        assert!(trust.answered("d", true, late));
        trust.prune(now + HOUR);
        assert!(!trust.is_trusted("d", now + HOUR), "for an hour from then on");
        for minute in 0..60 {
            let at = now + HOUR * 2 + Duration::from_secs(minute * 60);
            assert!(!trust.answered("c", true, at), "404s alone");
        }
        trust.prune(now + HOUR * 9);
        assert!(trust.servers.is_empty());
    }

    #[test]
    fn a_server_that_the_dns_contradicts_is_distrusted() {
        let (now, mut trust) = (Instant::now(), Trust::default());
        (0..10).for_each(|_| assert!(!trust.answered("a", true, now)));
        assert!(!trust.contradicted("a", now) && !trust.contradicted("a", now), "2 of 10");
        assert!(trust.contradicted("a", now), "3 of 10");
        assert!(!trust.is_trusted("a", now) && !trust.contradicted("a", now), "once");
        trust.answered("b", true, now);
        assert!(!trust.contradicted("b", now), "too few to tell");
    }
}
