//! Filters in words: the chips above the list, and the text of the query bar that adds filters
//! (`score:>=80 len:4-8 tld:com -digits drops:+3d`). Both stand for parameters of the URL.

use crate::vocab::day::Day;
use crate::web::components::date_text;
use crate::web::drops::state::State;

/// A filter with a lower and an upper bound.
struct Range {
    /// Name in a chip.
    word: &'static str,
    /// Names in the query bar, the first of which the help shows.
    keys: &'static [&'static str],
    low: &'static str,
    high: &'static str,
    of: Of,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Numbers,
    Days,
}

const RANGES: [Range; 6] = [
    Range {
        word: "score",
        keys: &["score", "dqs"],
        low: "min_dqs",
        high: "max_dqs",
        of: Of::Numbers,
    },
    Range {
        word: "length",
        keys: &["len", "length"],
        low: "min_len",
        high: "max_len",
        of: Of::Numbers,
    },
    Range { word: "words", keys: &["words"], low: "min_words", high: "max_words", of: Of::Numbers },
    Range {
        word: "other TLDs",
        keys: &["tlds"],
        low: "min_tlds",
        high: "max_tlds",
        of: Of::Numbers,
    },
    Range {
        word: "drops",
        keys: &["drops", "release"],
        low: "release_from",
        high: "release_to",
        of: Of::Days,
    },
    Range {
        word: "left the zone",
        keys: &["dropped"],
        low: "dropped_from",
        high: "dropped_to",
        of: Of::Days,
    },
];

/// A filter with one value.
struct Single {
    /// Name in a chip.
    word: &'static str,
    keys: &'static [&'static str],
    parameter: &'static str,
    /// The parameter that a leading hyphen sets in its place; empty if it cannot be negated.
    negated: &'static str,
}

const SINGLES: [Single; 13] = [
    single("TLD", &["tld"], "tld", "not_tld"),
    single("contains", &["contains"], "contains", "not_contains"),
    single("starts with", &["starts"], "starts", "not_starts"),
    single("ends with", &["ends"], "ends", "not_ends"),
    single("name contains", &["name"], "q", ""),
    single("pattern", &["pattern"], "pattern", ""),
    single("regex", &["regex"], "regex", ""),
    single("like", &["like"], "like", ""),
    single("edits", &["distance"], "distance", ""),
    single("kind", &["kind"], "kind", ""),
    single("language", &["lang", "language"], "language", ""),
    single("earlier drops", &["seen"], "min_drops", ""),
    single("popularity rank at most", &["rank"], MAX_RANK, ""),
];

/// The filter on popularity lists, whose numbers the bar takes in thousands too.
const MAX_RANK: &str = "max_rank";

const fn single(
    word: &'static str,
    keys: &'static [&'static str],
    parameter: &'static str,
    negated: &'static str,
) -> Single {
    Single { word, keys, parameter, negated }
}

/// A filter on a feature of the label, and what its values say.
struct Feature {
    key: &'static str,
    /// The values `none`, `some` and `only`, as far as there are.
    says: &'static [(&'static str, &'static str)],
}

const FEATURES: [Feature; 4] = [
    Feature {
        key: "digits",
        says: &[("none", "no digits"), ("some", "with digits"), ("only", "digits only")],
    },
    Feature { key: "hyphens", says: &[("none", "no hyphens"), ("some", "with hyphens")] },
    Feature { key: "idn", says: &[("none", "no IDNs"), ("only", "IDNs only")] },
    Feature { key: "caps", says: &[("none", "no trademarks, adult words or spam")] },
];

/// Examples of all terms of the query bar.
pub const EXAMPLES: [(&str, &str); 19] = [
    ("score:>=80", "score of at least 80"),
    ("len:4-8", "four to eight letters"),
    ("tld:com,net", "one of these TLDs"),
    ("-tld:xyz", "not this TLD"),
    ("-digits", "no digits"),
    ("-hyphens", "no hyphens"),
    ("shop", "contains a text"),
    ("-shop", "does not contain it"),
    ("starts:my", "starts with a text"),
    ("ends:hub", "ends with a text"),
    ("drops:tomorrow", "released tomorrow"),
    ("drops:+3d", "released in the next three days"),
    ("tlds:>=5", "registered in at least five other TLDs"),
    ("seen:2", "dropped at least twice"),
    ("rank:100k", "among the first 100,000 of a popularity list"),
    ("kind:word,words", "made of words and nothing else"),
    ("words:2", "made of two words"),
    ("lang:en", "English words"),
    ("-caps", "no trademarks, adult words or spam"),
];

/// A filter that is set, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chip {
    /// Name of the filter; empty if `value` says it.
    pub word: String,
    pub value: String,
    /// The parameters that it stands for.
    pub parameters: Vec<&'static str>,
}

/// Filters in words. With `today`, relative days are shown as dates.
pub fn chips(state: &State, today: Option<Day>) -> Vec<Chip> {
    let mut chips = Vec::new();
    for range in &RANGES {
        let (low, high) = (state.get(range.low), state.get(range.high));
        if low.is_empty() && high.is_empty() {
            continue;
        }
        let told = |text: &str| match (range.of, today) {
            (Of::Days, Some(today)) => {
                Day::parse_from(text, today).map_or(text.to_owned(), |day| date_text(day, today))
            }
            _ => text.to_owned(),
        };
        let value = match (low, high) {
            (low, "") => format!("≥ {}", told(low)),
            ("", high) => format!("≤ {}", told(high)),
            (low, high) if low == high => told(low),
            (low, high) => format!("{} to {}", told(low), told(high)),
        };
        chips.push(Chip {
            word: range.word.to_owned(),
            value,
            parameters: vec![range.low, range.high],
        });
    }
    for feature in &FEATURES {
        let value = state.get(feature.key);
        if let Some((_, says)) = feature.says.iter().find(|(known, _)| *known == value) {
            let parameters = vec![feature.key];
            chips.push(Chip { word: String::new(), value: (*says).to_owned(), parameters });
        }
    }
    for single in &SINGLES {
        for (parameter, not) in [(single.parameter, ""), (single.negated, "not ")] {
            let value = state.get(parameter).replace(',', ", ");
            if !parameter.is_empty() && !value.is_empty() {
                let word = format!("{not}{}", single.word);
                chips.push(Chip { word, value, parameters: vec![parameter] });
            }
        }
    }
    let known: Vec<&str> = chips.iter().flat_map(|chip| chip.parameters.clone()).collect();
    let others: Vec<_> = state.filters().filter(|(name, _)| !known.contains(name)).collect();
    // A filter that has no words here is shown as the API has it.
    chips.extend(others.into_iter().map(|(name, value)| Chip {
        word: name.replace('_', " "),
        value: value.to_owned(),
        parameters: vec![name],
    }));
    chips
}

/// Filters in words: `TLD com, no digits`.
pub fn described(state: &State) -> String {
    let words = chips(state, None).into_iter().map(|Chip { word, value, .. }| match &*word {
        "" => value,
        word => format!("{word} {value}"),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Adds the terms of the query bar to the filters.
///
/// # Errors
/// A sentence about the first invalid term.
pub fn add(state: &State, text: &str) -> Result<State, String> {
    let mut values: Vec<(&'static str, String)> = Vec::new();
    for token in tokens(text) {
        let (is_not, body) = match token.strip_prefix('-') {
            Some(body) if !body.is_empty() => (true, body),
            _ => (false, token.as_str()),
        };
        match body.split_once(':') {
            Some((key, value)) if !value.is_empty() => {
                keyed(&key.to_lowercase(), value, is_not, &mut values)?;
            }
            Some((key, _)) => return Err(format!("Write a value after “{key}:”.")),
            None => plain(body, is_not, &mut values),
        }
    }
    let mut next = state.clone();
    for (name, value) in &values {
        // Texts and TLDs add up, other filters are replaced.
        let before = next.get(name);
        let joined = match is_list(name) && !before.is_empty() && !value.is_empty() {
            true if before.split(',').any(|item| item == value) => before.to_owned(),
            true => format!("{before},{value}"),
            false => value.clone(),
        };
        next = next.with(&[(name, &joined)]);
    }
    Ok(next)
}

/// The words of a text; one may hold spaces between quotation marks.
fn tokens(text: &str) -> Vec<String> {
    let (mut tokens, mut token, mut is_quoted) = (Vec::new(), String::new(), false);
    for char in text.chars() {
        match char {
            '"' => is_quoted = !is_quoted,
            char if char.is_whitespace() && !is_quoted => tokens.push(std::mem::take(&mut token)),
            char => token.push(char),
        }
    }
    tokens.push(token);
    tokens.retain(|token| !token.is_empty());
    tokens
}

fn is_list(parameter: &str) -> bool {
    let lists = ["kind", "language"];
    let negatable = SINGLES.iter().filter(|single| !single.negated.is_empty());
    lists.contains(&parameter)
        || negatable
            .flat_map(|single| [single.parameter, single.negated])
            .any(|name| name == parameter)
}

fn keyed(
    key: &str,
    value: &str,
    is_not: bool,
    values: &mut Vec<(&'static str, String)>,
) -> Result<(), String> {
    let mut ranges = RANGES.iter().filter(|range| State::has(range.low));
    let mut singles = SINGLES.iter().filter(|single| State::has(single.parameter));
    if let Some(range) = ranges.find(|range| range.keys.contains(&key)) {
        if is_not {
            return Err(format!("“-{key}:” is not a filter. Write {key}:<={value}, for example."));
        }
        let (low, high) = bounds(range.of, value)?;
        values.extend([(range.low, low), (range.high, high)]);
    } else if let Some(single) = singles.find(|single| single.keys.contains(&key)) {
        let parameter = if is_not { single.negated } else { single.parameter };
        if parameter.is_empty() {
            return Err(format!("“-{key}:” is not a filter: {key} cannot be excluded."));
        }
        let value = if parameter == MAX_RANK { plain_rank(value) } else { value.to_owned() };
        values.push((parameter, value));
    } else if let Some(feature) = FEATURES.iter().find(|feature| feature.key == key) {
        if is_not || !feature.says.iter().any(|(known, _)| *known == value) {
            let known: Vec<_> =
                feature.says.iter().map(|(known, _)| format!("{key}:{known}")).collect();
            return Err(format!("Write {}.", known.join(" or ")));
        }
        values.push((feature.key, value.to_owned()));
    } else {
        let keys = RANGES.iter().map(|range| range.keys[0]);
        let keys = keys.chain(SINGLES.iter().map(|single| single.keys[0]));
        let keys: Vec<_> = keys.chain(FEATURES.iter().map(|feature| feature.key)).collect();
        return Err(format!("Unknown filter “{key}”. Filters: {}.", keys.join(", ")));
    }
    Ok(())
}

fn plain(text: &str, is_not: bool, values: &mut Vec<(&'static str, String)>) {
    if let Some(feature) = FEATURES.iter().find(|feature| feature.key == text) {
        // `idn` alone means names that are IDNs, `digits` names that have some.
        let some = feature.says.get(1).map_or("none", |(value, _)| value);
        values.push((feature.key, if is_not { "none" } else { some }.to_owned()));
    } else if let Some(tld) = text.strip_prefix('.').filter(|tld| !tld.is_empty()) {
        values.push((if is_not { "not_tld" } else { "tld" }, tld.to_owned()));
    } else {
        values.push((if is_not { "not_contains" } else { "contains" }, text.to_owned()));
    }
}

/// The number that `<=100k`, `100K`, `1m` or `5000` stands for; other texts as they are.
fn plain_rank(text: &str) -> String {
    let text = text.strip_prefix("<=").unwrap_or(text);
    let lower = text.to_ascii_lowercase();
    let unit = [("k", "000"), ("m", "000000")]
        .into_iter()
        .find_map(|(unit, zeros)| Some((lower.strip_suffix(unit)?, zeros)));
    unit.map_or_else(|| text.to_owned(), |(number, zeros)| format!("{number}{zeros}"))
}

/// The bounds of `>=80`, `<=8`, `4-8`, `4`; of days also `2026-11-23..2026-11-25` and `+3d`, which
/// means the three days from tomorrow on.
fn bounds(of: Of, text: &str) -> Result<(String, String), String> {
    let (low, high) = if let Some(low) = text.strip_prefix(">=") {
        (low, "")
    } else if let Some(high) = text.strip_prefix("<=") {
        ("", high)
    } else if text.starts_with(['<', '>']) {
        return Err(format!("Write >= or <= instead of “{}”.", &text[..1]));
    } else {
        match of {
            Of::Numbers => text.split_once('-').unwrap_or((text, text)),
            Of::Days if text.starts_with('+') => ("tomorrow", text),
            Of::Days => text.split_once("..").unwrap_or((text, text)),
        }
    };
    if low.is_empty() && high.is_empty() {
        return Err(format!("“{text}” has no value."));
    }
    Ok((low.to_owned(), high.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::form::Fields;

    fn state(query: &str) -> State {
        State::of(&Fields::from_query(Some(query)))
    }

    #[test]
    fn the_bar_writes_the_parameters_of_the_api() {
        for (text, path) in [
            ("score:>=80 len:4-8", "/?min_dqs=80&min_len=4&max_len=8"),
            ("len:4 -digits -hyphens", "/?min_len=4&max_len=4&digits=none&hyphens=none"),
            ("tld:com .net -tld:xyz", "/?tld=com%2Cnet&not_tld=xyz"),
            ("shop -cheap", "/?contains=shop&not_contains=cheap"),
            ("starts:my ends:hub", "/?starts=my&ends=hub"),
            ("digits idn", "/?digits=some&idn=only"),
            ("drops:+3d", "/?release_from=tomorrow&release_to=%2B3d"),
            ("drops:tomorrow", "/?release_from=tomorrow&release_to=tomorrow"),
            ("dropped:2026-11-01..today", "/?dropped_from=2026-11-01&dropped_to=today"),
            ("tlds:>=5 seen:2", "/?min_tlds=5&min_drops=2"),
            ("kind:word lang:en,de", "/?kind=word&language=en%2Cde"),
            ("words:2 -caps", "/?min_words=2&max_words=2&caps=none"),
            ("SCORE:<=40", "/?max_dqs=40"),
            ("rank:100k", "/?max_rank=100000"),
            ("rank:<=5000", "/?max_rank=5000"),
            ("rank:1M", "/?max_rank=1000000"),
            ("", "/"),
        ] {
            let path_of = |state: &State| {
                let mut pairs: Vec<_> = state.parameters().collect();
                pairs.sort_unstable();
                pairs.into_iter().map(|(name, value)| (name, value.to_owned())).collect::<Vec<_>>()
            };
            let added = add(&State::default(), text).unwrap_or_else(|why| panic!("{text}: {why}"));
            let query = path.split_once('?').map_or("", |(_, query)| query);
            assert_eq!(path_of(&added), path_of(&state(query)), "{text}");
        }
    }

    #[test]
    fn what_is_added_keeps_the_rest() {
        let before = state("tld=com&contains=shop&min_dqs=40&offset=100");
        let after = add(&before, "tld:net shop score:>=60").expect("understood");
        assert_eq!(
            (after.get("tld"), after.get("contains"), after.get("min_dqs"), after.get("offset")),
            ("com,net", "shop", "60", "")
        );
    }

    #[test]
    fn what_is_not_understood_is_told() {
        for (text, told) in [
            ("colour:red", "Unknown filter “colour”. Filters: score, len,"),
            ("score:", "Write a value after “score:”."),
            ("score:>80", "Write >= or <= instead of “>”."),
            ("-len:4", "“-len:” is not a filter."),
            ("digits:many", "Write digits:none or digits:some or digits:only."),
            ("-like:shop", "like cannot be excluded"),
            ("-rank:100k", "rank cannot be excluded"),
        ] {
            let why = add(&State::default(), text).expect_err(text);
            assert!(why.contains(told), "{text}: {why}");
        }
    }

    #[test]
    fn chips_read_as_words() {
        let today: Day = "2026-11-22".parse().expect("a day");
        let told = |query: &str| {
            let chips = chips(&state(query), Some(today)).into_iter();
            chips.map(|chip| format!("{} {}", chip.word, chip.value).trim().to_owned()).collect()
        };
        for (query, words) in [
            ("min_dqs=80", "score ≥ 80"),
            ("min_len=4&max_len=4", "length 4"),
            ("min_len=4&max_len=8", "length 4 to 8"),
            ("digits=none", "no digits"),
            ("tld=com,net", "TLD com, net"),
            ("not_starts=my", "not starts with my"),
            ("release_from=tomorrow&release_to=%2B3d", "drops 23 Nov to 25 Nov"),
            ("q=shop", "name contains shop"),
            ("max_rank=100000", "popularity rank at most 100000"),
        ] {
            let chips: Vec<String> = told(query);
            assert_eq!(chips, [words], "{query}");
        }
        assert_eq!(chips(&state("view=all&sort=length"), Some(today)), []);
    }
}
