//! The morning digest of an account: when it is sent, what it has, and up to where it was sent.

use std::sync::{Arc, LazyLock};

use chrono::{DateTime, Utc};

use crate::data::fields::row;
use crate::data::rules::{Channel, Rule};
use crate::query::stored::Conditions;
use crate::vocab::ids::RuleId;
use crate::vocab::time::UnixMs;
use crate::vocab::zone::{Hour, Zone};

/// Settings and progress of a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest {
    pub hour: Hour,
    pub zone: Zone,
    /// The hour of the last digest, sent or without new names; first the time when it was turned on.
    pub through: UnixMs,
    /// The newest batch then.
    pub batch: u64,
    /// Whether it has the best new names.
    pub best: bool,
    /// Whether it has the new names of saved searches.
    pub searches: bool,
}

row!(Digest { 1 hour, 2 zone, 3 through, 4 batch } optional { 5 best, 6 searches });

impl Digest {
    /// Returns the latest hour of the digest up to `now`; `None` if none has come since the last one.
    /// If several have passed, one digest is sent for all.
    pub fn due(&self, now: DateTime<Utc>) -> Option<UnixMs> {
        let next = |after| Some(self.zone.next(self.hour, after)).filter(|hour| *hour <= now);
        let first = next(self.through.instant())?;
        std::iter::successors(Some(first), |hour| next(*hour).filter(|later| later > hour))
            .last()
            .map(UnixMs::from_instant)
    }

    /// The digest as a rule without a filter, whose outbox holds the messages.
    pub fn sender() -> &'static Arc<Rule> {
        static SENDER: LazyLock<Arc<Rule>> = LazyLock::new(|| {
            Arc::new(Rule {
                id: RuleId::DIGEST,
                name: "Morning digest".into(),
                filter: Conditions::default(),
                channels: vec![Channel::Email],
                active: true,
                created_at: UnixMs::new(0).expect("1970 is in range"),
                secrets: Vec::new(),
                search: None,
            })
        });
        &SENDER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_due_once_a_day_at_its_hour() {
        let at = |text: &str| text.parse::<DateTime<Utc>>().expect("a time");
        let due = |through: &str, now: &str| {
            let digest = Digest {
                hour: Hour::new(8).expect("an hour"),
                zone: "Europe/Berlin".parse().expect("a zone"),
                through: UnixMs::from_instant(at(through)),
                batch: 1,
                best: true,
                searches: true,
            };
            digest.due(at(now)).map(UnixMs::instant)
        };
        let (winter, summer) = ("2026-03-28T07:00:00Z", "2026-03-29T06:00:00Z");
        assert_eq!(due("2026-03-27T12:00:00Z", "2026-03-28T06:59:59Z"), None);
        assert_eq!(due("2026-03-27T12:00:00Z", "2026-03-28T07:00:00Z"), Some(at(winter)));
        assert_eq!(due(winter, "2026-03-28T23:00:00Z"), None);
        // The clocks go forward on 29 March.
        assert_eq!(due(winter, "2026-03-29T05:59:59Z"), None);
        assert_eq!(due(winter, "2026-03-29T06:00:01Z"), Some(at(summer)));
        let later = at("2026-04-02T06:00:00Z");
        assert_eq!(due(summer, "2026-04-02T09:00:00Z"), Some(later), "one for four days");
    }
}
