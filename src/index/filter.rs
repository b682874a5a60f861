//! Queries after parsing: in range and ready to run.

use compact_str::CompactString;

use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::limits::LABEL_CHARS_MAX;
use crate::vocab::query::{NamePrefix, Substring};
use crate::vocab::stage::Stage;

/// Stage code of [`Stage::Redemption`].
pub const REDEMPTION: u8 = 1;
/// Stage code of [`Stage::PendingDelete`].
pub const PENDING_DELETE: u8 = 2;
/// Stage code of [`Stage::Catchable`].
pub const CATCHABLE: u8 = 4;
/// Stage code of [`Stage::Released`].
pub const RELEASED: u8 = 8;
/// Added to the code of a name that dropped today.
pub const DROPPED_TODAY: u8 = 16;

/// Day for which a query is answered; fixed for the whole request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AsOf {
    pub today: Day,
    /// Days after the effective release during which a name counts as catchable.
    pub catch_days: u16,
}

/// Part of the pipeline: the parameter `stage`, or else `view` (data/docs/api.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum View {
    /// Every stage except released.
    Active,
    /// Dropped today.
    Today,
    /// Every name that ever dropped.
    All,
    /// One stage.
    Stage(Stage),
}

impl View {
    /// Every view and every stage; the last is [`View::All`].
    pub const EVERY: [View; 7] = [
        View::Stage(Stage::Redemption),
        View::Stage(Stage::PendingDelete),
        View::Stage(Stage::Catchable),
        View::Stage(Stage::Released),
        View::Today,
        View::Active,
        View::All,
    ];

    /// Returns the code bits of a view: a doc belongs to it if its code has one of them.
    pub(super) fn code_mask(self) -> u8 {
        match self {
            View::Active => REDEMPTION | PENDING_DELETE | CATCHABLE,
            View::Today => DROPPED_TODAY,
            View::All => REDEMPTION | PENDING_DELETE | CATCHABLE | RELEASED,
            View::Stage(stage) => stage_code(stage),
        }
    }

    /// Returns the position in [`View::EVERY`].
    pub(super) fn position(self) -> usize {
        let position = View::EVERY.iter().position(|&other| other == self);
        position.expect("EVERY lists every view and stage")
    }
}

/// Conditions that searches and the drops list share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommonFilter {
    /// One of these TLDs, normalised by [`crate::vocab::query::fold_tld`]; empty means all.
    pub tlds: Vec<CompactString>,
    pub min_dqs: Dqs,
    /// Maximum label length in characters, 1 to 63.
    pub max_len: u8,
}

impl Default for CommonFilter {
    fn default() -> CommonFilter {
        CommonFilter { tlds: Vec::new(), min_dqs: Dqs::MIN, max_len: LABEL_CHARS_MAX }
    }
}

/// Set of stages, as bits of stage codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StageSet(u8);

impl StageSet {
    /// The active pipeline: default of a rule without stages (data/docs/api.md).
    pub const ACTIVE: StageSet = StageSet(REDEMPTION | PENDING_DELETE | CATCHABLE);

    /// Returns a set of these stages; [`StageSet::ACTIVE`] if there are none.
    pub fn from_stages(stages: &[Stage]) -> StageSet {
        let bits = stages.iter().fold(0, |bits, &stage| bits | stage_code(stage));
        if bits == 0 { StageSet::ACTIVE } else { StageSet(bits) }
    }

    /// Returns the codes as bits.
    pub(super) fn bits(self) -> u8 {
        self.0
    }
}

/// Conditions of an alert rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleQuery {
    pub common: CommonFilter,
    pub contains: Option<Substring>,
    pub stages: StageSet,
}

impl RuleQuery {
    /// Creates the conditions; `None` and empty lists do not filter, except for stages: see
    /// [`StageSet::from_stages`].
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

/// Query of `GET /api/v1/drops` and of the drops export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropFilter {
    pub common: CommonFilter,
    pub view: View,
    pub contains: Option<Substring>,
    pub limit: u32,
    pub offset: u32,
}

impl SearchFilter {
    /// Returns true if only the prefix filters.
    pub fn is_prefix_alone(&self) -> bool {
        self.view.is_none() && self.common == CommonFilter::default()
    }
}

/// Query of `GET /api/v1/search`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchFilter {
    pub prefix: NamePrefix,
    pub common: CommonFilter,
    /// `None` searches the whole corpus.
    pub view: Option<View>,
    pub limit: u32,
    pub offset: u32,
}

/// Returns the bit of a stage; later stages have higher bits.
pub fn stage_code(stage: Stage) -> u8 {
    match stage {
        Stage::Redemption => REDEMPTION,
        Stage::PendingDelete => PENDING_DELETE,
        Stage::Catchable => CATCHABLE,
        Stage::Released => RELEASED,
    }
}

/// Returns the bit of the stage `days_left` days before the release.
#[inline]
pub fn stage_code_in(days_left: i32, pending_days: u16, catch_days: i32) -> u8 {
    let steps = u8::from(days_left > -catch_days)
        + u8::from(days_left > 0)
        + u8::from(days_left > i32::from(pending_days));
    // Without catch days, a name is released on the day it becomes available.
    RELEASED >> steps
}
