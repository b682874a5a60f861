//! Filters in words, for the chips of pages and the explanations for agents.

use chrono::{Datelike, Timelike};

use crate::query::conditions::{Bar, CONDITIONS, Condition, Kind, Range, Term};
use crate::vocab::day::Day;
use crate::vocab::release_time::Release;
use crate::vocab::time::UnixMs;

/// An active filter in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chip {
    /// Name of the filter; empty if `value` implies it.
    pub word: String,
    pub value: String,
    /// The parameters that the filter represents.
    pub parameters: Vec<&'static str>,
}

/// Returns the value of a parameter; empty if it is not set.
pub type Value<'a> = &'a dyn Fn(&'static str) -> &'a str;

/// Returns the filters in words: ranges, features of the label, values, and others by their names in
/// the API. With `today`, relative days become dates.
pub fn chips(value: Value<'_>, filters_by: &dyn Fn(&str) -> bool, today: Option<Day>) -> Vec<Chip> {
    let is_set = |condition: &&Condition| match condition.bar {
        Bar::Low(Range { high, .. }) => {
            !value(condition.parameter).is_empty() || !value(high).is_empty()
        }
        Bar::High => false,
        _ => !value(condition.parameter).is_empty() && filters_by(condition.parameter),
    };
    let mut set: Vec<_> = CONDITIONS.iter().filter(is_set).collect();
    set.sort_by_key(|condition| place(condition));
    set.into_iter().map(|condition| chip(condition, value, today)).collect()
}

/// Ranges come first, then features, then values.
pub fn place(condition: &Condition) -> u8 {
    match condition.bar {
        Bar::Low(_) | Bar::High => 0,
        Bar::Feature(_) => 1,
        Bar::Value(_) | Bar::Excluded => 2,
        Bar::None => 3,
    }
}

pub fn chip(condition: &Condition, value: Value<'_>, today: Option<Day>) -> Chip {
    let (parameter, text) = (condition.parameter, value(condition.parameter));
    let items = || text.replace(',', ", ");
    let (word, value) = match condition.bar {
        Bar::Low(Range { word, high, .. }) => {
            let shown = |text: &str| match (condition.kind, today) {
                (Kind::Day(_), Some(today)) => Day::parse_from(text, today)
                    .map_or(text.to_owned(), |day| date_text(day, today)),
                (Kind::Release(_), Some(today)) => Release::parse_from(text, today)
                    .map_or(text.to_owned(), |release| release_text(release, today)),
                _ => text.to_owned(),
            };
            let value = match (text, value(high)) {
                (low, "") => format!("≥ {}", shown(low)),
                ("", high) => format!("≤ {}", shown(high)),
                (low, high) if low == high => shown(low),
                (low, high) => format!("{} to {}", shown(low), shown(high)),
            };
            let parameters = vec![parameter, high];
            return Chip { word: word.to_owned(), value, parameters };
        }
        Bar::Feature(says) => match says.iter().find(|(known, _)| *known == text) {
            Some((_, says)) => (String::new(), (*says).to_owned()),
            None => (parameter.to_owned(), text.to_owned()),
        },
        Bar::Value(Term { word, .. }) => (word.to_owned(), items()),
        Bar::Excluded => {
            let words = CONDITIONS.iter().filter_map(|of| match of.bar {
                Bar::Value(Term { word, not: Some(not), .. }) if not == parameter => Some(word),
                _ => None,
            });
            (format!("not {}", words.collect::<String>()), items())
        }
        Bar::High | Bar::None => (parameter.replace('_', " "), text.to_owned()),
    };
    Chip { word, value, parameters: vec![parameter] }
}

/// Returns the day of a release, and its time of day if it has one.
fn release_text(release: Release, today: Day) -> String {
    let day = date_text(release.day, today);
    match release.instant().map(UnixMs::instant) {
        None => day,
        Some(at) if at.second() == 0 => format!("{day}, {} UTC", at.format("%H:%M")),
        Some(at) => format!("{day}, {} UTC", at.format("%H:%M:%S")),
    }
}

/// Returns a day as people write it, with the year if it is another one than today's.
pub fn date_text(day: Day, today: Day) -> String {
    let is_same_year = day.date().year() == today.date().year();
    day.date().format(if is_same_year { "%-d %b" } else { "%-d %b %Y" }).to_string()
}
