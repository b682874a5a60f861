//! Scores of any name, whether or not the corpus contains it.
//!
//! Names of the corpus get the score that lists and dossiers show, from the same scorer and spread.

use std::ops::ControlFlow;

use crate::columns::names::{Names, VisitedName};
use crate::columns::table::open_tlds;
use crate::columns::tlds::Tlds;
use crate::query::index::{Index, with_row_buffers};
use crate::scorer::{Coverage, Scored, Scorer, Signals, Spread};
use crate::vocab::dqs::Dqs;
use crate::vocab::name::DomainName;

/// Microseconds per name, plus one for each of its bytes. Most names take about five microseconds
/// in total; long names without words take more.
const NAME_US: usize = 5;

/// Facts of the corpus on which a score depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Whether the name is in the corpus.
    pub known: bool,
    pub spread: Spread,
}

impl Standing {
    /// The facts without a corpus.
    pub const WITHOUT_CORPUS: Standing = Standing { known: false, spread: Spread::UNKNOWN };

    /// Looks up `name`.
    pub fn new(name: &DomainName, names: &Names, tlds: &Tlds, coverage: Coverage) -> Standing {
        let known = names.find(name.as_str()).is_some();
        let holding = names.label_range(name.label());
        let (all, mut open) = (holding.len(), 0);
        names.for_each(
            [holding],
            None,
            |_| true,
            |VisitedName { ordinal, tld, .. }| {
                open += usize::from(tlds.is_open(tld));
                ControlFlow::Continue(ordinal + 1)
            },
        );
        // A name that is not in the corpus counts as an additional one.
        let is_open = Scorer::shared().is_open(name.tld());
        let more = usize::from(!known);
        let tlds = open_tlds(open + more * usize::from(is_open), all + more, is_open);
        Standing { known, spread: Spread { tlds, coverage } }
    }
}

/// The score of a name with its reasons.
#[derive(Debug)]
pub struct Appraisal {
    pub dqs: Dqs,
    pub explanation: String,
    pub signals: Signals<'static>,
    /// Whether the name is in the corpus.
    pub known: bool,
}

impl Index {
    /// Scores a name. The first call of a process loads the dictionaries.
    pub fn appraise(&self, name: &DomainName) -> Appraisal {
        let Standing { known, spread } = self.standing(name);
        let Scored { dqs, signals, explanation, .. } =
            with_row_buffers(|buffers| Scorer::shared().score(name, spread, &mut buffers.scratch));
        Appraisal { dqs, explanation, signals, known }
    }

    pub(super) fn standing(&self, name: &DomainName) -> Standing {
        let layer = self.layer_of(name.label());
        Standing::new(name, &layer.names, &layer.tlds, self.manifest().coverage)
    }
}

/// Estimates the microseconds to parse and score `names`, to decide whether to leave the async
/// threads.
pub fn cost_us(names: &[String]) -> u32 {
    let scoring: usize = names.iter().map(|name| NAME_US + name.len()).sum();
    u32::try_from(scoring).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::names::tests::{Random, table, texts};

    fn name(text: &str) -> DomainName {
        DomainName::parse(text).unwrap_or_else(|err| panic!("{text}: {err}"))
    }

    #[test]
    fn a_names_own_tld_always_counts() {
        let tlds = ["com", "de", "co.uk", "gov"].map(str::to_owned);
        let held =
            [("solar", 0), ("solar", 1), ("solar", 2), ("solar", 3), ("solar-x", 1), ("solarx", 1)];
        let held = held.map(|(label, tld)| (label.to_owned(), tld)).into();
        let texts = texts(&table(&held, &tlds, &mut Random(1)));
        let numbered = Tlds::new(tlds.into());
        for (text, known, tld_spread) in [
            ("solar.com", true, 3),
            ("solar.co.uk", true, 3),
            ("solar.org", false, 4),
            ("solar.gov", true, 4),
            ("solar.mil", false, 4),
            ("solarx.de", true, 1),
            ("solarx.com", false, 2),
            ("sola.com", false, 1),
            ("solar-y.de", false, 1),
        ] {
            let standing = Standing { known, spread: Spread::of(tld_spread) };
            let found = Standing::new(&name(text), &texts, &numbered, Coverage::REFERENCE);
            assert_eq!(found, standing, "{text}");
        }
    }

    #[test]
    fn longer_names_cost_more() {
        let one = cost_us(&["solar.com".to_owned()]);
        let hundred = cost_us(&vec!["solar.com".to_owned(); 100]);
        assert!(one < 50 && hundred > 500, "{one} {hundred}");
        assert!(cost_us(&["ü".repeat(1_000)]) > 500);
    }
}
