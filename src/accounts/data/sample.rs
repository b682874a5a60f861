//! The names of the random sample, and the answers of their registries.

use std::sync::Arc;

use compact_str::CompactString;

use crate::data::fields::row;
use crate::data::sorted::Sorted;
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::name::DomainName;
use crate::vocab::sample::{KEPT_DAYS, OPEN_DAYS, SampleAnswer};

/// All samples that are kept.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Sample {
    draws: Sorted<(Day, CompactString), Arc<Draw>>,
    /// Number of draws and answers so far.
    changes: u64,
}

/// The sample of a suffix for a day of releases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Draw {
    /// The drawn names with their scores on the day of the draw, in random order.
    pub names: Vec<(DomainName, Dqs, SampleAnswer)>,
    /// The same without names, once the registry is no longer asked.
    pub closed: Vec<(Dqs, SampleAnswer)>,
}

/// A [`Draw`] as a snapshot stores it.
pub struct DrawRow {
    on: Day,
    suffix: CompactString,
    names: Vec<(DomainName, Dqs, SampleAnswer)>,
    closed: Vec<(Dqs, SampleAnswer)>,
}

row!(DrawRow { 1 on, 2 suffix } optional { 3 names, 4 closed });

impl Draw {
    /// Returns scores and answers.
    pub fn answers(&self) -> impl Iterator<Item = (Dqs, SampleAnswer)> {
        let open = self.names.iter().map(|(_, dqs, answer)| (*dqs, *answer));
        open.chain(self.closed.iter().copied())
    }
}

impl Sample {
    /// Adds the names drawn of a suffix for a day, unless there was a draw. Forgets names that are not asked
    /// about any more, and later their answers.
    pub fn draw(&mut self, on: Day, suffix: CompactString, names: Vec<(DomainName, Dqs)>) {
        let key = (on, suffix);
        if names.is_empty() || self.draws.get(&key).is_some() {
            return;
        }
        let names = names.into_iter().map(|(name, dqs)| (name, dqs, SampleAnswer::None)).collect();
        self.draws.insert(key, Arc::new(Draw { names, closed: Vec::new() }));
        self.changes += 1;
        self.forget(on);
    }

    fn forget(&mut self, today: Day) {
        while let Some(((on, _), _)) = self.draws.first()
            && today.days_since(*on) > KEPT_DAYS
        {
            let key = self.draws.first().expect("it is there").0.clone();
            self.draws.remove(&key);
        }
        let is_open = |day: Day| today.days_since(day) <= OPEN_DAYS;
        let over = self.draws.iter().rev().skip_while(|((on, _), _)| is_open(*on));
        let over = over.take_while(|(_, draw)| draw.closed.is_empty());
        let over: Vec<_> = over.map(|(key, _)| key.clone()).collect();
        for key in over {
            let Some(draw) = self.draws.get_mut(&key).map(Arc::make_mut) else { continue };
            let names = std::mem::take(&mut draw.names);
            draw.closed = names.into_iter().map(|(_, dqs, answer)| (dqs, answer)).collect();
        }
    }

    /// Adds an answer about a name released on a day.
    pub fn answer(&mut self, on: Day, name: &DomainName, answer: SampleAnswer) {
        let key = (on, CompactString::from(name.tld()));
        let Some(draw) = self.draws.get_mut(&key).map(Arc::make_mut) else { return };
        if let Some((.., known)) = draw.names.iter_mut().find(|(drawn, ..)| drawn == name) {
            *known = known.then(answer);
            self.changes += 1;
        }
    }

    /// Returns all draws, the latest day first.
    pub fn latest_first(&self) -> impl Iterator<Item = (Day, &str, &Draw)> {
        self.draws.iter().rev().map(|((on, suffix), draw)| (*on, suffix.as_str(), &**draw))
    }

    /// Returns a number that changes with every draw and answer.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Sets that number from a snapshot.
    pub fn put_changes(&mut self, changes: u64) {
        self.changes = changes;
    }

    /// Returns the rows for a snapshot, by day and suffix.
    pub fn rows(&self) -> impl Iterator<Item = DrawRow> {
        self.draws.iter().map(|((on, suffix), draw)| {
            let Draw { names, closed } = (**draw).clone();
            DrawRow { on: *on, suffix: suffix.clone(), names, closed }
        })
    }

    /// Adds a row of a snapshot.
    pub fn put(&mut self, row: DrawRow) {
        let DrawRow { on, suffix, names, closed } = row;
        self.draws.insert((on, suffix), Arc::new(Draw { names, closed }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> Day {
        text.parse().expect("a date")
    }

    fn names(texts: &[&str]) -> Vec<(DomainName, Dqs)> {
        let name = |text: &&str| (DomainName::parse(text).expect("a name"), Dqs::MAX);
        texts.iter().map(name).collect()
    }

    /// `data/docs/outcomes.md` states the memory of a suffix.
    #[test]
    fn names_take_forty_bytes_and_answers_three() {
        assert_eq!(size_of::<(DomainName, Dqs, SampleAnswer)>(), 40);
        assert_eq!(size_of::<(Dqs, SampleAnswer)>(), 3);
    }

    #[test]
    fn a_day_is_drawn_once() {
        let (mut sample, on) = (Sample::default(), day("2026-03-01"));
        sample.draw(on, "de".into(), names(&["b.de", "a.de"]));
        let before = sample.clone();
        sample.draw(on, "de".into(), names(&["a.de", "c.de", "d.de"]));
        assert!(sample == before, "names that a later list adds change nothing");
        sample.draw(on, "at".into(), Vec::new());
        assert!(sample == before);
        sample.draw(on, "at".into(), names(&["a.at"]));
        assert_eq!((sample.draws.len(), sample.changes()), (2, 2));
    }

    #[test]
    fn names_are_forgotten_before_their_answers() {
        let (mut sample, first) = (Sample::default(), day("2026-03-01"));
        let [(a, _), (b, _)] = &names(&["a.de", "b.de"])[..] else { panic!("two") };
        sample.draw(first, "de".into(), names(&["a.de", "b.de"]));
        sample.answer(first, a, SampleAnswer::Taken(3));
        sample.answer(first.plus(1), b, SampleAnswer::Taken(3));
        let answers = |sample: &Sample| {
            let draw = sample.draws.get(&(first, CompactString::from("de")))?;
            let answers = draw.answers().map(|(_, answer)| answer).collect::<Vec<_>>();
            Some((draw.names.len(), answers))
        };
        let both = vec![SampleAnswer::Taken(3), SampleAnswer::None];
        sample.draw(first.plus(OPEN_DAYS), "at".into(), names(&["a.at"]));
        assert_eq!(answers(&sample), Some((2, both.clone())));
        sample.draw(first.plus(OPEN_DAYS + 1), "at".into(), names(&["b.at"]));
        assert_eq!(answers(&sample), Some((0, both.clone())));
        let closed = sample.clone();
        sample.answer(first, b, SampleAnswer::Taken(9));
        assert!(sample == closed, "too late");
        sample.draw(first.plus(KEPT_DAYS), "at".into(), names(&["c.at"]));
        assert_eq!(answers(&sample), Some((0, both)));
        sample.draw(first.plus(KEPT_DAYS + 1), "at".into(), names(&["d.at"]));
        assert_eq!(answers(&sample), None);
        // A draw of an earlier day that arrives late changes no later one.
        let now = sample.clone();
        sample.draw(first.plus(KEPT_DAYS - 1), "de".into(), names(&["e.de"]));
        assert_eq!(sample.draws.len(), now.draws.len() + 1);
    }
}
