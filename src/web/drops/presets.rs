//! Searches for the first day: links to the list with filters, which can be saved and become alert rules as
//! any others.

use maud::{Markup, html};

use crate::drops::state::DropsParams;
use crate::form::Fields;

/// A name, and the filters as the query string of the list.
const PRESETS: [(&str, &str); 11] = [
    ("One word, .com", "tld=com&kind=word&caps=none"),
    ("Two English words, .com", "tld=com&kind=words&language=en&min_words=2&max_words=2&caps=none"),
    ("Three letters", "pattern=LLL"),
    ("Three digits", "pattern=NNN"),
    ("CVCV", "pattern=CVCV&caps=none"),
    ("German words, .de", "tld=de&kind=word,words&language=de&caps=none"),
    ("Place and trade", PLACE_AND_TRADE),
    ("Short .io", "tld=io&max_len=5&digits=none&hyphens=none"),
    ("Short .ai", "tld=ai&max_len=5&digits=none&hyphens=none"),
    ("Ending soon", "release_from=today&release_to=tomorrow&min_dqs=60"),
    ("Best of each TLD", "max_suffix_rank=1"),
];

/// Two or more words, the last of which is a trade that customers look for in a place.
const PLACE_AND_TRADE: &str = "min_words=2&max_words=3&caps=none&ends=hotel,hotels,plumber,plumbing,\
    roofing,dental,dentist,lawyer,lawyers,clinic,realty,homes,tours,taxi,movers,electric,catering,\
    cleaning,builders,garage";

/// Returns the list of a preset.
fn list_of(filters: &str) -> DropsParams {
    let state = DropsParams::of(&Fields::from_query(Some(filters)));
    // A range of releases selects a part of the list; otherwise, the digest would be shown.
    let view = if state.get("release_from").is_empty() { "active" } else { "" };
    state.with(&[("view", view)])
}

/// Returns the name of the preset with the filters of a list; empty for other lists.
pub fn name_of(state: &DropsParams) -> &'static str {
    let conditions = state.conditions();
    let preset = PRESETS.into_iter().find(|(_, it)| list_of(it).conditions() == conditions);
    preset.map_or("", |(name, _)| name)
}

/// Renders links to the presets.
pub fn links() -> Markup {
    html! {
        ul {
            @for (name, filters) in PRESETS { li { a href=(list_of(filters).path()) { (name) } } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocab::day::Day;

    #[test]
    fn every_preset_is_a_list_that_knows_its_name() {
        let today: Day = "2026-03-15".parse().expect("a day");
        for (name, filters) in PRESETS {
            let state = list_of(filters);
            assert!(state.filter(today).is_ok(), "{name}");
            assert!(!state.is_digest(), "{name}");
            let there = state.path();
            let query = there.strip_prefix("/?").expect("filters");
            let opened = DropsParams::of(&Fields::from_query(Some(query)));
            assert_eq!(name_of(&opened), name);
        }
        assert_eq!(name_of(&list_of("")), "");
        assert_eq!(name_of(&list_of("tld=com")), "");
    }
}
