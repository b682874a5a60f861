//! A fast pre-check for texts that labels must contain, for labels in order. Nine names in ten
//! share the start of their label with the previous name, so only the bytes that differ are
//! examined. The last two bytes of a text are compared with sixteen bytes at once, in place;
//! copying the bytes after the shared ones and loading the copy took three times as long.

use crate::vocab::name::A_LABEL;
use dropdex_query::filter::LabelFilter;
use dropdex_query::matcher::Matcher;
use dropdex_query::text::Substring;

/// Number of bytes that are compared at once. The byte after these is also read.
pub const LANES: usize = 16;
const WORD: usize = size_of::<u64>();
/// The value 1 in each byte.
const ONES: u64 = u64::MAX / 255;

/// Texts of which a passing label contains at least one. The texts refer to the Unicode form, so
/// they cannot be searched in an A-label.
#[derive(Debug)]
pub struct Needles {
    texts: Vec<Needle>,
    /// Whether the label must end with the text.
    at_end: bool,
}

#[derive(Debug)]
struct Needle {
    text: Box<[u8]>,
    /// The last byte of the text, in all bytes of a word.
    last: u64,
    /// The second-to-last byte of the text, in all bytes of a word, and a mask of the bits to
    /// compare, which is zero for a text of one byte.
    before: (u64, u64),
}

/// State of [`Needles`] after the labels read so far.
#[derive(Debug)]
pub struct NeedleTrail {
    /// End of the first text found in the last label; `usize::MAX` if there is none.
    end: usize,
    /// Bytes of the last label that all later labels share.
    shared: usize,
}

impl Default for NeedleTrail {
    fn default() -> NeedleTrail {
        NeedleTrail { end: usize::MAX, shared: 0 }
    }
}

impl NeedleTrail {
    /// Notes how many bytes the next label shares with the previous one, read or not.
    #[inline]
    pub fn share(&mut self, bytes: usize) {
        self.shared = self.shared.min(bytes);
    }
}

impl Needle {
    fn new(text: &Substring) -> Needle {
        let text: Box<[u8]> = text.as_str().as_bytes().into();
        let mut last = text.iter().rev().map(|&byte| u64::from(byte) * ONES);
        let (last, before) = (last.next().unwrap_or_default(), last.next());
        Needle { text, last, before: before.map_or((0, 0), |before| (before, u64::MAX)) }
    }

    /// Returns true if the text may end in the first `len` bytes of `rest`, in which a label
    /// differs from the previous one. Following bytes may cause false positives.
    #[inline(always)]
    fn may_end(&self, rest: &[u8], len: usize) -> bool {
        if rest[0] == self.last as u8 {
            return true;
        }
        let word =
            |at: usize| u64::from_le_bytes(rest[at..at + WORD].try_into().unwrap_or_default());
        let is_at = |at: usize| {
            let (of, counts) = self.before;
            let differ = (word(at) ^ of) & counts | word(at + 1) ^ self.last;
            // A byte without a difference underflows, which sets its highest bit.
            differ.wrapping_sub(ONES) & !differ & (ONES << 7) != 0
        };
        is_at(0) | is_at(WORD) || (LANES..len).step_by(WORD).any(is_at)
    }

    fn is_end_of(&self, label: &[u8]) -> bool {
        label.last() == self.text.last() && label.ends_with(&self.text)
    }
}

impl Needles {
    /// Returns the most selective texts of a filter; `None` if it has none, or if reading labels
    /// from their start is more selective.
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
        Needles { texts: texts.iter().map(Needle::new).collect(), at_end }
    }

    /// Returns true if a label may pass; A-labels always may. The label shares its first bytes with
    /// the previous label, whether or not that label was read. `rest` starts with the other bytes
    /// of the label, which are followed by at least [`LANES`] + 1 bytes.
    #[inline(always)]
    pub fn may_pass(&self, trail: &mut NeedleTrail, label: &[u8], rest: &[u8]) -> bool {
        let len = rest.len() - LANES - 1;
        let shared = label.len() - len;
        if label.first() == A_LABEL.as_bytes().first() && label.starts_with(A_LABEL.as_bytes()) {
            trail.shared = 0;
            return true;
        }
        if self.at_end {
            return self.texts.iter().any(|text| text.is_end_of(label));
        }
        let read = std::mem::replace(&mut trail.shared, usize::MAX).min(shared);
        if trail.end <= read {
            return true;
        }
        // A text that is not in the previous label must end in the differing part.
        let may_be = read < shared || self.texts.iter().any(|text| text.may_end(rest, len));
        trail.end = if may_be { self.end_in(label, read) } else { usize::MAX };
        trail.end != usize::MAX
    }

    /// Returns the end of the first text that ends after `from` bytes; `usize::MAX` if there is
    /// none.
    #[cold]
    fn end_in(&self, label: &[u8], from: usize) -> usize {
        let is_end = |end: &usize| self.texts.iter().any(|text| text.is_end_of(&label[..*end]));
        (from + 1..=label.len()).find(is_end).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(list: &[&str]) -> Vec<Substring> {
        list.iter().map(|text| Substring::parse(text).expect("a text")).collect()
    }

    /// Reads labels in order, with the number of bytes that each shares with the previous one.
    /// Every third label is skipped.
    #[test]
    fn labels_in_order_match_like_single_labels() {
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
                // Bytes after a label must not affect the result.
                let rest = format!("{}{}", &label[shared..], &"solar".repeat(4)[..=LANES]);
                assert_eq!(
                    needles.may_pass(&mut trail, label.as_bytes(), rest.as_bytes()),
                    expected,
                    "{label} {wanted:?}"
                );
            }
        }
    }

    #[test]
    fn the_most_selective_texts_are_used() {
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
