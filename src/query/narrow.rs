//! Advice for a query that exceeded its time budget: the condition on the text of labels that does
//! not narrow it, and what to add (`data/docs/queries.md`, What takes how long).

use crate::filter::{Filter, LabelFilter, ReadingFilter};
use crate::matcher::{Matcher, MatcherText};
use crate::text::Substring;
use crate::vocab::dqs::Dqs;
use crate::vocab::name::A_LABEL;

/// Characters of a text by which labels are found without reading all of them. The end of a label
/// counts as a character.
pub const GRAM_CHARS: usize = 3;

/// Names among which a query finds those that pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The drop list.
    Drops,
    /// All names. `has_grams` is false if the index finds no name by a part of its label.
    Names { has_prefix: bool, has_grams: bool },
}

/// Returns what narrows a query, as the end of a sentence: `` `contains` has "ab", … ``.
pub fn advice(filter: &Filter, scope: Scope) -> String {
    let reads_all = scope != Scope::Drops && filter.reading != ReadingFilter::default();
    let lacking = match reads_all {
        true => Some((
            "`kind`, `language`, `caps` and the number of words are computed for each name that never dropped"
                .to_owned(),
            "`stage`",
        )),
        false => lacking(&filter.label, scope),
    };
    let mut add: Vec<&str> = lacking.iter().map(|(_, add)| *add).collect();
    if filter.tlds.is_empty() {
        add.push("`tld`");
    }
    match scope {
        Scope::Names { has_prefix: false, .. } => add.push("`q`"),
        _ if filter.min_dqs == Dqs::MIN => add.push("`min_dqs`"),
        _ => {}
    }
    let last = add.pop();
    let rest = add.join(", ");
    let add = match last {
        None => "narrow the filters".to_owned(),
        Some(last) if rest.is_empty() => format!("add {last}"),
        Some(last) => format!("add {rest} or {last}"),
    };
    lacking.map_or(add.clone(), |(why, _)| format!("{why}; {add}"))
}

/// Returns the first condition on text that does not narrow the query, and what to add to it;
/// `None` if there is no such condition, or if another one narrows the query.
fn lacking(label: &LabelFilter, scope: Scope) -> Option<(String, &'static str)> {
    if scope == (Scope::Names { has_prefix: false, has_grams: false }) && label.has_text() {
        let why = "the index has no trigrams of all names, so the search reads every name";
        return Some((why.to_owned(), "`starts`"));
    }
    let texts = [("contains", &label.contains, 0), ("ends", &label.ends, 1)];
    let of_texts = texts.into_iter().filter(|(_, texts, _)| !texts.is_empty());
    let of_texts = of_texts.map(|(name, texts, end)| short_text(name, texts, end));
    let of_matchers = label.matchers.iter().map(textless);
    let found: Vec<_> = of_texts.chain(of_matchers).collect();
    if found.iter().any(Option::is_none) {
        return None;
    }
    found.into_iter().flatten().next()
}

/// Returns what is wrong with the texts of `contains` or `ends`; `end` is 1 if the end of the label
/// counts.
fn short_text(name: &str, texts: &[Substring], end: usize) -> Option<(String, &'static str)> {
    let least = GRAM_CHARS - end;
    let text = texts.iter().find(|text| !is_found(text, least))?;
    let text = text.as_str();
    Some(match text.starts_with(A_LABEL) {
        true => (
            format!("`{name}` has \"{text}\", which is compared with A-labels"),
            "the text in Unicode instead",
        ),
        false => (
            format!("`{name}` has \"{text}\", and fewer than {least} characters do not narrow it"),
            "a letter",
        ),
    })
}

/// Returns what is wrong with a pattern, an expression or a label to compare with.
fn textless(matcher: &Matcher) -> Option<(String, &'static str)> {
    let least = GRAM_CHARS - usize::from(matcher.ends_with_literal());
    let texts = matcher.literals();
    let is_found = !texts.is_empty() && texts.iter().all(|text| is_found(text, least));
    if is_found && !matcher.compares_a_labels() {
        return None;
    }
    let name = match matcher.text() {
        _ if matcher.compares_a_labels() => {
            let why = "a text that begins with `xn--` is compared with A-labels";
            return Some((why.to_owned(), "the text in Unicode instead"));
        }
        MatcherText::Pattern(_) => "pattern",
        MatcherText::Regex(_) => "regex",
        MatcherText::Like(_, distance) => {
            let least = if *distance > 1 { 11 } else { 7 };
            let why = format!("`like` has fewer than {least} characters");
            return Some((why, "letters"));
        }
    };
    Some((format!("`{name}` has no text of {least} characters that every match contains"), "one"))
}

fn is_found(text: &Substring, least: usize) -> bool {
    text.as_str().chars().count() >= least && !text.as_str().starts_with(A_LABEL)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(list: &[&str]) -> Vec<Substring> {
        list.iter().map(|text| Substring::parse(text).expect("a text")).collect()
    }

    fn matching(matcher: Result<Matcher, crate::matcher::MatcherError>) -> Filter {
        Filter::default().with_matchers(vec![matcher.expect("a matcher")])
    }

    fn of_label(label: LabelFilter) -> Filter {
        Filter { label, ..Filter::default() }
    }

    #[test]
    fn advice_names_the_condition_and_what_to_add() {
        let names = Scope::Names { has_prefix: false, has_grams: true };
        let contains = |list| of_label(LabelFilter { contains: texts(list), ..Default::default() });
        let ends = |list| of_label(LabelFilter { ends: texts(list), ..Default::default() });
        for (filter, expected) in [
            (
                contains(&["solar", "ab"]),
                "`contains` has \"ab\", and fewer than 3 characters do not narrow it; add a letter, `tld` or `q`",
            ),
            (
                ends(&["a"]),
                "`ends` has \"a\", and fewer than 2 characters do not narrow it; add a letter, `tld` or `q`",
            ),
            (
                contains(&["xn--solar"]),
                "`contains` has \"xn--solar\", which is compared with A-labels; \
                 add the text in Unicode instead, `tld` or `q`",
            ),
            (
                matching(Matcher::pattern("CVCV")),
                "`pattern` has no text of 3 characters that every match contains; add one, `tld` or `q`",
            ),
            (
                matching(Matcher::regex("[a-z]{4}")),
                "`regex` has no text of 3 characters that every match contains; add one, `tld` or `q`",
            ),
            (
                matching(Matcher::like("solar", 1)),
                "`like` has fewer than 7 characters; add letters, `tld` or `q`",
            ),
            (
                matching(Matcher::like("solarpanel", 2)),
                "`like` has fewer than 11 characters; add letters, `tld` or `q`",
            ),
            (contains(&["solar"]), "add `tld` or `q`"),
            (ends(&["ai"]), "add `tld` or `q`"),
        ] {
            assert_eq!(advice(&filter, names), expected);
        }
    }

    #[test]
    fn a_condition_that_narrows_suffices() {
        let names = Scope::Names { has_prefix: false, has_grams: true };
        let label = LabelFilter {
            contains: texts(&["a"]),
            ends: texts(&["solar"]),
            ..LabelFilter::default()
        };
        assert_eq!(advice(&of_label(label), names), "add `tld` or `q`");
    }

    #[test]
    fn advice_leaves_out_what_is_set() {
        let filter = Filter {
            tlds: vec!["com".into()],
            min_dqs: Dqs::clamped(1),
            ..matching(Matcher::pattern("CVCV"))
        };
        let why = "`pattern` has no text of 3 characters that every match contains";
        assert_eq!(advice(&filter, Scope::Drops), format!("{why}; add one"));
        let prefix = Scope::Names { has_prefix: true, has_grams: true };
        assert_eq!(advice(&filter, prefix), format!("{why}; add one"));
        let reading = ReadingFilter { min_words: 2, ..ReadingFilter::default() };
        let words = Filter { reading, ..filter.clone() };
        assert_eq!(
            advice(&words, prefix),
            "`kind`, `language`, `caps` and the number of words are computed for each name that never dropped; \
             add `stage`"
        );
        let other = Filter { label: LabelFilter::default(), ..filter };
        assert_eq!(advice(&other, prefix), "narrow the filters");
        let plain = of_label(LabelFilter { contains: texts(&["solar"]), ..Default::default() });
        assert_eq!(
            advice(&plain, Scope::Names { has_prefix: false, has_grams: false }),
            "the index has no trigrams of all names, so the search reads every name; add `starts`, `tld` or `q`"
        );
        assert_eq!(advice(&plain, Scope::Drops), "add `tld` or `min_dqs`");
    }
}
