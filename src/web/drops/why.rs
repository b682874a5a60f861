//! Reasons of a score in a row of the list: at most two, those that distinguish the name. Suffix, length and
//! score have columns of their own; the opened row and the page of the name have the whole explanation.

use crate::components::{cap_word, counted, language};
use crate::drops::state::DropsParams;
use crate::index::query::rows::DropRow;
use crate::scorer::Signals;
use crate::vocab::kind::Kind;

/// Maximum number of words that are written out; more are harder to read than the name itself.
const WORDS_MAX: usize = 4;
/// Pronounceability, in percent, from which letters sound like a word.
const EASY_FROM: u8 = 65;
/// Points of a part that are worth a remark.
const MARKET_FROM: i32 = 10;
const SPREAD_FROM: i32 = 5;

/// Returns the reasons, without what the filters of the list say about all its rows.
pub fn why(drop: &DropRow<'_>, state: &DropsParams) -> String {
    let says_language = state.get("language").is_empty();
    reasons(drop.signals, drop.length, drop.other_tlds, says_language)
}

fn reasons(signals: &Signals<'_>, length: u8, other_tlds: u16, says_language: bool) -> String {
    let language = signals.language.filter(|_| says_language).map(language);
    let mut reasons = vec![made_of(signals, length, language.as_deref())];
    reasons.extend(remark(signals, other_tlds));
    if reasons.len() == 1 && has_parts(signals) {
        reasons.extend(language);
    }
    reasons.join(" · ")
}

/// Returns true if the label is shown in parts.
fn has_parts(signals: &Signals<'_>) -> bool {
    // Caps of words are reasons not to repeat them.
    let is_quoted =
        !signals.caps.iter().any(|cap| ["offensive", "adult", "minors"].contains(&cap.name));
    let has_word = matches!(signals.kind, Kind::Words | Kind::Name | Kind::Invented | Kind::Mixed);
    has_word && is_quoted && (2..=WORDS_MAX).contains(&signals.words.iter().count())
}

/// Says what a label consists of: its words, or the kind of its letters.
fn made_of(signals: &Signals<'_>, length: u8, language: Option<&str>) -> String {
    if has_parts(signals) {
        return signals.words.iter().collect::<Vec<_>>().join(" + ");
    }
    let is_easy = signals.pronounceability.get() >= EASY_FROM;
    match signals.kind {
        Kind::Word => language.map_or_else(|| "One word".to_owned(), |it| format!("{it} word")),
        Kind::Words => counted(signals.words.iter().count() as u32, "word"),
        Kind::Name => "Name of a person or place".to_owned(),
        Kind::Invented if is_easy => "Invented, easy to say".to_owned(),
        Kind::Invented => "Invented".to_owned(),
        Kind::Letters => match signals.pattern {
            Some(pattern @ "CVCV") => format!("4 letters, {pattern}"),
            _ => counted(length.into(), "letter"),
        },
        Kind::Number => format!("{}-digit number", signals.digits),
        Kind::Mixed => "Letters and digits".to_owned(),
    }
}

/// Returns the most important remark about a name.
fn remark(signals: &Signals<'_>, other_tlds: u16) -> Option<String> {
    let Signals { caps, points, digits, hyphens, kind, .. } = signals;
    match caps.first() {
        Some(cap) => Some(cap_word(cap).to_owned()),
        None if *hyphens > 0 => Some(counted(*hyphens, "hyphen")),
        None if *digits > 0 && *kind != Kind::Number => Some(counted(*digits, "digit")),
        None if points.market >= MARKET_FROM => Some("strong buyer demand".to_owned()),
        None if points.tld_spread >= SPREAD_FROM && other_tlds > 0 => {
            Some(format!("known in {}", counted(other_tlds.into(), "other TLD")))
        }
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scorer::{Scorer, Scratch, Spread};
    use crate::vocab::name::DomainName;

    fn of(text: &str, tlds: u32, says_language: bool) -> String {
        let name = DomainName::parse(text).expect("a name");
        let scored = Scorer::shared().score(&name, Spread::of(tlds), &mut Scratch::default());
        reasons(&scored.signals, name.length(), tlds as u16 - 1, says_language)
    }

    #[test]
    fn reasons_name_words_before_classes() {
        let (mut found, mut wanted) = (Vec::new(), Vec::new());
        for (name, tlds, expected) in [
            ("studiofresh.com", 1, "studio + fresh · English"),
            ("mrm.com", 1, "3 letters"),
            ("pritt.com", 1, "5 letters · also a brand"),
            ("7432.com", 1, "4-digit number"),
            ("garden-market.com", 1, "garden + market · 1 hyphen"),
            ("xqzvkt.com", 1, "6 letters"),
            ("google.com", 1, "One word · known brand"),
        ] {
            found.push((name, of(name, tlds, true)));
            wanted.push((name, expected.to_owned()));
        }
        assert_eq!(found, wanted);
    }

    #[test]
    fn a_filter_by_language_leaves_the_language_out() {
        assert_eq!(of("studiofresh.com", 1, false), "studio + fresh");
        assert_eq!(of("garten.de", 1, true), "German word");
        assert_eq!(of("garten.de", 1, false), "One word");
    }

    #[test]
    fn offensive_words_are_not_repeated() {
        let name = DomainName::parse("sexvideo.com").expect("a name");
        let scored = Scorer::shared().score(&name, Spread::of(1), &mut Scratch::default());
        assert!(!reasons(&scored.signals, 8, 0, true).contains('+'));
    }
}
