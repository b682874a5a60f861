//! The traits by which names are compared, and the weight of a sale.

use crate::scorer::{Scorer, Scratch};
use crate::vocab::name::{DomainName, to_unicode};

/// Years after which a sale counts half.
const HALF_LIFE_DAYS: f64 = 3.0 * 365.25;
/// Weight of a suffix of the same class.
const SAME_CLASS: f64 = 0.4;
/// Weight of a first or last word that both names have.
const SAME_WORD: f64 = 4.0;
/// Maximum letters of a label that is compared as letters, unless it is a word.
const LETTERS_MAX: usize = 4;

/// Classes of suffixes; only prices within a class are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SuffixClass {
    Com,
    /// `net` and `org`.
    Generic,
    /// Country codes in generic use.
    Repurposed,
    Country,
    Other,
}

impl SuffixClass {
    fn of(suffix: &str) -> SuffixClass {
        match suffix {
            "com" => SuffixClass::Com,
            "net" | "org" => SuffixClass::Generic,
            "io" | "ai" | "co" | "me" | "tv" => SuffixClass::Repurposed,
            _ if suffix.rsplit('.').next().is_some_and(|last| last.len() == 2) => {
                SuffixClass::Country
            }
            _ => SuffixClass::Other,
        }
    }
}

/// Shape of a label; only names of one shape are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shape {
    /// This many words, one to three.
    Words(u8),
    /// This many letters, one to four, that do not form words.
    Letters(u8),
    /// This many digits.
    Digits(u8),
    Hyphen,
    /// Digits and letters.
    Mixed,
    Other,
}

/// The traits of a name that prices depend on.
#[derive(Clone, Debug)]
pub struct Likeness {
    pub(crate) name: DomainName,
    pub(crate) class: SuffixClass,
    pub(crate) shape: Shape,
    pub(crate) is_adult: bool,
    /// Pieces of the label; empty for other pieces than words.
    words: Vec<String>,
    /// Whether no list may hold the name.
    pub(crate) is_prohibited: bool,
}

impl Likeness {
    /// Returns the traits of a name.
    pub fn of(name: &DomainName, scratch: &mut Scratch) -> Likeness {
        let observed = Scorer::shared().observe(name, scratch);
        let has_cap = |wanted: &str| observed.caps.iter().any(|cap| cap.name == wanted);
        Likeness {
            name: name.clone(),
            class: SuffixClass::of(name.tld()),
            shape: shape(&to_unicode(name.label()), &observed.words),
            is_adult: has_cap("adult"),
            is_prohibited: has_cap("minors"),
            words: observed.words,
        }
    }

    /// Returns the class, the shape and whether the name is adult: only names that share all three are compared.
    pub(crate) fn kin(&self) -> (SuffixClass, Shape, bool) {
        (self.class, self.shape, self.is_adult)
    }

    fn first_word(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    fn last_word(&self) -> &str {
        self.words.last().map_or("", String::as_str)
    }

    fn shared_words(&self, other: &Likeness) -> (bool, bool) {
        let same = |one: &str, other: &str| !one.is_empty() && one == other;
        (same(self.first_word(), other.first_word()), same(self.last_word(), other.last_word()))
    }

    /// Returns the weight of a sale of a name of the same [kin](Likeness::kin), without its age.
    pub(crate) fn weight(&self, sold: &Likeness) -> f64 {
        let suffix = if self.name.tld() == sold.name.tld() { 1.0 } else { SAME_CLASS };
        let longer = self.name.length().abs_diff(sold.name.length());
        let length = (-f64::from(longer) / 2.0).exp();
        let word = if self.shared_words(sold) == (false, false) { 1.0 } else { SAME_WORD };
        suffix * length * word
    }

    /// Says how the name of a sale resembles this name.
    pub(crate) fn reasons(&self, sold: &Likeness) -> Vec<String> {
        let word = match self.shared_words(sold) {
            _ if self.name == sold.name => Some("the same name".to_owned()),
            _ if self.name.label() == sold.name.label() => Some("the same label".to_owned()),
            (true, true) => Some("same first and last word".to_owned()),
            (true, false) => Some(format!("same first word {}", sold.first_word())),
            (false, true) => Some(format!("same last word {}", sold.last_word())),
            (false, false) => None,
        };
        let suffix = format!(".{}", to_unicode(sold.name.tld()));
        word.into_iter().chain([suffix, self.compared_length(sold)]).collect()
    }

    fn compared_length(&self, sold: &Likeness) -> String {
        let (own, other) = (self.name.length(), sold.name.length());
        let how = if other > own { "longer" } else { "shorter" };
        let unit = match self.shape {
            Shape::Words(_) | Shape::Letters(_) => "letter",
            _ => "character",
        };
        match other.abs_diff(own) {
            0 => "same length".to_owned(),
            1 => format!("one {unit} {how}"),
            by => format!("{by} {unit}s {how}"),
        }
    }
}

/// Weight of the age of a sale.
pub(crate) fn freshness(days: i32) -> f64 {
    0.5_f64.powf(f64::from(days) / HALF_LIFE_DAYS)
}

fn shape(label: &str, words: &[String]) -> Shape {
    let digits = label.chars().filter(char::is_ascii_digit).count();
    let count = |count: usize| u8::try_from(count).unwrap_or(u8::MAX);
    if label.contains('-') {
        Shape::Hyphen
    } else if digits == label.len() {
        Shape::Digits(count(digits))
    } else if digits > 0 {
        Shape::Mixed
    } else if (1..=3).contains(&words.len()) && words.iter().all(|word| !word.is_empty()) {
        Shape::Words(count(words.len()))
    } else if label.len() <= LETTERS_MAX && label.is_ascii() {
        Shape::Letters(count(label.len()))
    } else {
        Shape::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> Likeness {
        Likeness::of(&DomainName::parse(name).expect(name), &mut Scratch::default())
    }

    #[test]
    fn names_have_one_class_and_shape() {
        for (name, class, shape) in [
            ("solar.com", SuffixClass::Com, Shape::Words(1)),
            ("solarhealth.org", SuffixClass::Generic, Shape::Words(2)),
            ("bestsolarhealth.io", SuffixClass::Repurposed, Shape::Words(3)),
            ("xq.de", SuffixClass::Country, Shape::Letters(2)),
            ("xqz.co.uk", SuffixClass::Country, Shape::Letters(3)),
            ("xqzk.app", SuffixClass::Other, Shape::Letters(4)),
            ("8848.com", SuffixClass::Com, Shape::Digits(4)),
            ("solar-health.com", SuffixClass::Com, Shape::Hyphen),
            ("solar24.com", SuffixClass::Com, Shape::Mixed),
            ("xqzkvq.com", SuffixClass::Com, Shape::Other),
        ] {
            let it = of(name);
            assert_eq!((it.class, it.shape), (class, shape), "{name}: {:?}", it.words);
        }
    }

    #[test]
    fn a_weight_is_a_product_of_suffix_length_and_word() {
        let subject = of("solarhealth.com");
        let close = |sold: &str, weight: f64| {
            let got = subject.weight(&of(sold));
            assert!((got - weight).abs() < 1e-12, "{sold}: {got}");
        };
        close("brightriver.com", 1.0);
        close("brightrivers.com", (-0.5_f64).exp());
        close("solarriver.com", 4.0 * (-0.5_f64).exp());
        close("brighthealth.com", 4.0 * (-0.5_f64).exp());
        close("solarhealth.com", 4.0);
        let subject = of("solarhealth.net");
        assert!((subject.weight(&of("brightriver.org")) - 0.4).abs() < 1e-12);
        assert!((freshness(0) - 1.0).abs() < 1e-12);
        assert!((freshness(2 * 1_096) - 0.25).abs() < 1e-3);
    }

    #[test]
    fn reasons_name_word_suffix_and_length() {
        let subject = of("solarhealth.com");
        for (sold, reasons) in [
            ("brighthealth.com", "same last word health, .com, one letter longer"),
            ("solartree.com", "same first word solar, .com, 2 letters shorter"),
            ("solarhealth.com", "the same name, .com, same length"),
            ("brightriver.com", ".com, same length"),
        ] {
            assert_eq!(subject.reasons(&of(sold)).join(", "), reasons);
        }
        let reasons = of("solar-health.net").reasons(&of("solar-river.org"));
        assert_eq!(reasons, ["same first word solar", ".org", "one character shorter"]);
    }
}
