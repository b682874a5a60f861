//! Filtered claims of a portfolio.

use crate::accounts::{Claim, UserData};
use crate::error::ApiError;
use crate::query::params::{Limits, Paging, Params};
use crate::vocab::budget;
use crate::vocab::claim::ClaimStatus;
use crate::vocab::day::Day;
use crate::vocab::limits::CLAIMS_OFFSET_MAX;
use crate::vocab::time::UnixMs;
use crate::work;

/// Approximate cost of serialising one claim, in microseconds.
const CLAIM_US: usize = 2;

/// Filter and page of a claims list.
#[derive(Clone, Debug)]
pub struct ClaimFilter {
    /// Accepted statuses; empty for all.
    statuses: Vec<ClaimStatus>,
    /// Reported at or after the start of this day.
    from: Option<UnixMs>,
    /// Reported before the start of this day.
    to: Option<UnixMs>,
    page: Paging,
}

impl ClaimFilter {
    /// Parses the filter of a query string.
    ///
    /// # Errors
    /// 400 for the first invalid parameter.
    pub fn parse(params: Params<'_>, limits: Limits) -> Result<ClaimFilter, ApiError> {
        let start = |day: Day| UnixMs::from_instant(day.start());
        Ok(ClaimFilter {
            statuses: params.list("status")?,
            from: params.one("from")?.map(start),
            to: params.one("to")?.map(start),
            page: params.page(limits, CLAIMS_OFFSET_MAX)?,
        })
    }

    /// The matching claims of the page, newest first.
    pub fn page_of<'a>(&'a self, owned: &'a UserData) -> impl Iterator<Item = &'a Claim> {
        self.page.rows(self.matching(owned))
    }

    /// All matching claims, newest first.
    pub fn matching<'a>(&'a self, owned: &'a UserData) -> impl Iterator<Item = &'a Claim> {
        owned.claims().take_while(|_| !budget::spent()).filter(|claim| {
            let at = claim.reported_at;
            (self.statuses.is_empty() || self.statuses.contains(&claim.status))
                && self.from.is_none_or(|from| at >= from)
                && self.to.is_none_or(|to| at < to)
        })
    }

    /// Accepted statuses; empty for all.
    pub fn statuses(&self) -> &[ClaimStatus] {
        &self.statuses
    }

    /// The page of the matching claims.
    pub fn page(&self) -> Paging {
        self.page
    }
}

/// Upper bound of the time to filter and serialise an account's claims, in microseconds, for
/// [`work::run`].
pub fn claims_cost_us(owned: &UserData) -> u32 {
    work::cost_us(owned.claim_count(), CLAIM_US)
}
