//! Filters in words: the chips above the list, and the text of the query bar that adds filters
//! (`score:>=80 len:4-8 tld:com -digits drops:+3d`). Chips and terms represent parameters of the
//! URL.

use crate::drops::state::{DropsParams, NEW};
use crate::query::conditions::{Bar, CONDITIONS, Condition, Range, Term};
use crate::service::filter_words;
pub use crate::service::filter_words::Chip;
use crate::vocab::day::Day;

/// Examples of all kinds of terms in the query bar.
pub fn examples() -> impl Iterator<Item = (&'static str, &'static str)> {
    const PHRASES: [(&str, &str); 2] =
        [("one word", "one dictionary word"), ("4 letters", "four letters and nothing else")];
    CONDITIONS.iter().flat_map(|condition| condition.help.iter().copied()).chain(PHRASES)
}

/// Returns the filters in words. With `today`, relative days become dates.
pub fn chips(state: &DropsParams, today: Option<Day>) -> Vec<Chip> {
    let value = match state.get(NEW) {
        "" => None,
        "since-visit" => Some("new since your last visit"),
        "seen" => Some("seen before"),
        _ => Some("new names"),
    };
    let new = value.map(|value| Chip {
        word: String::new(),
        value: value.to_owned(),
        parameters: vec![NEW],
    });
    let others = filter_words::chips(&|name| state.get(name), &DropsParams::filters_by, today);
    new.into_iter().chain(others).collect()
}

/// Returns the filters as text: `TLD com, no digits`.
pub fn described(state: &DropsParams) -> String {
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
pub fn add(state: &DropsParams, text: &str) -> Result<DropsParams, String> {
    let mut values: Vec<(&'static str, String)> = Vec::new();
    for token in expanded(tokens(text)) {
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
        // Texts and TLDs are added to existing ones; other filters are replaced.
        let before = next.get(name);
        let is_list = Condition::of_parameter(name).is_some_and(|it| it.kind.is_list());
        let joined = match is_list && !before.is_empty() && !value.is_empty() {
            true if before.split(',').any(|item| item == value) => before.to_owned(),
            true => format!("{before},{value}"),
            false => value.clone(),
        };
        next = next.with(&[(name, &joined)]);
    }
    Ok(next)
}

/// A word of the query bar.
#[derive(Default)]
struct Token {
    text: String,
    /// Whether a part of it was between quotation marks.
    was_quoted: bool,
}

/// Splits a text into words, which may contain spaces between quotation marks.
fn tokens(text: &str) -> Vec<Token> {
    let (mut tokens, mut token, mut is_quoted) = (Vec::new(), Token::default(), false);
    for char in text.chars() {
        match char {
            '"' => (is_quoted, token.was_quoted) = (!is_quoted, true),
            char if char.is_whitespace() && !is_quoted => tokens.push(std::mem::take(&mut token)),
            char => token.text.push(char),
        }
    }
    tokens.push(token);
    tokens.retain(|token| !token.text.is_empty());
    tokens
}

/// Replaces phrases by the terms that they stand for. Words between quotation marks are texts.
fn expanded(tokens: Vec<Token>) -> Vec<String> {
    let mut terms = Vec::with_capacity(tokens.len());
    let mut tokens = tokens.into_iter().peekable();
    while let Some(Token { text, was_quoted }) = tokens.next() {
        let next = tokens.peek().filter(|next| !was_quoted && !next.was_quoted);
        match next.and_then(|next| phrase(&text.to_lowercase(), &next.text.to_lowercase())) {
            Some(phrase) => {
                tokens.next();
                terms.extend(phrase.split(' ').map(str::to_owned));
            }
            None => terms.push(text),
        }
    }
    terms
}

/// Numbers that people write as words, from 1.
const NUMBERS: [&str; 10] =
    ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];

fn number(text: &str) -> Option<usize> {
    let spelled = NUMBERS.iter().position(|word| *word == text).map(|place| place + 1);
    spelled.or_else(|| text.parse().ok()).filter(|number| (1..=63).contains(number))
}

/// Returns the terms that a phrase of two words stands for.
fn phrase(first: &str, second: &str) -> Option<String> {
    let terms = match (number(first), first, second) {
        (Some(1), _, "word") => "kind:word".to_owned(),
        (Some(words), _, "words") => format!("words:{words}"),
        (Some(len), _, "letters" | "letter") => format!("len:{len} -digits -hyphens"),
        (Some(len), _, "digits" | "digit" | "numbers") => format!("len:{len} digits:only"),
        (Some(len), _, "characters" | "character") => format!("len:{len}"),
        (_, "no", "digits" | "numbers") => "-digits".to_owned(),
        (_, "no", "hyphens" | "hyphen" | "dashes") => "-hyphens".to_owned(),
        (_, "no", "idns") => "-idn".to_owned(),
        (_, "no", "trademarks" | "spam") => "-caps".to_owned(),
        _ => return None,
    };
    Some(terms)
}

/// Returns phrases that begin with a text.
pub fn phrases(start: &str) -> Vec<String> {
    const KNOWN: [&str; 6] =
        ["one word", "two words", "no digits", "no hyphens", "no trademarks", "no idns"];
    let start = start.to_lowercase();
    let first = start.split(' ').next().unwrap_or_default();
    let counted = number(first).filter(|number| *number > 1).into_iter();
    let counted = counted
        .flat_map(|_| ["letters", "digits", "characters", "words"])
        .map(|unit| format!("{first} {unit}"));
    let mut phrases: Vec<_> = KNOWN.into_iter().map(str::to_owned).chain(counted).collect();
    phrases.retain(|phrase| !start.is_empty() && phrase.starts_with(&start));
    phrases.dedup();
    phrases
}

/// Names of a condition in the query bar.
pub fn keys(condition: &'static Condition) -> &'static [&'static str] {
    match &condition.bar {
        Bar::Low(range) => range.keys,
        Bar::Value(term) => term.keys,
        Bar::Feature(_) => std::slice::from_ref(&condition.parameter),
        Bar::None | Bar::High | Bar::Excluded => &[],
    }
}

fn keyed(
    key: &str,
    value: &str,
    is_not: bool,
    values: &mut Vec<(&'static str, String)>,
) -> Result<(), String> {
    let Some(condition) = CONDITIONS.iter().find(|condition| keys(condition).contains(&key)) else {
        let mut known: Vec<_> = CONDITIONS.iter().filter(|it| !keys(it).is_empty()).collect();
        known.sort_by_key(|condition| filter_words::place(condition));
        let keys: Vec<_> = known.into_iter().map(|condition| keys(condition)[0]).collect();
        return Err(format!("Unknown filter “{key}”. Filters: {}.", keys.join(", ")));
    };
    let parameter = condition.parameter;
    match condition.bar {
        Bar::Low(_) if is_not => {
            Err(format!("“-{key}:” is not a filter. Write {key}:<={value}, for example."))
        }
        Bar::Low(Range { high, .. }) => {
            let (from, to) = bounds(condition.kind.is_day(), value)?;
            values.extend([(parameter, from), (high, to)]);
            Ok(())
        }
        Bar::Feature(says) if is_not || !says.iter().any(|(known, _)| *known == value) => {
            let known: Vec<_> = says.iter().map(|(known, _)| format!("{key}:{known}")).collect();
            Err(format!("Write {}.", known.join(" or ")))
        }
        Bar::Value(Term { not, .. }) if is_not => {
            let what = || format!("“-{key}:” is not a filter: {key} cannot be excluded.");
            values.push((not.ok_or_else(what)?, value.to_owned()));
            Ok(())
        }
        _ => {
            let is_most = parameter.starts_with("max_");
            values.push((parameter, if is_most { plain_number(value) } else { value.to_owned() }));
            Ok(())
        }
    }
}

fn plain(text: &str, is_not: bool, values: &mut Vec<(&'static str, String)>) {
    let feature = CONDITIONS.iter().find_map(|condition| match condition.bar {
        Bar::Feature(says) if condition.parameter == text && says[0].0 == "none" => {
            Some((condition.parameter, says))
        }
        _ => None,
    });
    if let Some((parameter, says)) = feature {
        // A bare `idn` means names that are IDNs; a bare `digits` means names with digits.
        let some = says.get(1).map_or("none", |(value, _)| value);
        values.push((parameter, if is_not { "none" } else { some }.to_owned()));
    } else if let Some(tld) = text.strip_prefix('.').filter(|tld| !tld.is_empty()) {
        values.push((if is_not { "not_tld" } else { "tld" }, tld.to_owned()));
    } else {
        values.push((if is_not { "not_contains" } else { "contains" }, text.to_owned()));
    }
}

/// Expands the number in `<=100k`, `100K`, `1m` or `5000`. Leaves other texts unchanged.
fn plain_number(text: &str) -> String {
    let text = text.strip_prefix("<=").unwrap_or(text);
    let lower = text.to_ascii_lowercase();
    let unit = [("k", "000"), ("m", "000000")]
        .into_iter()
        .find_map(|(unit, zeros)| Some((lower.strip_suffix(unit)?, zeros)));
    unit.map_or_else(|| text.to_owned(), |(number, zeros)| format!("{number}{zeros}"))
}

/// Parses the bounds in `>=80`, `<=8`, `4-8` and `4`; for days also in `2026-11-23..2026-11-25` and
/// `+3d`, which means the three days from tomorrow on.
fn bounds(are_days: bool, text: &str) -> Result<(String, String), String> {
    let (low, high) = if let Some(low) = text.strip_prefix(">=") {
        (low, "")
    } else if let Some(high) = text.strip_prefix("<=") {
        ("", high)
    } else if text.starts_with(['<', '>']) {
        return Err(format!("Write >= or <= instead of “{}”.", &text[..1]));
    } else {
        match are_days {
            false => text.split_once('-').unwrap_or((text, text)),
            true if text.starts_with('+') => ("tomorrow", text),
            true => text.split_once("..").unwrap_or((text, text)),
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
    use crate::form::Fields;

    fn state(query: &str) -> DropsParams {
        DropsParams::of(&Fields::from_query(Some(query)))
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
            ("adult adult:include", "/?contains=adult&adult=include"),
            ("drops:+3d", "/?release_from=tomorrow&release_to=%2B3d"),
            (
                "drops:2026-11-27T14:00Z..2026-11-28",
                "/?release_from=2026-11-27T14%3A00Z&release_to=2026-11-28",
            ),
            ("drops:tomorrow", "/?release_from=tomorrow&release_to=tomorrow"),
            ("dropped:2026-11-01..today", "/?dropped_from=2026-11-01&dropped_to=today"),
            ("tlds:>=5 seen:2", "/?min_tlds=5&min_drops=2"),
            ("kind:word lang:en,de", "/?kind=word&language=en%2Cde"),
            ("words:2 -caps", "/?min_words=2&max_words=2&caps=none"),
            ("SCORE:<=40", "/?max_dqs=40"),
            ("rank:100k", "/?max_rank=100000"),
            ("rank:<=5000", "/?max_rank=5000"),
            ("rank:1M", "/?max_rank=1000000"),
            ("one word .com", "/?kind=word&tld=com"),
            ("two words no digits", "/?min_words=2&max_words=2&digits=none"),
            ("4 letters", "/?min_len=4&max_len=4&digits=none&hyphens=none"),
            ("Five Characters shop", "/?min_len=5&max_len=5&contains=shop"),
            ("3 digits", "/?min_len=3&max_len=3&digits=only"),
            ("\"one\" word", "/?contains=one%2Cword"),
            ("no letters 64 letters", "/?contains=no%2Cletters%2C64"),
            ("", "/"),
        ] {
            let path_of = |state: &DropsParams| {
                let mut pairs: Vec<_> = state.parameters().collect();
                pairs.sort_unstable();
                pairs.into_iter().map(|(name, value)| (name, value.to_owned())).collect::<Vec<_>>()
            };
            let added =
                add(&DropsParams::default(), text).unwrap_or_else(|why| panic!("{text}: {why}"));
            let query = path.split_once('?').map_or("", |(_, query)| query);
            assert_eq!(path_of(&added), path_of(&state(query)), "{text}");
        }
    }

    #[test]
    fn offered_phrases_are_understood() {
        for start in ["o", "t", "n", "4", "four l", "7 c"] {
            let phrases = phrases(start);
            assert!(!phrases.is_empty(), "{start}");
            for text in phrases {
                let added = add(&DropsParams::default(), &text).expect("understood");
                assert_eq!(added.get("contains"), "", "{text}");
            }
        }
        assert_eq!(phrases(""), [""; 0]);
    }

    #[test]
    fn added_filters_keep_the_others() {
        let before = state("tld=com&contains=shop&min_dqs=40&offset=100");
        let after = add(&before, "tld:net shop score:>=60").expect("understood");
        assert_eq!(
            (after.get("tld"), after.get("contains"), after.get("min_dqs"), after.get("offset")),
            ("com,net", "shop", "60", "")
        );
    }

    #[test]
    fn unknown_terms_are_reported() {
        for (text, told) in [
            ("colour:red", "Unknown filter “colour”. Filters: score, len,"),
            ("score:", "Write a value after “score:”."),
            ("score:>80", "Write >= or <= instead of “>”."),
            ("-len:4", "“-len:” is not a filter."),
            ("digits:many", "Write digits:none or digits:some or digits:only."),
            ("-like:shop", "like cannot be excluded"),
            ("-rank:100k", "rank cannot be excluded"),
        ] {
            let why = add(&DropsParams::default(), text).expect_err(text);
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
            ("release_from=2026-11-23T14:00Z", "drops ≥ 23 Nov, 14:00 UTC"),
            ("release_to=2027-11-23T14:00:30Z", "drops ≤ 23 Nov 2027, 14:00:30 UTC"),
            ("q=shop", "name contains shop"),
            ("max_rank=100000", "popularity rank at most 100000"),
        ] {
            let chips: Vec<String> = told(query);
            assert_eq!(chips, [words], "{query}");
        }
        assert_eq!(chips(&state("view=all&sort=length"), Some(today)), []);
    }
}
