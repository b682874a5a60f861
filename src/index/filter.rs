//! Queries of the index: the requests of [`dropdex_query`], each for a day.

use crate::vocab::day::Day;
pub use dropdex_query::filter::Filter;
pub use dropdex_query::request::{
    CATCHABLE, Counting, DROPPED_TODAY, DropFilter, Facet, PENDING_DELETE, REDEMPTION, RELEASED,
    RowPosition, RuleQuery, SearchFilter, Sort, SortKey, StageSet, SuggestFilter, View, stage_code,
};

/// Day of a query; fixed for the whole request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AsOf {
    pub today: Day,
    /// Days after the effective release during which a name counts as catchable.
    pub catch_days: u16,
}

/// Returns the bit of the stage `days_left` days before the release.
#[inline]
pub fn stage_code_in(days_left: i32, pending_days: u16, catch_days: i32) -> u8 {
    let steps = u8::from(days_left > -catch_days)
        + u8::from(days_left > 0)
        + u8::from(days_left > i32::from(pending_days));
    // Without catch days, a name is released on the day on which it becomes available.
    RELEASED >> steps
}
