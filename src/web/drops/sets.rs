//! Sets of columns. A link replaces the columns about letters by the facts of link tools, of markets or of the
//! viewer's own sources; its parameters are those of the column picker, so no choice is stored.

use std::sync::Arc;

use maud::{Markup, html};

use crate::drops::Shown;
use crate::drops::state::{COLUMNS, DropsParams, FACTS};
use crate::facts_file::store::StoredColumn;
use crate::service::fact_book::{Source, VisibleFacts};
use crate::service::fact_topic::Topic;
use crate::vocab::fact::FactType;
use crate::vocab::named::named_enum;

/// Facts of a set, which fit on a wide screen.
pub const FACTS_MAX: usize = 10;
/// The columns of a set beside its facts.
const BESIDE_FACTS: &str = "due";

named_enum! {
    /// A set of columns.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Set {
        /// The columns that the viewer chose, without facts.
        Letters = "Letters",
        Links = "Links",
        Markets = "Markets",
        Mine = "Mine",
    }
}

impl Set {
    fn has(self, source: &Source, column: &StoredColumn) -> bool {
        let topic = Topic::of(source.name());
        match self {
            Set::Letters => false,
            Set::Links => topic == Topic::Links,
            Set::Markets => {
                let is_amount = column.kind == FactType::Money && topic != Topic::Links;
                topic == Topic::Markets || is_amount
            }
            Set::Mine => source.is_own,
        }
    }

    /// Returns the names of the facts, those of markets first. If there are too many, every source keeps its first
    /// ones.
    fn facts(self, sources: &[Arc<Source>]) -> Vec<String> {
        let mut facts = Vec::new();
        for source in sources {
            let order = (Topic::of(source.name()) != Topic::Markets, source.name());
            let columns = source.edition.meta().columns.iter();
            let columns = columns.filter(|column| self.has(source, column));
            facts.extend(columns.enumerate().map(|(place, column)| (place, order, &column.name)));
        }
        facts.sort();
        facts.truncate(FACTS_MAX);
        facts.sort_by_key(|(place, order, _)| (*order, *place));
        facts.into_iter().map(|(_, (_, source), fact)| format!("{source}.{fact}")).collect()
    }

    /// Returns the list with these columns.
    fn with(self, state: &DropsParams, facts: &str) -> DropsParams {
        let columns = if self == Set::Letters { "" } else { BESIDE_FACTS };
        state.with(&[(FACTS, facts), (COLUMNS, columns), ("offset", state.get("offset"))])
    }
}

/// Returns the list with the columns of markets.
pub fn markets(state: &DropsParams, visible: &VisibleFacts) -> DropsParams {
    Set::Markets.with(state, &Set::Markets.facts(visible.sources()).join(","))
}

/// Renders links to the sets that have facts; nothing if none has.
pub fn show(shown: &Shown) -> Markup {
    let state = &shown.state;
    let sets = Set::ALL.into_iter().map(|set| (set, set.facts(shown.visible.sources())));
    let sets: Vec<_> =
        sets.filter(|(set, facts)| *set == Set::Letters || !facts.is_empty()).collect();
    if sets.len() == 1 {
        return html! {};
    }
    html! {
        nav.sets aria-label="Columns" {
            ul {
                @for (set, facts) in sets {
                    @let there = set.with(state, &facts.join(","));
                    li { a href=(there.path()) aria-current=[(there == *state).then_some("true")] { (set) } }
                }
            }
            @if shown.owned.is_some() { a href="/account/facts" { "Add facts" } }
        }
    }
}
