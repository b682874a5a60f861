//! Texts that labels need, found in labels in order before anything else reads them. Nine names in
//! ten share the start of their label with the name before, so only the bytes that differ are
//! examined. The last two bytes of a text are compared with sixteen bytes at once, in place:
//! copying the bytes behind the shared ones and loading them again took three times as long.

use crate::vocab::filter::LabelFilter;
use crate::vocab::matcher::Matcher;
use crate::vocab::query::Substring;

/// Prefix of an A-label. Texts are those of the Unicode form, which it does not show.
pub const A_LABEL: &str = "xn--";

/// Texts of which a label needs one. They are texts of the Unicode form, which an A-label does not show.
#[derive(Debug)]
pub struct Needles {
    texts: Vec<Box<[u8]>>,
    /// The last bytes of the texts.
    last: [bool; 256],
    /// The label ends with the text.
    at_end: bool,
}

/// What [`Needles`] know of the labels read so far.
#[derive(Debug)]
pub struct NeedleTrail {
    /// Where the first text in the label read last ends; `usize::MAX` without one.
    end: usize,
    /// Bytes that all labels since then share with it.
    shared: usize,
}

impl Default for NeedleTrail {
    fn default() -> NeedleTrail {
        NeedleTrail { end: usize::MAX, shared: usize::MAX }
    }
}

impl NeedleTrail {
    /// Notes how many bytes the next label shares with the one before, read or not.
    #[inline]
    pub fn share(&mut self, bytes: usize) {
        self.shared = self.shared.min(bytes);
    }
}

impl Needles {
    /// The texts that narrow a filter most; `None` without any, or if reading labels from their start
    /// narrows more.
    pub fn new(filter: &LabelFilter) -> Option<Needles> {
        let of = |texts: &[Substring], at_end| {
            let is_plain =
                |text: &Substring| text.as_str().is_ascii() && !text.as_str().starts_with(A_LABEL);
            let are_plain = !texts.is_empty() && texts.iter().all(is_plain);
            are_plain.then(|| Needles::of(texts, at_end))
        };
        let is_usable = |matcher: &&Matcher| {
            !matcher.compares_a_labels() && !matcher.is_anchored() && !matcher.literals().is_empty()
        };
        let matcher = || filter.matchers.iter().find(is_usable);
        of(&filter.ends, true)
            .or_else(|| of(&filter.contains, false))
            .or_else(|| of(matcher()?.literals(), false))
    }

    fn of(texts: &[Substring], at_end: bool) -> Needles {
        let texts: Vec<Box<[u8]>> =
            texts.iter().map(|text| text.as_str().as_bytes().into()).collect();
        let mut last = [false; 256];
        texts
            .iter()
            .filter_map(|text| text.last())
            .for_each(|byte| last[usize::from(*byte)] = true);
        Needles { texts, last, at_end }
    }

    /// Whether a label may pass. A-labels always may.
    #[inline]
    pub fn may_pass(&self, trail: &mut NeedleTrail, label: &[u8]) -> bool {
        let is_one = |label: &[u8]| self.texts.iter().any(|text| label.ends_with(text));
        if label.starts_with(A_LABEL.as_bytes()) {
            trail.shared = 0;
            return true;
        }
        if self.at_end {
            return label.last().is_some_and(|byte| self.last[usize::from(*byte)]) && is_one(label);
        }
        let read = std::mem::replace(&mut trail.shared, usize::MAX).min(label.len());
        if trail.end <= read {
            return true;
        }
        // A text that the label before lacks ends in what differs from it.
        let ends = |(at, byte): (usize, &u8)| {
            (self.last[usize::from(*byte)] && is_one(&label[..=at])).then_some(at + 1)
        };
        let found = label.iter().enumerate().skip(read).find_map(ends);
        trail.end = found.unwrap_or(usize::MAX);
        found.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(list: &[&str]) -> Vec<Substring> {
        list.iter().map(|text| Substring::parse(text).expect("a text")).collect()
    }

    /// Reads labels in order, with the bytes that each shares with the one before. Every third
    /// label is skipped.
    #[test]
    fn labels_in_order_are_found_as_one_by_one() {
        let parts = ["a", "an", "ana", "so", "lar", "solar", "b", "x", "xn--", "s", "r", "r-s"];
        let mut labels: Vec<String> = Vec::new();
        for one in parts {
            for two in parts {
                labels.extend(parts.map(|three| format!("{one}{two}{three}")));
            }
        }
        labels.sort();
        labels.dedup();
        for (wanted, at_end) in [
            (&["solar"][..], false),
            (&["an", "rs"], false),
            (&["a"], false),
            (&["lar", "ra"], true),
        ] {
            let needles = Needles::of(&texts(wanted), at_end);
            let (mut trail, mut before) = (NeedleTrail::default(), String::new());
            for (at, label) in labels.iter().enumerate() {
                let shared = before.bytes().zip(label.bytes()).take_while(|(a, b)| a == b).count();
                before.clone_from(label);
                trail.share(shared);
                if at % 3 == 2 {
                    continue;
                }
                let holds = |text: &&str| {
                    if at_end { label.ends_with(*text) } else { label.contains(*text) }
                };
                let expected = label.starts_with(A_LABEL) || wanted.iter().any(holds);
                assert_eq!(
                    needles.may_pass(&mut trail, label.as_bytes()),
                    expected,
                    "{label} {wanted:?}"
                );
            }
        }
    }

    #[test]
    fn the_texts_that_narrow_most_are_used() {
        let needles = |filter: LabelFilter| Needles::new(&filter);
        let contains = |list| LabelFilter { contains: texts(list), ..LabelFilter::default() };
        assert!(needles(contains(&["solar"])).is_some());
        assert!(needles(contains(&["mün", "solar"])).is_none(), "A-labels do not show it");
        assert!(needles(contains(&["xn--a"])).is_none());
        let matchers = |matcher: &str| LabelFilter {
            matchers: vec![Matcher::regex(matcher).expect("a regular expression")],
            ..LabelFilter::default()
        };
        assert!(needles(matchers("(ai|gpt)$")).is_some());
        assert!(needles(matchers("^(shop|store)[a-z]*$")).is_none(), "its start narrows more");
        assert!(needles(matchers("[a-z]{4}")).is_none());
    }
}
