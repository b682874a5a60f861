//! Rows that queries return. A row borrows all of its data from buffers that the next row reuses,
//! so it is valid only during one call of a visitor.

use std::borrow::Cow;

use serde::Serialize;
use utoipa::ToSchema;

pub use crate::columns::typos::Popular;
use crate::scorer::{Signals, Words};
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::expected_taken::ExpectedTaken;
use crate::vocab::kind::Kind;
use crate::vocab::named::named_enum;
use crate::vocab::popularity::{ListId, ListRank, PopularityList};
use crate::vocab::release_time::{Certainty, Release};
use crate::vocab::stage::Stage;
use crate::vocab::suffix_rank::SuffixRank;
use crate::vocab::time::UnixMs;

named_enum! {
    /// Registration status of a name, as far as lists and calendars tell.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Status {
        Registered = "registered",
        Redemption = "redemption",
        PendingDelete = "pending-delete",
        Available = "available",
        Unknown = "unknown",
    }
}

/// A search result.
#[derive(Clone, Debug, ToSchema)]
#[schema(as = SearchResult, rename_all = "camelCase")]
pub struct SearchRow<'a> {
    /// The registrable domain; IDNs as A-labels (`xn--…`).
    pub domain: &'a str,
    /// Its Unicode form; equal to the name unless it is an IDN.
    #[schema(value_type = String)]
    pub unicode: Cow<'a, str>,
    pub tld: &'a str,
    pub length: u8,
    /// A guess from lists and calendars; no registry was asked. `available` means that the release is past.
    pub current_status: Status,
    /// Domain Quality Score, also of a name that never dropped.
    #[schema(value_type = u8, minimum = 0, maximum = 100)]
    pub dqs: Dqs,
    /// Lifecycle stage today; `null` for a name that never dropped or was registered again.
    #[schema(required)]
    pub stage: Option<Stage>,
    /// `null` for a name that never dropped.
    #[schema(required)]
    pub latest_drop: Option<LatestDrop<'a>>,
}

/// The latest drop of a name.
#[derive(Clone, Debug, ToSchema)]
pub struct LatestDrop<'a> {
    #[schema(value_type = String, format = Date)]
    pub date: Day,
    #[schema(value_type = u8, minimum = 0, maximum = 100)]
    pub dqs: Dqs,
    pub explanation: &'a str,
}

/// A row of the drops list.
#[derive(Clone, Debug, ToSchema)]
#[schema(as = Drop, rename_all = "camelCase")]
pub struct DropRow<'a> {
    /// The registrable domain; IDNs as A-labels (`xn--…`).
    pub name: &'a str,
    /// Its Unicode form; equal to the name unless it is an IDN.
    #[schema(value_type = String)]
    pub unicode: Cow<'a, str>,
    /// The public suffix, without a leading dot.
    pub tld: &'a str,
    /// Length of the label, in characters of its Unicode form.
    pub length: u8,
    /// Domain Quality Score.
    #[schema(value_type = u8, minimum = 0, maximum = 100)]
    pub dqs: Dqs,
    /// One sentence of at most 160 characters.
    #[schema(max_length = 160)]
    pub explanation: &'a str,
    pub signals: &'a Signals<'a>,
    /// Lifecycle stage today.
    pub stage: Stage,
    /// Day on which the name left its zone.
    #[schema(value_type = String, format = Date)]
    pub drop_date: Day,
    /// Effective release: first day on which the name can be registered.
    #[schema(value_type = String, format = Date)]
    pub release_date: Day,
    /// Start of the release on that day; `null` unless the registry releases names of the suffix at a known
    /// hour.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub release_at: Option<UnixMs>,
    /// How sure the hour is.
    pub release_certainty: Certainty,
    /// Minutes from `releaseAt`, or from the start of the day, within which the name is released.
    pub release_window_minutes: u16,
    /// Days from today to the release; negative after it.
    pub days_to_release: i32,
    /// The words and numbers of the label, in order. Empty for a label that is not made of words, as for
    /// `min_words`; `signals.words` has its pieces.
    #[schema(value_type = Vec<String>)]
    pub words: &'a Words<'a>,
    /// ISO 639-1 code of most of the words; `null` without words, or with proper names only.
    #[schema(required)]
    pub language: Option<&'static str>,
    pub kind: Kind,
    /// Number of other suffixes in which the data has the label.
    pub other_tlds: u16,
    /// Number of drops on record, counted up to 255.
    pub drop_count: u8,
    /// When the list that first had the drop was observed.
    #[schema(value_type = String, format = DateTime)]
    pub listed_at: UnixMs,
    /// Number of that list.
    #[schema(ignore)]
    pub first_batch: u32,
    /// Best rank on the popularity lists in the data; `null` for a name on none.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 1_000_000, required)]
    pub popularity_rank: Option<ListRank>,
    /// Place among the drops of its suffix, best first, as the percentage of them that are not behind it:
    /// 0.4 is within the best 0.4 %. Rounded up to a tenth; `null` for a name that was registered again.
    #[schema(value_type = Option<f32>, minimum = 0.1, maximum = 100, required)]
    pub suffix_rank: Option<SuffixRank>,
    /// The popular name whose label this one misspells; `null` for other labels.
    #[schema(value_type = Option<TypoOf>, required)]
    pub typo_of: Option<&'a Popular>,
    /// Percent of names like this one that are expected to be registered again within a week of the release;
    /// `null` for a suffix without enough known outcomes.
    #[schema(value_type = Option<u8>, minimum = 0, maximum = 100, required)]
    pub expected_taken: Option<ExpectedTaken>,
}

/// A name in the first 2,000 of a popularity list.
#[derive(ToSchema)]
pub struct TypoOf {
    pub name: String,
    /// Best rank on the popularity lists.
    #[schema(minimum = 1, maximum = 2_000)]
    pub rank: u32,
}

/// Rank of a name on a popularity list of a day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PopularityFact {
    pub list: PopularityList,
    /// Best rank of the name and of the hosts below it.
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub rank: u32,
    /// Day of the list.
    #[schema(value_type = String, format = Date)]
    pub date: Day,
    /// Identifier of the list; `null` if its publisher gives none.
    #[schema(value_type = Option<String>, max_length = 16, required)]
    pub list_id: Option<ListId>,
}

/// Lifecycle of a drop on one day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifecycle {
    /// Day on which the name left its zone.
    pub dropped: Day,
    /// First day on which the name cannot be restored; the release day if its TLD has no
    /// pending-delete days.
    pub pending_delete: Day,
    /// Effective release: on its day, the name can be registered.
    pub release: Release,
    /// Stage today, unless registered again.
    pub stage: Stage,
    /// Registered again after this drop.
    pub registered_again: bool,
}

impl Lifecycle {
    /// Returns true if the name was gone before its drop date: pending delete had begun, so the
    /// date is that of the first list that had the name.
    pub fn is_first_listing(&self) -> bool {
        self.pending_delete < self.dropped && self.dropped <= self.release.day
    }
}

/// A value, and the number of names that have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FacetValue {
    pub value: String,
    pub count: u32,
}
