//! The random sample of released names: draws, the names to ask about, and the counts.

use std::collections::{BTreeMap, BTreeSet};

use super::error::WriteError;
use super::event::Event;
use super::store::{ROWS_MAX, Store};
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::name::DomainName;
use crate::vocab::sample::{OPEN_DAYS, SampleAnswer, SampleTable};

/// Names of a suffix, drawn for a day of releases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleDraw {
    /// The day of the releases.
    pub on: Day,
    pub suffix: String,
    /// The key of the hash that chose the names.
    pub seed: [u8; 32],
    /// The names with their scores, in the order of their hashes.
    pub names: Vec<(DomainName, Dqs)>,
}

/// A drawn name to ask about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleTarget {
    pub name: DomainName,
    pub release: Day,
    /// Days that remain to ask, today excluded.
    pub days_left: i32,
    /// Its place in the draw.
    pub place: usize,
}

impl Store {
    /// Returns the suffixes of which names were drawn for a day.
    pub fn drawn(&self, on: Day) -> BTreeSet<String> {
        let sample = self.state().sample.clone();
        let from_then = sample.latest_first().take_while(|(day, ..)| *day >= on);
        from_then.filter(|(day, ..)| *day == on).map(|(_, suffix, _)| suffix.to_owned()).collect()
    }

    /// Records draws. Of two draws of a suffix and day, the first one counts.
    ///
    /// # Errors
    /// [`WriteError::Journal`]: the first draws may be recorded.
    pub async fn record_draws(&self, draws: Vec<SampleDraw>) -> Result<(), WriteError> {
        for SampleDraw { on, suffix, seed, names } in draws {
            self.append(vec![Event::SampleDrawn { on, suffix: suffix.into(), seed, names }], None)
                .await?;
        }
        Ok(())
    }

    /// Returns the drawn names that are to be asked about.
    pub fn sample_targets(&self, today: Day) -> Vec<SampleTarget> {
        // Some pointers are copied, so that the lock is not held while names are visited.
        let sample = self.state().sample.clone();
        let open = sample
            .latest_first()
            .take_while(|(release, ..)| today.days_since(*release) <= OPEN_DAYS);
        let mut targets = Vec::new();
        for (release, _, draw) in open {
            let age = today.days_since(release);
            for (place, (name, _, answer)) in draw.names.iter().enumerate() {
                if let Some(days_left) = answer.days_left(age) {
                    targets.push(SampleTarget { name: name.clone(), release, days_left, place });
                }
            }
        }
        targets
    }

    /// Records answers about names that were released on a day.
    ///
    /// # Errors
    /// [`WriteError::Journal`]: the first rows may be recorded.
    pub async fn record_sample(
        &self,
        rows: Vec<(Day, DomainName, SampleAnswer)>,
    ) -> Result<(), WriteError> {
        for rows in rows.chunks(ROWS_MAX) {
            self.append(vec![Event::SampleAnswered { rows: rows.to_vec() }], None).await?;
        }
        Ok(())
    }

    /// Returns the counts of each suffix with a draw.
    pub fn sample_tables(&self, today: Day) -> BTreeMap<String, SampleTable> {
        let sample = self.state().sample.clone();
        let mut tables = BTreeMap::<String, SampleTable>::new();
        for (release, suffix, draw) in sample.latest_first() {
            let table = tables.entry(suffix.to_owned()).or_default();
            draw.answers().for_each(|(dqs, answer)| table.add(release, dqs, answer, today));
        }
        tables
    }

    /// Returns a number that changes with the sample.
    pub fn sample_changes(&self) -> u64 {
        self.state().sample.changes()
    }
}
