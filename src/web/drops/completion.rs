//! Completions of the query bar: filters that begin with the typed text, their values, and phrases, each
//! with the number of names that it leaves.

use maud::{Markup, html};

use crate::components::total;
use crate::drops::state::DropsParams;
use crate::drops::words;
use crate::index::filter::{AsOf, Counting, DropFilter, Facet};
use crate::index::{Index, Total};
use crate::query::conditions::{Bar, CONDITIONS, Condition, Kind};
use crate::service::app::App;
use crate::service::error::ApiError;

/// Maximum number of completions.
const OFFERS_MAX: usize = 6;

/// Values that complete filters without a list of values, most useful first.
const VALUES: [(&str, &[&str]); 9] = [
    ("min_dqs", &[">=90", ">=80", ">=60"]),
    ("min_len", &["3", "4", "5", "<=6", "<=8", "4-8"]),
    ("min_words", &["1", "2", "3"]),
    ("min_tlds", &[">=1", ">=5", ">=20"]),
    ("min_drops", &["2", "3"]),
    ("max_rank", &["10k", "100k", "1m"]),
    ("max_suffix_rank", &["1", "5", "10"]),
    ("release_from", &["tomorrow", "+3d", "+7d"]),
    ("dropped_from", &["today", "yesterday", "-7d..today"]),
];

/// A completion.
struct Offer {
    /// The whole text of the query bar with it. A filter without a value ends with a colon.
    text: String,
    term: String,
    /// Meaning of the term in words.
    meaning: String,
    names: Option<Total>,
}

/// Renders the completions of a text as options of the search field.
///
/// # Errors
/// The index is over its time budget.
pub fn options(
    app: &App,
    index: &Index,
    state: &DropsParams,
    text: &str,
    as_of: AsOf,
) -> Result<Markup, ApiError> {
    let filter = |state: &DropsParams| -> Result<DropFilter, ApiError> {
        let mut filter = state.listed().filter(as_of.today)?;
        app.apply_drop_facts(index, &mut filter, as_of.today)?;
        Ok(filter)
    };
    let values = |facet| {
        let counted = index.facets(&filter(state)?, &[facet], as_of, Counting::Estimate)?;
        let values = counted.values.into_iter().flatten();
        Ok::<Vec<String>, ApiError>(values.map(|value| value.value).collect())
    };
    let mut offers = Vec::with_capacity(OFFERS_MAX);
    for (kept, term) in terms(text, values)? {
        let text = format!("{kept}{term}");
        if let Some((_, condition)) = key(&term).filter(|_| term.ends_with(':')) {
            let meaning = word(condition).to_owned();
            offers.push(Offer { text, term, meaning, names: None });
        } else if let Ok(next) = words::add(state, &text)
            && let Ok(filter) = filter(&next)
        {
            let names = index.estimate_drops(&filter, as_of)?;
            if names.count() > 0 {
                let meaning = if says_itself(&term) { String::new() } else { meaning(&term) };
                offers.push(Offer { text, term, meaning, names: Some(names) });
            }
        }
        if offers.len() == OFFERS_MAX {
            break;
        }
    }
    Ok(html! {
        @for (place, offer) in offers.iter().enumerate() {
            li id={ "filter-" (place) } role="option" data-text=(offer.text) {
                span { b { (offer.term) } " " span.what { (offer.meaning) } }
                @if let Some(names) = offer.names { span.what { (total(names)) } }
            }
        }
    })
}

/// Whether a term reads as its filter, such as `score:>=80`.
fn says_itself(term: &str) -> bool {
    key(term).is_some_and(|(_, condition)| !matches!(condition.bar, Bar::Feature(_)))
}

fn meaning(term: &str) -> String {
    let state = words::add(&DropsParams::default(), term);
    state.map(|state| words::described(&state)).unwrap_or_default()
}

/// Returns the terms that may complete the end of a text, each with the part of the text before it.
fn terms(
    text: &str,
    values: impl Fn(Facet) -> Result<Vec<String>, ApiError>,
) -> Result<Vec<(&str, String)>, ApiError> {
    let start = |text: &str| text.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let (kept, last) = text.split_at(start(text));
    if text.matches('"').count() % 2 == 1 || text.trim().is_empty() {
        return Ok(Vec::new());
    }
    if let Some((prefix, condition)) = key(last) {
        let typed = last[prefix.len()..].to_lowercase();
        // The last item of a list is completed.
        let (items, typed) = typed.split_at(typed.rfind(',').map_or(0, |at| at + 1));
        let known = match condition.parameter {
            "tld" => values(Facet::Tld)?,
            "language" => values(Facet::Language)?,
            _ => known_values(condition, typed),
        };
        let bare = |value: &str| value.trim_start_matches(['<', '>', '=']).starts_with(typed);
        let fits = known.into_iter().filter(|value| value.starts_with(typed) || bare(value));
        return Ok(fits.map(|value| (kept, format!("{prefix}{items}{value}"))).collect());
    }
    let two = start(kept.trim_end());
    let (before, phrase) = text.split_at(two);
    let of_two = if kept.is_empty() { Vec::new() } else { words::phrases(phrase) };
    let of_two = of_two.into_iter().map(|phrase| (before, phrase));
    let of_one = filters(last).into_iter().chain(words::phrases(last));
    Ok(of_two.chain(of_one.map(|term| (kept, term))).collect())
}

/// Returns filters whose name begins with a text.
fn filters(text: &str) -> Vec<String> {
    let (sign, text) = match text.strip_prefix('-') {
        Some(text) => ("-", text.to_lowercase()),
        None => ("", text.to_lowercase()),
    };
    if text.is_empty() && sign.is_empty() {
        return Vec::new();
    }
    let mut known: Vec<_> = CONDITIONS.iter().collect();
    known.sort_by_key(|condition| matches!(condition.bar, Bar::Feature(_)));
    let fit = known.into_iter().filter_map(|condition| {
        let key = words::keys(condition).first().filter(|key| key.starts_with(&text))?;
        match condition.bar {
            Bar::Feature(says) if says[0].0 == "none" => Some(format!("-{key}")),
            Bar::Feature(says) => Some(format!("{key}:{}", says[0].0)),
            Bar::Value(term) if !sign.is_empty() => term.not.map(|_| format!("-{key}:")),
            _ if sign.is_empty() => Some(format!("{key}:")),
            _ => None,
        }
    });
    fit.collect()
}

/// Returns the filter whose name and colon a term begins with, and these.
fn key(term: &str) -> Option<(&str, &'static Condition)> {
    let prefix = &term[..=term.find(':')?];
    let name = prefix.trim_start_matches('-').trim_end_matches(':').to_lowercase();
    let known = CONDITIONS.iter().find(|it| words::keys(it).contains(&name.as_str()));
    known.map(|condition| (prefix, condition))
}

/// Returns values of a filter, as the query bar takes them.
fn known_values(condition: &Condition, typed: &str) -> Vec<String> {
    let owned = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect();
    if let Bar::Feature(says) = condition.bar {
        return says.iter().map(|(value, _)| (*value).to_owned()).collect();
    }
    match condition.kind {
        Kind::OneOf(values, _) | Kind::SomeOf(values, _) => owned(values),
        Kind::Number { .. }
            if typed.parse::<u32>().is_ok() && matches!(condition.bar, Bar::Low(_)) =>
        {
            ["", ">=", "<="].map(|bound| format!("{bound}{typed}")).into()
        }
        _ => VALUES
            .iter()
            .find(|(name, _)| *name == condition.parameter)
            .map_or(Vec::new(), |(_, values)| owned(values)),
    }
}

/// Name of a filter in words.
fn word(condition: &Condition) -> &'static str {
    match condition.bar {
        Bar::Low(range) => range.word,
        Bar::Value(term) => term.word,
        _ => condition.parameter,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<String> {
        let values = |facet| {
            let values: &[&str] = if facet == Facet::Tld { &["com", "net", "co"] } else { &["en"] };
            Ok(values.iter().map(|value| (*value).to_owned()).collect())
        };
        let terms = terms(text, values).unwrap_or_else(|_| panic!("{text}"));
        terms.into_iter().map(|(kept, term)| format!("{kept}{term}")).collect()
    }

    #[test]
    fn filters_values_and_phrases_complete_a_text() {
        for (text, some) in [
            ("t", &["tld:", "taken:", "two words"][..]),
            ("shop -t", &["shop -tld:"]),
            ("tld:", &["tld:com", "tld:net", "tld:co"]),
            ("-tld:net,c", &["-tld:net,com", "-tld:net,co"]),
            ("score:", &["score:>=90", "score:>=80", "score:>=60"]),
            ("score:7", &["score:7", "score:>=7", "score:<=7"]),
            ("kind:w", &["kind:word", "kind:words"]),
            ("digits:", &["digits:none", "digits:some", "digits:only"]),
            ("drops:t", &["drops:tomorrow"]),
            ("n", &["no digits", "no hyphens"]),
            ("shop no d", &["shop no digits"]),
            ("no ", &["no digits"]),
            ("4", &["4 letters"]),
            ("4 d", &["4 digits"]),
            ("four l", &["four letters"]),
        ] {
            let terms = of(text);
            for term in some {
                assert!(terms.iter().any(|it| it == term), "{term} for {text} in {terms:?}");
            }
        }
        for text in ["", " ", "\"no d", "zzz", "colour:", "tld:x"] {
            assert_eq!(of(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn every_filter_with_a_name_and_listed_value_is_understood() {
        for (parameter, values) in VALUES {
            let condition = Condition::of_parameter(parameter).expect("a condition");
            let key = words::keys(condition)[0];
            for value in values {
                words::add(&DropsParams::default(), &format!("{key}:{value}")).expect("understood");
            }
        }
    }
}
