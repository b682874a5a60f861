//! Terms that cap a score, and terms that explanations never print, from `data/scorer/terms.csv`.

use rustc_hash::FxHashMap;

use super::dictionary::Token;
use super::facts::Caps;
use super::label::{Label, RunKind};
use crate::vocab::named::{named_enum, parse_named};

static TABLE: &str = include_str!("../../data/scorer/terms.csv");

/// Minimum letters of terms matched inside longer words; shorter ones occur in too many words.
const INSIDE_LETTERS_MIN: usize = 4;

/// Minimum letters of a term that is recognised beside another one although the dictionary splits
/// them elsewhere.
const JOINED_LETTERS_MIN: usize = 3;

named_enum! {
    /// Meaning of a term; the head of the table explains each kind.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum TermKind {
        Slur = "slur",
        Crude = "crude",
        Sexual = "sexual",
        Adult = "adult",
        Minor = "minor",
        Abuse = "abuse",
        Care = "care",
        Harmless = "harmless",
        Spam = "spam",
        Brand = "brand",
    }
}
parse_named!(TermKind);

impl TermKind {
    /// Returns the cap of a term on its own.
    fn cap(self) -> Caps {
        match self {
            TermKind::Slur => Caps::OFFENSIVE,
            TermKind::Adult => Caps::ADULT,
            TermKind::Spam => Caps::SPAM,
            TermKind::Brand => Caps::TRADEMARK,
            TermKind::Crude
            | TermKind::Sexual
            | TermKind::Minor
            | TermKind::Abuse
            | TermKind::Care
            | TermKind::Harmless => Caps::default(),
        }
    }

    /// Returns true if explanations may print terms of this kind.
    fn prints(self) -> bool {
        !matches!(
            self,
            TermKind::Slur | TermKind::Crude | TermKind::Sexual | TermKind::Adult | TermKind::Abuse
        )
    }

    fn is_sexual(self) -> bool {
        matches!(self, TermKind::Sexual | TermKind::Adult)
    }

    /// Returns true for a term for minors and one for sex, in either order.
    fn joins(self, other: TermKind) -> bool {
        let pair = |minor, other: TermKind| minor == TermKind::Minor && other.is_sexual();
        pair(self, other) || pair(other, self)
    }
}

/// The reviewed list.
pub struct Terms {
    kinds: FxHashMap<&'static str, TermKind>,
    /// Words of kind harmless.
    harmless: Vec<&'static str>,
    /// Longer terms that no explanation may print, by their first [`INSIDE_LETTERS_MIN`] letters.
    inside: FxHashMap<[u8; INSIDE_LETTERS_MIN], Vec<&'static str>>,
}

impl Terms {
    /// Loads the table compiled into the program.
    pub fn load() -> Terms {
        let rows = TABLE.lines().filter(|line| !line.starts_with('#')).skip(1);
        let rows = rows.filter_map(|row| row.split_once(','));
        let kinds: FxHashMap<_, TermKind> =
            rows.filter_map(|(term, kind)| Some((term, kind.parse().ok()?))).collect();
        let mut inside: FxHashMap<_, Vec<_>> = FxHashMap::default();
        for (&term, _) in kinds.iter().filter(|(_, kind)| !kind.prints()) {
            if let Some(head) = term.as_bytes().first_chunk() {
                inside.entry(*head).or_default().push(term);
            }
        }
        let harmless = kinds.iter().filter(|(_, kind)| **kind == TermKind::Harmless);
        Terms { harmless: harmless.map(|(&word, _)| word).collect(), kinds, inside }
    }

    /// Returns the caps for the pieces of a label and its runs of letters.
    pub fn caps(&self, label: &Label, tokens: &[Token]) -> Caps {
        let pieces = tokens.iter().filter(|token| token.is_letters());
        let pieces = pieces.map(|token| (token.start, token.end));
        // The dictionary may split a term, as `school` and `girl`.
        let are_letters = |pair: &&[Token]| pair.iter().all(Token::is_letters);
        let pairs =
            tokens.windows(2).filter(are_letters).filter(|pair| pair[0].end == pair[1].start);
        let pairs = pairs.map(|pair| (pair[0].start, pair[1].end));
        let runs = label.runs.iter().filter(|run| run.kind == RunKind::Letters);
        let runs = runs.map(|run| (run.start, run.end));
        let wholes = pairs.clone().chain(runs.clone());
        let (mut caps, mut minor, mut sexual, mut care) = (Caps::default(), false, false, false);
        for (start, end) in pieces.chain(pairs).chain(runs) {
            let Some(kind) = self.kinds.get(label.text(start, end)) else { continue };
            if kind.is_sexual() && self.is_chance(label.whole_text(), start, end) {
                continue;
            }
            caps = caps.with(kind.cap());
            minor |= matches!(kind, TermKind::Minor | TermKind::Abuse);
            sexual |= kind.is_sexual() || *kind == TermKind::Abuse;
            care |= *kind == TermKind::Care;
        }
        // A single word has no seam.
        let wholes = wholes.filter(|_| tokens.len() > 1);
        let mut wholes = wholes.map(|(start, end)| label.text(start, end));
        let joined = minor && sexual || wholes.any(|text| self.joins(text));
        caps.with(Caps::MINORS.when(joined && !care))
    }

    /// Returns true if a piece of a label is part of a word that holds it by chance.
    fn is_chance(&self, label: &str, start: u16, end: u16) -> bool {
        let (start, end) = (usize::from(start), usize::from(end));
        let mut found = self
            .harmless
            .iter()
            .flat_map(|word| label.match_indices(word).map(|(at, word)| at..at + word.len()));
        found.any(|word| word.start <= start && end <= word.end)
    }

    /// Returns true for a run that consists of a term for minors and one for sex, which the
    /// dictionary may have split elsewhere.
    fn joins(&self, run: &str) -> bool {
        (JOINED_LETTERS_MIN..=run.len().saturating_sub(JOINED_LETTERS_MIN)).any(|at| {
            let kind = |text| self.kinds.get(text).copied();
            kind(&run[..at]).zip(kind(&run[at..])).is_some_and(|(one, other)| one.joins(other))
        })
    }

    /// Returns false for a word that no explanation may print. `word` must not have diacritics.
    pub fn may_print(&self, word: &str) -> bool {
        let mut places = word.as_bytes().windows(INSIDE_LETTERS_MIN).enumerate();
        let held = places.any(|(at, head)| {
            let head = head.first_chunk().expect("a window has its length");
            let mut terms = self.inside.get(head).into_iter().flatten();
            terms.any(|term| word[at..].starts_with(term))
        });
        !held && self.kinds.get(word).is_none_or(|kind| kind.prints())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocab::name::DomainName;
    use crate::{Scorer, Scratch, Spread};

    fn caps(name: &str) -> Vec<&'static str> {
        let name = DomainName::parse(name).expect(name);
        let mut scratch = Scratch::default();
        let scorer = Scorer::shared();
        let caps = scorer.score(&name, Spread::UNKNOWN, &mut scratch).signals.caps;
        let prohibited = caps.iter().any(|cap| cap.name == "minors");
        assert_eq!(scorer.is_prohibited(&name, &mut scratch), prohibited, "{name}");
        caps.iter().map(|cap| cap.name).collect()
    }

    #[test]
    fn every_row_is_listed_once_with_a_known_kind() {
        let rows: Vec<_> = TABLE.lines().filter(|line| !line.starts_with('#')).skip(1).collect();
        for row in &rows {
            let kind = row.split_once(',').and_then(|(_, kind)| kind.parse::<TermKind>().ok());
            assert!(kind.is_some(), "{row}");
        }
        assert_eq!(Terms::load().kinds.len(), rows.len(), "a term is listed twice");
    }

    #[test]
    fn names_that_join_minors_and_sex_are_prohibited() {
        for name in [
            "teenporn.com",
            "sexkids.net",
            "kidsex.de",
            "hotkidsex.com",
            "porn-4-teens.com",
            "xxxlolita.ru",
            "nakedschoolgirl.com",
            "kinderporno24.de",
            "pornoenfants.fr",
        ] {
            assert!(caps(name).contains(&"minors"), "{name}");
        }
        for name in [
            "teenvogue.com",
            "kidsexpo.com",
            "teensexpress.com",
            "kidsexchange.org",
            "childrensexhibit.com",
            "teenanalyst.com",
            "sexeducationforteens.org",
            "stopchildsexabuse.org",
            "lolita.com",
            "sussexkids.co.uk",
            "sexshop.de",
            "hotgirls.com",
            "schoolgirluniform.com",
        ] {
            assert!(!caps(name).contains(&"minors"), "{name}");
        }
    }

    #[test]
    fn adult_terms_of_each_language_are_capped() {
        for name in [
            "freeporn.com",
            "sexkontakte.de",
            "rencontreerotique.fr",
            "sexogratis.es",
            "incontrisesso.it",
            "sekskamerki.pl",
            "porrfilm.se",
            "gratisneuken.nl",
            "putaria.com.br",
            "escortpiger.dk",
            "seksivideot.fi",
            "eroticke.cz",
            "pornoizle.tr",
            "prostitutki.ru",
        ] {
            assert!(caps(name).contains(&"adult"), "{name}");
        }
        for name in [
            "essex.com",
            "sussex.org",
            "middlesex.ac.nz",
            "scunthorpe.com",
            "analyst.com",
            "analgesic.com",
            "cockpit.com",
            "cocktails.com",
            "therapist.com",
            "dickens.org",
            "sextant.com",
            "pussycat.com",
            "fordescort.com",
            "titanic.com",
            "document.com",
        ] {
            assert!(!caps(name).contains(&"adult"), "{name}");
        }
    }

    #[test]
    fn only_long_terms_are_matched_inside_words() {
        let terms = Terms::load();
        assert!(!terms.may_print("motherfucker") && !terms.may_print("ass"));
        assert!(terms.may_print("class") && terms.may_print("hotel"));
        for term in terms.inside.values().flatten() {
            assert!(!terms.may_print(&format!("x{term}")) && !terms.may_print(&format!("{term}x")));
        }
    }
}
