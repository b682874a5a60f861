//! Plans and their limits (`data/docs/api.md`, Plans).

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::named::named_enum;

named_enum! {
    /// An account's subscription. The order matters: each plan includes the rights of the earlier
    /// ones.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Plan {
        /// Pages only.
        Free = "free",
        /// Pages and CSV exports.
        Core = "core",
        /// Pages, exports and a small JSON allowance.
        Pro = "pro",
        /// Everything, with a JSON allowance for programs.
        Api = "api",
    }
}

/// Rejects a text that is not a plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a plan; plans are free, core, pro and api")]
pub struct PlanError(String);

impl FromStr for Plan {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Plan, PlanError> {
        Plan::ALL
            .into_iter()
            .find(|plan| plan.as_str() == text)
            .ok_or_else(|| PlanError(text.chars().take(40).collect()))
    }
}

/// Default maximum of concurrent exports of an account, if its plan has exports.
const CONCURRENT_EXPORTS: u32 = 2;

/// Limits and price of one plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanLimits {
    /// JSON API requests per account and UTC day; 0 means no JSON API.
    pub requests_per_day: u32,
    /// CSV exports per account and UTC day; 0 means no exports.
    pub exports_per_day: u32,
    /// Maximum concurrent CSV exports of an account.
    pub concurrent_exports: u32,
    /// Maximum active alert rules.
    pub active_rules: u32,
    /// Maximum watchlist names outside the corpus.
    pub external_names: u32,
    /// Maximum memory of the rows of an account, approximate, in MiB. With 64 MiB, an account can
    /// reach every cap on rows with notes of ordinary length.
    pub data_mb: u32,
    /// Writes per account and minute, by API and pages together. All of them may be used in one
    /// burst.
    pub writes_per_minute: NonZeroU32,
    /// Completions of a typed text per account and minute, beside the requests of a day. All of them may be
    /// used in one burst.
    pub suggestions_per_minute: NonZeroU32,
    /// Price per month, in US dollars.
    pub price_usd: u32,
}

/// Limits that an operator sets for accounts of all plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountLimits {
    /// Maximum memory of all accounts, approximate. Above it, new accounts and rows are refused.
    pub total_bytes: u64,
    /// Approximate maximum memory of the rows of an account with an unverified address; a lower
    /// limit of its plan takes precedence.
    pub unverified_bytes: u64,
}

/// The limits of every plan. The settings can change each; `data/docs/api.md` lists the defaults.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "BTreeMap<Plan, PlanLimits>")]
pub struct Plans([PlanLimits; 4]);

impl From<Plans> for BTreeMap<Plan, PlanLimits> {
    fn from(Plans(limits): Plans) -> BTreeMap<Plan, PlanLimits> {
        Plan::ALL.into_iter().zip(limits).collect()
    }
}

impl Default for Plans {
    fn default() -> Plans {
        let limits = |requests,
                      exports,
                      rules,
                      external_names,
                      (data_mb, writes, suggestions),
                      price_usd| PlanLimits {
            requests_per_day: requests,
            exports_per_day: exports,
            concurrent_exports: exports.min(CONCURRENT_EXPORTS),
            active_rules: rules,
            external_names,
            data_mb,
            writes_per_minute: NonZeroU32::new(writes).expect("above 0"),
            suggestions_per_minute: NonZeroU32::new(suggestions).expect("above 0"),
            price_usd,
        };
        Plans([
            limits(0, 0, 1, 0, (16, 120, 6_000), 0),
            limits(0, 20, 5, 10, (16, 300, 6_000), 12),
            limits(100, 50, 25, 100, (64, 600, 6_000), 29),
            limits(10_000, 500, 250, 1_000, (64, 6_000, 120_000), 99),
        ])
    }
}

impl Plans {
    /// Limits of the plans in the order of [`Plan::ALL`].
    pub fn new(limits: [PlanLimits; 4]) -> Plans {
        Plans(limits)
    }

    /// Returns the limits of `plan`.
    pub fn limits(&self, plan: Plan) -> &PlanLimits {
        &self.0[plan as usize]
    }

    /// Returns the limits of `plan`, for settings to override.
    pub fn limits_mut(&mut self, plan: Plan) -> &mut PlanLimits {
        &mut self.0[plan as usize]
    }
}
