//! Conditions on labels: texts, and marks for digits, hyphens and internationalised labels. The
//! marks of dropped names are a column; those of other names are computed.

use std::borrow::Cow;

use memchr::memmem::Finder;

use crate::columns::names::text_of;
use crate::vocab::name::{A_LABEL, to_unicode};
use dropdex_query::filter::{Digits, Hyphens, Idn, LabelFilter};
use dropdex_query::matcher::{Matcher, Trail};
use dropdex_query::text::Substring;

/// Marks of a label, by its Unicode form.
const DIGIT: u8 = 1;
const ALL_DIGITS: u8 = 2;
const HYPHEN: u8 = 4;
const IDN: u8 = 8;

/// Returns the Unicode form of a label.
pub fn form_of(label: &str) -> Cow<'_, str> {
    if label.starts_with(A_LABEL) { to_unicode(label) } else { Cow::Borrowed(label) }
}

/// Returns the marks of a label.
pub fn marks_of(label: &str) -> u8 {
    marks(&form_of(label), label.starts_with(A_LABEL))
}

fn marks(form: &str, is_idn: bool) -> u8 {
    let digits = form.bytes().filter(u8::is_ascii_digit).count();
    let mark = |is_set: bool, mark: u8| if is_set { mark } else { 0 };
    mark(digits > 0, DIGIT)
        | mark(digits == form.len(), ALL_DIGITS)
        | mark(form.contains('-'), HYPHEN)
        | mark(is_idn, IDN)
}

/// Condition on the marks of a label.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MarkTest {
    mask: u8,
    wanted: u8,
}

impl MarkTest {
    /// Takes the conditions from a filter.
    pub fn new(filter: &LabelFilter) -> MarkTest {
        let mut test = MarkTest::default();
        let mut add = |mark: u8, is_set: bool| {
            test.mask |= mark;
            test.wanted |= if is_set { mark } else { 0 };
        };
        match filter.digits {
            Some(Digits::None) => add(DIGIT, false),
            Some(Digits::Some) => add(DIGIT, true),
            Some(Digits::Only) => add(ALL_DIGITS, true),
            None => {}
        }
        if let Some(hyphens) = filter.hyphens {
            add(HYPHEN, hyphens == Hyphens::Some);
        }
        if let Some(idn) = filter.idn {
            add(IDN, idn == Idn::Only);
        }
        test
    }

    /// Returns true if all labels pass.
    pub fn is_open(self) -> bool {
        self.mask == 0
    }

    /// Returns true if a label with these marks passes.
    #[inline]
    pub fn passes(self, marks: u8) -> bool {
        marks & self.mask == self.wanted
    }
}

/// Condition on the text of a label.
#[derive(Debug)]
pub struct TextTest {
    contains: Vec<Text>,
    starts: Vec<Text>,
    ends: Vec<Text>,
    not_contains: Vec<Text>,
    not_starts: Vec<Text>,
    not_ends: Vec<Text>,
    matchers: Vec<Matcher>,
    /// The matchers for labels in order.
    in_order: Vec<Matcher>,
    /// Whether `contains` and `ends` are not covered by [`TextTest::in_order`].
    has_more: bool,
}

/// State of the matchers of a [`TextTest`] after the previous label, for labels in order.
#[derive(Debug, Default)]
pub struct TextTrail {
    trails: Vec<Trail>,
    /// Bytes of the last label that all later labels share.
    shared: usize,
}

impl TextTrail {
    /// Records how many bytes the next label shares with the previous one, even if that one was not
    /// read.
    pub fn share(&mut self, bytes: usize) {
        self.shared = self.shared.min(bytes);
    }

    /// Returns the length of a prefix of the last label with which no label passes.
    pub fn dead_after(&self) -> Option<usize> {
        // Otherwise, the matchers did not read the label because of other conditions.
        let is_read = self.shared == usize::MAX;
        self.trails.iter().filter(|_| is_read).filter_map(Trail::dead_after).min()
    }
}

/// A text to find, and whether it is compared with the A-label.
#[derive(Debug)]
struct Text {
    finder: Finder<'static>,
    ascii: bool,
}

/// The two forms of a label.
#[derive(Clone, Copy)]
struct Forms<'a> {
    ascii: &'a [u8],
    unicode: &'a [u8],
}

impl Text {
    fn all(texts: &[Substring]) -> Vec<Text> {
        let text = |text: &Substring| Text {
            finder: Finder::new(text.as_str()).into_owned(),
            ascii: text.as_str().starts_with(A_LABEL),
        };
        texts.iter().map(text).collect()
    }

    fn of<'a>(&self, forms: Forms<'a>) -> &'a [u8] {
        if self.ascii { forms.ascii } else { forms.unicode }
    }

    fn is_in(&self, forms: Forms<'_>) -> bool {
        self.finder.find(self.of(forms)).is_some()
    }

    fn starts(&self, forms: Forms<'_>) -> bool {
        self.of(forms).starts_with(self.finder.needle())
    }

    fn ends(&self, forms: Forms<'_>) -> bool {
        self.of(forms).ends_with(self.finder.needle())
    }
}

impl TextTest {
    /// Compiles the texts of a filter; `None` if it has none.
    pub fn new(filter: &LabelFilter) -> Option<TextTest> {
        let LabelFilter { contains, starts, ends, not_contains, not_starts, not_ends, .. } = filter;
        let lists = [contains, starts, ends, not_contains, not_starts, not_ends];
        if lists.iter().all(|list| list.is_empty()) && filter.matchers.is_empty() {
            return None;
        }
        let [contains, starts, ends, not_contains, not_starts, not_ends] =
            lists.map(|list| Text::all(list));
        let (matchers, in_order) = (filter.matchers.clone(), filter.matchers.clone());
        let has_more = !contains.is_empty() || !ends.is_empty();
        Some(TextTest {
            contains,
            starts,
            ends,
            not_contains,
            not_starts,
            not_ends,
            matchers,
            in_order,
            has_more,
        })
    }

    /// Prepares for many labels in order: compiles `contains` and `ends` of the filter into
    /// matchers.
    pub fn expect_order(&mut self, filter: &LabelFilter) {
        let lists = [(&filter.contains, ""), (&filter.ends, "$")];
        let made: Vec<Option<Matcher>> =
            lists.iter().map(|(texts, end)| one_of(texts, end)).collect();
        self.has_more =
            lists.iter().zip(&made).any(|((texts, _), made)| made.is_none() && !texts.is_empty());
        self.in_order.extend(made.into_iter().flatten());
    }

    /// As [`TextTest::passes`], for labels in order: a matcher reads only the bytes that differ
    /// from the previous label.
    pub fn passes_after(&self, trail: &mut TextTrail, label: &[u8]) -> bool {
        if label.starts_with(A_LABEL.as_bytes()) {
            trail.shared = 0;
            return self.passes(text_of(label));
        }
        trail.trails.resize_with(self.in_order.len(), Trail::default);
        let shared = std::mem::replace(&mut trail.shared, usize::MAX);
        let mut matches = true;
        for (matcher, trail) in self.in_order.iter().zip(&mut trail.trails) {
            matches &= matcher.extend(trail, shared, label);
        }
        let forms = Forms { ascii: label, unicode: label };
        matches && (!self.has_more || self.contained(forms)) && self.others_pass(forms)
    }

    /// Returns true if a label (in A-label form) passes.
    pub fn passes(&self, label: &str) -> bool {
        let form = form_of(label);
        let forms = Forms { ascii: label.as_bytes(), unicode: form.as_bytes() };
        self.matchers.iter().all(|matcher| matcher.matches(label, &form)) && self.texts_pass(forms)
    }

    fn texts_pass(&self, forms: Forms<'_>) -> bool {
        self.contained(forms) && self.others_pass(forms)
    }

    fn contained(&self, forms: Forms<'_>) -> bool {
        (self.ends.is_empty() || self.ends.iter().any(|text| text.ends(forms)))
            && (self.contains.is_empty() || self.contains.iter().any(|text| text.is_in(forms)))
    }

    fn others_pass(&self, forms: Forms<'_>) -> bool {
        let any = |texts: &[Text], holds: fn(&Text, Forms<'_>) -> bool| {
            texts.iter().any(|text| holds(text, forms))
        };
        (self.starts.is_empty() || any(&self.starts, Text::starts))
            && !any(&self.not_starts, Text::starts)
            && !any(&self.not_ends, Text::ends)
            && !any(&self.not_contains, Text::is_in)
    }
}

/// Returns a matcher for labels with one of these texts, followed by `end`; `None` without texts,
/// if a text starts like an A-label, or if the matcher would be too large. The matcher must not be
/// used for A-labels.
fn one_of(texts: &[Substring], end: &str) -> Option<Matcher> {
    let is_a_label = |text: &Substring| text.as_str().starts_with(A_LABEL);
    if texts.is_empty() || texts.iter().any(is_a_label) {
        return None;
    }
    let escaped: Vec<String> =
        texts.iter().map(|text| regex_syntax::escape(text.as_str())).collect();
    Matcher::regex(&format!("({}){end}", escaped.join("|"))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocab::name::DomainName;

    fn label(text: &str) -> String {
        DomainName::parse(&format!("{text}.com")).expect("a name").label().to_owned()
    }

    #[test]
    fn marks_are_those_of_the_unicode_form() {
        for (text, digits, hyphens, idn) in [
            ("solar", Digits::None, false, false),
            ("a1-b", Digits::Some, true, false),
            ("777", Digits::Only, false, false),
            ("münchen", Digits::None, false, true),
            ("7-ü", Digits::Some, true, true),
        ] {
            let marks = marks_of(&label(text));
            let passes = |filter: LabelFilter| MarkTest::new(&filter).passes(marks);
            for wanted in Digits::ALL {
                let holds = wanted == digits || (wanted == Digits::Some && digits == Digits::Only);
                let filter = LabelFilter { digits: Some(wanted), ..LabelFilter::default() };
                assert_eq!(passes(filter), holds, "{text} {wanted}");
            }
            for wanted in Hyphens::ALL {
                let filter = LabelFilter { hyphens: Some(wanted), ..LabelFilter::default() };
                assert_eq!(passes(filter), (wanted == Hyphens::Some) == hyphens, "{text} {wanted}");
            }
            for wanted in Idn::ALL {
                let filter = LabelFilter { idn: Some(wanted), ..LabelFilter::default() };
                assert_eq!(passes(filter), (wanted == Idn::Only) == idn, "{text} {wanted}");
            }
        }
    }

    #[test]
    fn texts_match_the_unicode_form_and_a_labels_the_a_label() {
        let texts = |list: &[&str]| -> Vec<Substring> {
            list.iter().map(|text| Substring::parse(text).expect("a text")).collect()
        };
        let idn = label("münchen");
        let passes = |filter: LabelFilter| TextTest::new(&filter).expect("texts").passes(&idn);
        let starts = |text| LabelFilter { starts: texts(&[text]), ..LabelFilter::default() };
        assert!(passes(starts("MÜN")) && passes(starts("xn--mn")) && !passes(starts("xn")));
        let ends = LabelFilter { ends: texts(&["3ya", "hen"]), ..LabelFilter::default() };
        assert!(passes(ends));
        let not = LabelFilter { not_contains: texts(&["x", "nch"]), ..LabelFilter::default() };
        assert!(!passes(not));
        let none = LabelFilter { not_ends: texts(&["3ya"]), ..LabelFilter::default() };
        assert!(passes(none), "the A-label is not compared");
    }
}
