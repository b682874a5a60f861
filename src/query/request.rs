//! Queries after parsing: in range and ready to run.

use utoipa::ToSchema;

use crate::conditions::Parsed;
use crate::filter::Filter;
use crate::text::{NamePrefix, Substring};
use crate::vocab::fact::{FactColumnId, FactName};
use crate::vocab::named::{named_enum, parse_named};
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
    /// Any of several stages.
    Stages(StageSet),
}

impl View {
    /// Every view and every single stage; the last is [`View::All`].
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
    pub fn code_mask(self) -> u8 {
        match self {
            View::Active => REDEMPTION | PENDING_DELETE | CATCHABLE,
            View::Today => DROPPED_TODAY,
            View::All => REDEMPTION | PENDING_DELETE | CATCHABLE | RELEASED,
            View::Stage(stage) => stage_code(stage),
            View::Stages(stages) => stages.bits(),
        }
    }

    /// Returns the view of any of these stages, if any.
    pub fn of_stages(stages: &[Stage]) -> Option<View> {
        let set = (!stages.is_empty()).then(|| StageSet::from_stages(stages))?;
        // Never returns [`View::All`], which a search does not treat as a view.
        let mut known = View::EVERY.into_iter().filter(|view| *view != View::All);
        Some(known.find(|view| view.code_mask() == set.bits()).unwrap_or(View::Stages(set)))
    }

    /// Returns the position in [`View::EVERY`]; `None` for a set of several stages, which has no
    /// tables.
    pub fn place(self) -> Option<usize> {
        View::EVERY.iter().position(|&other| other == self)
    }

    /// Returns the position of one of [`View::EVERY`].
    pub fn position(self) -> usize {
        self.place().expect("one of EVERY")
    }
}

/// Set of stages, as bits of stage codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StageSet(u8);

impl StageSet {
    /// The active pipeline: default of a rule without stages (data/docs/api.md).
    pub const ACTIVE: StageSet = StageSet(REDEMPTION | PENDING_DELETE | CATCHABLE);

    /// Returns a set of these stages; [`StageSet::ACTIVE`] for no stage.
    pub fn from_stages(stages: &[Stage]) -> StageSet {
        let bits = stages.iter().fold(0, |bits, &stage| bits | stage_code(stage));
        if bits == 0 { StageSet::ACTIVE } else { StageSet(bits) }
    }

    /// Returns true if the set has `stage`.
    pub fn contains(self, stage: Stage) -> bool {
        self.0 & stage_code(stage) != 0
    }

    /// Returns the codes as bits.
    pub fn bits(self) -> u8 {
        self.0
    }
}

/// Conditions of an alert rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleQuery {
    pub common: Filter,
    pub contains: Option<Substring>,
    pub stages: StageSet,
}

named_enum! {
    /// Sort key of the drops list. Names with equal keys are in rank order.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ToSchema)]
    #[schema(rename_all = "snake_case")]
    pub enum SortKey {
        #[default]
        Dqs = "dqs",
        /// Effective release.
        Release = "release",
        /// Drop date.
        Dropped = "dropped",
        Length = "length",
        Name = "name",
        /// Number of TLDs with the label.
        Tlds = "tlds",
        /// Time of the first list with the drop.
        Listed = "listed",
        /// Best rank on a popularity list; names without a rank come last, as if they had the
        /// largest one.
        Rank = "rank",
        /// Place among the drops of the suffix.
        SuffixRank = "suffix_rank",
        /// Expected share of names like it that are registered again within a week; unknown ones come last.
        ExpectedTaken = "expected_taken",
        /// A fact, which the name after [`FACT_SORT`] selects; names without it come last in both directions.
        Fact = "fact",
    }
}
parse_named!(SortKey);

/// Prefix of the name of a fact in `sort` and `facets`.
pub const FACT_SORT: &str = "fact:";

/// Order of the drops list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sort {
    pub key: SortKey,
    pub descending: bool,
    /// The column of [`SortKey::Fact`], once the caller is known.
    pub fact: Option<FactColumnId>,
}

impl Default for Sort {
    fn default() -> Sort {
        Sort::natural(SortKey::default())
    }
}

impl Sort {
    /// Returns the default order of a key: best, soonest, shortest or newest first.
    pub fn natural(key: SortKey) -> Sort {
        use SortKey::{Dqs, Dropped, ExpectedTaken, Fact, Listed, Tlds};
        let descending = matches!(key, Dqs | Dropped | Tlds | Listed | ExpectedTaken | Fact);
        Sort { key, descending, fact: None }
    }
}

named_enum! {
    /// Property whose values are counted.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Facet {
        Tld = "tld",
        Stage = "stage",
        Length = "length",
        /// In tens.
        Dqs = "dqs",
        /// By day.
        Release = "release",
        /// Language of the words; names without a language are not counted.
        Language = "language",
        Kind = "kind",
        /// Within the best 1, 5, 10, 25 and 50 % of its suffix, each including those before it.
        SuffixRank = "suffix_rank",
        /// In bands of scores by rarity.
        DqsBand = "dqs_band",
    }
}
parse_named!(Facet);

named_enum! {
    /// How the names that pass are counted (parameter `total`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ToSchema)]
    #[schema(rename_all = "lowercase")]
    pub enum Counting {
        /// Exactly if that is cheap, otherwise by an estimate.
        #[default]
        Estimate = "estimate",
        Exact = "exact",
        /// Not at all.
        None = "none",
    }
}
parse_named!(Counting);

/// The position of a row, valid in any generation. The next page begins after this row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowPosition {
    /// Value of the sort key; 0 for [`SortKey::Name`].
    pub value: u64,
    /// Tie-breaker in rank order: score, unrounded score and length.
    pub key: u64,
    pub name: String,
}

/// Query of `GET /api/v1/drops` and of the drops export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropFilter {
    pub common: Filter,
    pub view: View,
    pub contains: Option<Substring>,
    pub sort: Sort,
    /// The fact of [`SortKey::Fact`].
    pub sort_fact: Option<FactName>,
    /// The page begins after this row.
    pub after: Option<RowPosition>,
    pub limit: u32,
    pub offset: u32,
}

impl DropFilter {
    /// Returns true if filter or order depend on facts.
    pub fn needs_facts(&self) -> bool {
        !self.common.drop.facts.is_empty() || self.sort_fact.is_some()
    }

    /// Returns the first row of the names that pass, best first.
    pub fn of(parsed: Parsed) -> DropFilter {
        DropFilter {
            view: View::of_stages(&parsed.stages).unwrap_or(View::Active),
            common: parsed.filter,
            contains: parsed.contains,
            sort: Sort::default(),
            sort_fact: None,
            after: None,
            limit: 1,
            offset: 0,
        }
    }
}

impl RuleQuery {
    /// Returns the conditions of a rule.
    pub fn of(parsed: Parsed) -> RuleQuery {
        RuleQuery {
            stages: StageSet::from_stages(&parsed.stages),
            common: parsed.filter,
            contains: parsed.contains,
        }
    }
}

impl SearchFilter {
    /// Returns true if only the prefix filters.
    pub fn is_prefix_alone(&self) -> bool {
        self.view.is_none() && self.common == Filter::default()
    }

    /// Returns true if the search has tables for all conditions.
    pub fn is_basic(&self) -> bool {
        let has_tables = |view: View| view.place().is_some();
        self.prefix.is_some() && self.common.is_basic() && self.view.is_none_or(has_tables)
    }
}

/// Query of `GET /api/v1/search`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchFilter {
    /// `None` searches all names; another condition on the text is then set.
    pub prefix: Option<NamePrefix>,
    pub common: Filter,
    /// `None` searches the whole corpus.
    pub view: Option<View>,
    pub limit: u32,
    pub offset: u32,
}

/// Query of `GET /api/v1/suggest`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuggestFilter {
    pub prefix: NamePrefix,
    /// Suffixes, score, length and adult names only.
    pub common: Filter,
    /// `None` suggests any name.
    pub view: Option<View>,
    /// Whether a label may be suggested under several suffixes.
    pub all_suffixes: bool,
    pub limit: u32,
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
