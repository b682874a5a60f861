//! What a query asks for, as meant: parsed, in range, ready to run.

use compact_str::CompactString;

use crate::index::columns::day::{CATCHABLE, PENDING_DELETE, REDEMPTION, code_of};
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::limits::LABEL_CHARS_MAX;
use crate::vocab::query::{NamePrefix, Substring};
use crate::vocab::stage::Stage;

/// The day a query is answered for. A request takes one and keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AsOf {
    pub today: Day,
    /// Days a name counts as catchable after its effective release.
    pub catch_days: u16,
}

/// A part of the pipeline (data/docs/api.md): a `stage`, or where none is given a `view`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum View {
    /// Every stage but released.
    Active,
    /// DropsByName today.
    Today,
    /// Every name that ever dropped.
    All,
    /// One stage.
    Stage(Stage),
}

impl View {
    /// Every view and every stage.
    pub const EVERY: [View; 7] = [
        View::Stage(Stage::Redemption),
        View::Stage(Stage::PendingDelete),
        View::Stage(Stage::Catchable),
        View::Stage(Stage::Released),
        View::Today,
        View::Active,
        View::All,
    ];

    /// Returns the position in [`View::EVERY`].
    pub(super) fn position(self) -> usize {
        let position = View::EVERY.iter().position(|&other| other == self);
        position.expect("EVERY lists every view and stage")
    }
}

/// What both lists can be narrowed by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommonFilter {
    /// Any of these TLDs, folded as [`crate::vocab::query::fold_tld`] does; empty means all.
    pub tlds: Vec<CompactString>,
    pub min_dqs: Dqs,
    /// Characters of the label at most, 1 to 63.
    pub max_len: u8,
}

impl Default for CommonFilter {
    fn default() -> CommonFilter {
        CommonFilter { tlds: Vec::new(), min_dqs: Dqs::MIN, max_len: LABEL_CHARS_MAX }
    }
}

/// Some stages. Bits are those of the codes in [`crate::index::columns::day`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StageSet(u8);

impl StageSet {
    /// The active pipeline, which a rule is about that names no stage (data/docs/api.md).
    pub const ACTIVE: StageSet = StageSet(REDEMPTION | PENDING_DELETE | CATCHABLE);

    /// These stages; [`StageSet::ACTIVE`] where there is none.
    pub fn from_stages(stages: &[Stage]) -> StageSet {
        let bits = stages.iter().fold(0, |bits, &stage| bits | code_of(stage));
        if bits == 0 { StageSet::ACTIVE } else { StageSet(bits) }
    }

    /// Their codes, joined.
    pub(super) fn bits(self) -> u8 {
        self.0
    }
}

/// Which names an alert rule is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleQuery {
    pub common: CommonFilter,
    pub contains: Option<Substring>,
    pub stages: StageSet,
}

impl RuleQuery {
    /// A rule's conditions as they are given; what is `None` or empty does not filter, but for
    /// stages: see [`StageSet::of`].
    pub fn new(
        tlds: Vec<CompactString>,
        min_dqs: Option<Dqs>,
        max_length: Option<u8>,
        contains: Option<Substring>,
        stages: &[Stage],
    ) -> RuleQuery {
        let min_dqs = min_dqs.unwrap_or(Dqs::MIN);
        let max_len = max_length.unwrap_or(LABEL_CHARS_MAX);
        let common = CommonFilter { tlds, min_dqs, max_len };
        RuleQuery { common, contains, stages: StageSet::from_stages(stages) }
    }
}

/// `GET /api/v1/drops` and the drops export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropFilter {
    pub common: CommonFilter,
    pub view: View,
    pub contains: Option<Substring>,
    pub limit: u32,
    pub offset: u32,
}

impl SearchFilter {
    /// Whether nothing but the prefix decides.
    pub fn is_prefix_alone(&self) -> bool {
        self.view.is_none() && self.common == CommonFilter::default()
    }
}

/// `GET /api/v1/search`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchFilter {
    pub prefix: NamePrefix,
    pub common: CommonFilter,
    /// `None` searches the whole corpus.
    pub view: Option<View>,
    pub limit: u32,
    pub offset: u32,
}
