//! Labels that are one typing error from that of a popular name. Input: the first names of the popularity
//! lists. Output: the popular name that a label misspells, with its rank. A dictionary word misspells
//! nothing, and neither does a label that is popular itself.

use rustc_hash::FxHashMap;

use crate::corpus::ranked::RankedList;
use crate::error::{BuildError, GenerationError};
use crate::scorer::near::{Known, Near};
use crate::storage::draft::Draft;
use crate::storage::files::Files;
use crate::vocab::kind::Kind;
use crate::vocab::name::DomainName;
use crate::vocab::popularity::ListRank;

/// Names that are popular enough to be typed by many.
pub const POPULAR: u32 = 2_000;

/// File of the popular names: a line for each, the rank before the name.
const FILE: &str = "typos.popular";

/// A popular name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Popular {
    pub name: Box<str>,
    /// Best rank on the popularity lists.
    pub rank: ListRank,
}

impl Popular {
    fn label(&self) -> &str {
        self.name.split_once('.').map_or("", |(label, _)| label)
    }
}

/// Popular names, one for each label, and the index of their misspellings.
#[derive(Debug, Default)]
pub struct Typos {
    /// By label.
    popular: Vec<Popular>,
    near: Near,
}

impl Typos {
    /// Takes the first [`POPULAR`] names of each list.
    pub fn new(lists: &[RankedList]) -> Typos {
        let mut best = FxHashMap::<Box<[u8]>, Popular>::default();
        for entry in lists.iter().flat_map(|list| list.entries_from(b"")) {
            let label = entry.name.split(|&octet| octet == b'.').next().unwrap_or_default();
            if entry.rank.get() > POPULAR || !label.iter().all(u8::is_ascii_lowercase) {
                continue;
            }
            let name = String::from_utf8_lossy(entry.name).into();
            let found = Popular { name, rank: entry.rank };
            let held = best.entry(label.into()).or_insert_with(|| found.clone());
            if (found.rank, &found.name) < (held.rank, &held.name) {
                *held = found;
            }
        }
        Typos::of(best.into_values().collect())
    }

    fn of(mut popular: Vec<Popular>) -> Typos {
        popular.sort_unstable_by(|one, other| one.label().cmp(other.label()));
        let near = Near::new(popular.iter().map(|it| Known { label: it.label(), any: false }));
        Typos { popular, near }
    }

    /// Writes the popular names.
    ///
    /// # Errors
    /// A write fails.
    pub fn write(&self, draft: &Draft) -> Result<(), BuildError> {
        let lines = self.popular.iter().map(|it| format!("{} {}\n", it.rank.get(), it.name));
        draft.put(FILE, lines.collect::<String>().as_bytes())
    }

    /// Opens the file that [`Typos::write`] wrote.
    ///
    /// # Errors
    /// The file is missing, damaged or malformed.
    pub fn open(files: &Files) -> Result<Typos, GenerationError> {
        let bytes: Vec<u8> = files.take(FILE)?;
        let parse = |line: &str| {
            let (rank, name) = line.split_once(' ')?;
            Some(Popular { name: name.into(), rank: ListRank::new(rank.parse().ok()?)? })
        };
        let text = std::str::from_utf8(&bytes).ok();
        let popular: Option<Vec<_>> = text.and_then(|text| text.lines().map(parse).collect());
        popular.map(Typos::of).ok_or_else(|| files.malformed(FILE, "is no list of ranks and names"))
    }

    /// Returns the most popular name with this suffix.
    pub fn best_under(&self, suffix: &str) -> Option<DomainName> {
        let has_suffix =
            |it: &&Popular| it.name.split_once('.').is_some_and(|(_, of)| of == suffix);
        let of_suffix = self.popular.iter().filter(has_suffix);
        let names = of_suffix.filter_map(|it| Some((it.rank, DomainName::parse(&it.name).ok()?)));
        Some(names.min_by_key(|(rank, _)| *rank)?.1)
    }

    /// Returns the most popular name that a label of this kind misspells.
    pub fn of_label(&self, label: &str, kind: Kind) -> Option<&Popular> {
        let is_popular =
            || self.popular.binary_search_by(|popular| popular.label().cmp(label)).is_ok();
        let found = self.near.misspelt(label).map(|(at, _)| at);
        let found = &self.popular[found.min_by_key(|&at| (self.popular[at].rank, at))?];
        (kind != Kind::Word && !is_popular()).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::fixtures::round_trip;

    fn typos() -> Typos {
        let popular = [(14, "twitter.com"), (3, "facebook.com"), (900, "twister.de")];
        let popular = popular.map(|(rank, name)| Popular {
            name: name.into(),
            rank: ListRank::new(rank).expect("in range"),
        });
        Typos::of(popular.into())
    }

    #[test]
    fn labels_are_compared_with_the_most_popular_name() {
        let typos = typos();
        let found = |label, kind| typos.of_label(label, kind).map(|it| (&*it.name, it.rank.get()));
        for (label, kind, expected) in [
            ("twiter", Kind::Invented, Some(("twitter.com", 14))),
            ("facebok", Kind::Words, Some(("facebook.com", 3))),
            // One letter from both.
            ("twitser", Kind::Invented, Some(("twitter.com", 14))),
            ("twitter", Kind::Invented, None),
            // A popular name itself, and a word.
            ("twister", Kind::Invented, None),
            ("twisters", Kind::Word, None),
            ("solarpanel", Kind::Words, None),
        ] {
            assert_eq!(found(label, kind), expected, "{label}");
        }
    }

    #[test]
    fn popular_names_are_read_as_written() {
        let typos = typos();
        let (_folder, files) = round_trip(|draft| typos.write(draft)).expect("written");
        assert_eq!(Typos::open(&files).expect("sound").popular, typos.popular);
        let damaged = |text: &str| {
            let (_folder, files) =
                round_trip(|draft| draft.put(FILE, text.as_bytes())).expect("written");
            Typos::open(&files).is_err()
        };
        assert!(!damaged("") && damaged("twitter.com\n") && damaged("0 twitter.com\n"));
    }
}
