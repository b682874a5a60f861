//! Determines the days of a list from its format, file name, options and time of observation.
//! The modules of the formats only parse rows; the rules for days are here, and
//! `data/docs/sources.md` describes them with examples.

use chrono::{DateTime, Utc};

use super::error::FeedProblem;
use super::file_name::{FileNames, NameDay};
use super::names::Names;
use super::rejects::RejectReason;
use super::sniff::ListShape;
use super::{Observation, ReadOptions, Sighting};
use crate::vocab::day::Day;
use crate::vocab::name::DomainName;
use crate::vocab::release_time::Release;

/// Values for rows that lack their own.
#[derive(Clone, Copy)]
pub(super) struct Given {
    pub(super) observed_at: DateTime<Utc>,
    /// The drop date from the options.
    pub(super) drop_date: Option<Day>,
}

/// How a list is to be read.
pub(super) struct Reading {
    pub(super) given: Given,
    /// The statement about all names, if rows consist only of names.
    pub(super) all: Option<Sighting>,
    /// The day that determines how the list is read: the day of all names, or the day in the
    /// options for rows without a day.
    pub(super) day: Option<Day>,
    /// The statement as text, for messages; empty if each row has its own.
    pub(super) clause: String,
}

impl Reading {
    /// Determines the meaning of the days in a list.
    ///
    /// # Errors
    /// The list needs a day and has none, or an ambiguous one.
    pub(super) fn new(
        options: &ReadOptions,
        shape: &ListShape,
        names: &FileNames,
    ) -> Result<Reading, FeedProblem> {
        let given = Given::new(options, shape, names)?;
        let alone = |day| Reading { given, all: None, day, clause: String::new() };
        let of_all = |all, day, clause| Reading { given, all: Some(all), day: Some(day), clause };
        let observed = given.observed_on();
        let day = || -> Result<Option<Day>, FeedProblem> {
            match (given.drop_date, names.day()) {
                (Some(day), _) | (None, NameDay::One(day)) => Ok(Some(day)),
                (None, NameDay::None) => Ok(None),
                (None, NameDay::Ambiguous(text, days)) => {
                    Err(FeedProblem::AmbiguousDay { text, days, option: "--drop-date" })
                }
            }
        };
        Ok(match shape {
            ListShape::Names => {
                if let Some(on) = names.it_release() {
                    let clause = format!("released at {on}");
                    return Ok(of_all(given.released(on, given.drop_date), on.day, clause));
                }
                let day = day()?.ok_or(FeedProblem::NoDate)?;
                if day > observed {
                    let all = given.released(day.into(), None);
                    let clause = format!(
                        "{day} is after the day of the list, {observed}, so it is the release date"
                    );
                    return Ok(of_all(all, day, clause));
                }
                let all = Sighting::Dropped { date: day, release: None, registered_again: false };
                of_all(all, day, format!("dropped on {day}"))
            }
            ListShape::Registered => {
                let day = day()?.unwrap_or(observed);
                // A name of such a list may have dropped again since its registration. If each daily
                // list covers several days, a name appears for the last time when its day is the
                // first day of the list.
                let on = day.plus(-i32::from(names.days_before()));
                of_all(
                    Sighting::Registered { on },
                    day,
                    format!("newly registered, so that drops up to {on} are over"),
                )
            }
            ListShape::Released => {
                let day = day()?.unwrap_or(observed);
                let date = day.min(observed);
                let all =
                    Sighting::Dropped { date, release: Some(day.into()), registered_again: false };
                of_all(all, day, format!("released on {day}"))
            }
            ListShape::Native(_) | ListShape::History(_) | ListShape::Ranked(_) => alone(None),
            ListShape::Json
            | ListShape::JsonLines
            | ListShape::Delimited(..)
            | ListShape::Pool
            | ListShape::Bardate
            | ListShape::Dynadot
            | ListShape::Stamped(_) => alone(given.drop_date),
        })
    }
}

impl Given {
    /// Determines the time of the observation.
    ///
    /// # Errors
    /// The time would be the day in the file name, which is ambiguous.
    pub(super) fn new(
        options: &ReadOptions,
        shape: &ListShape,
        names: &FileNames,
    ) -> Result<Given, FeedProblem> {
        let ReadOptions { drop_date, now, .. } = *options;
        let stamp = match shape {
            ListShape::Stamped(stamped) => Some(stamped.at),
            _ => None,
        };
        let dated = match (options.observed_at.or(stamp), names.day()) {
            (Some(at), _) => Some(at),
            // A future day in the file name is the subject of the list, not its time.
            (None, NameDay::One(day)) => Some(day.start()).filter(|date| *date <= now),
            (None, NameDay::Ambiguous(text, days)) if shape.dates_follow_observation() => {
                return Err(FeedProblem::AmbiguousDay { text, days, option: "--observed-at" });
            }
            (None, _) => None,
        };
        Ok(Given { observed_at: dated.unwrap_or(now), drop_date })
    }

    /// UTC day of the observation, clamped to the range of [`Day`].
    pub(super) fn observed_on(&self) -> Day {
        Day::nearest(self.observed_at)
    }

    /// Observation from a list of releases. Without a drop date in the row, the name dropped on the
    /// day in the options or, without one, on the day of the list.
    pub(super) fn listed(
        &self,
        name: DomainName,
        release: Option<Release>,
        drop: Option<Day>,
    ) -> Result<Observation, RejectReason> {
        let drop = drop.or(self.drop_date);
        let sighting = match (release, drop) {
            (Some(release), drop) => self.released(release, drop),
            (None, Some(date)) => Sighting::Dropped { date, release, registered_again: false },
            (None, None) => return Err(RejectReason::MissingDate),
        };
        let sighting = sighting.about(name.tld());
        Ok(Observation { name, sighting, first_seen: None, observed_at: self.observed_at })
    }

    /// Sighting of a release on `on`. A list that announces the release implies the drop; a list after
    /// the release does not reveal when the name left its zone.
    fn released(&self, on: Release, drop: Option<Day>) -> Sighting {
        let observed = self.observed_on();
        if drop.is_none() && on.day < observed {
            return Sighting::Released { on };
        }
        let date = drop.unwrap_or(observed);
        Sighting::Dropped { date, release: Some(on), registered_again: false }
    }

    pub(super) fn all(&self, sighting: Sighting) -> Names {
        Names { sighting, observed_at: self.observed_at }
    }
}
