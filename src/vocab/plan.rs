//! Plans and their limits (`data/docs/api.md`, Plans).

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::vocab::named::named_enum;

named_enum! {
    /// An account's subscription. Ordered: each plan includes what the earlier ones allow.
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

/// Rejects a text that is no plan.
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

/// Limits and price of one plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanLimits {
    /// JSON API requests per account and UTC day; 0 means no JSON API.
    pub requests_per_day: u32,
    /// CSV exports per account and UTC day; 0 means no exports.
    pub exports_per_day: u32,
    /// Maximum active alert rules.
    pub active_rules: u32,
    /// Maximum watchlist names outside the corpus.
    pub external_names: u32,
    /// Price per month, in US dollars.
    pub price_usd: u32,
}

/// The limits of every plan. Each can be set; `data/docs/api.md` lists the defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plans([PlanLimits; 4]);

impl Default for Plans {
    fn default() -> Plans {
        let limits = |requests, exports, rules, external_names, price_usd| PlanLimits {
            requests_per_day: requests,
            exports_per_day: exports,
            active_rules: rules,
            external_names,
            price_usd,
        };
        Plans([
            limits(0, 0, 1, 0, 0),
            limits(0, 20, 5, 10, 12),
            limits(100, 50, 25, 100, 29),
            limits(10_000, 500, 250, 1_000, 99),
        ])
    }
}

impl Plans {
    /// Limits of `plan`.
    pub fn limits(&self, plan: Plan) -> &PlanLimits {
        &self.0[plan as usize]
    }

    /// Limits of `plan`, for settings to override.
    pub fn limits_mut(&mut self, plan: Plan) -> &mut PlanLimits {
        &mut self.0[plan as usize]
    }
}
