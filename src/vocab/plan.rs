//! Plans and what each allows (decisions.md §4).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What an account pays for. Ordered: a later plan allows all that an earlier one does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Plan {
    /// Pages only.
    Free,
    /// Pages and CSV exports.
    Core,
    /// Pages, exports and a small JSON allowance.
    Pro,
    /// Everything, for programs.
    Api,
}

impl Plan {
    /// All plans, cheapest first.
    pub const ALL: [Plan; 4] = [Plan::Free, Plan::Core, Plan::Pro, Plan::Api];

    /// The word used in settings, answers and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Plan::Free => "free",
            Plan::Core => "core",
            Plan::Pro => "pro",
            Plan::Api => "api",
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that names no plan.
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

/// The numbers of one plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanLimits {
    /// JSON API requests per account and UTC day; 0 means no JSON API.
    pub requests_per_day: u32,
    /// CSV exports per account and UTC day; 0 means no exports.
    pub exports_per_day: u32,
    /// Active alert rules at once.
    pub active_rules: u32,
    /// Watchlist names outside the corpus at once.
    pub external_names: u32,
    /// Price per month, in US dollars.
    pub price_usd: u32,
}

/// The limits of every plan; the defaults are decisions.md §4's, each can be a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plans([PlanLimits; 4]);

impl Default for Plans {
    fn default() -> Plans {
        let limits =
            |requests_per_day, exports_per_day, active_rules, external_names, price_usd| {
                PlanLimits {
                    requests_per_day,
                    exports_per_day,
                    active_rules,
                    external_names,
                    price_usd,
                }
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
    /// What `plan` allows.
    pub fn of(&self, plan: Plan) -> &PlanLimits {
        &self.0[plan as usize]
    }

    /// What `plan` allows, to be overridden by a setting.
    pub fn of_mut(&mut self, plan: Plan) -> &mut PlanLimits {
        &mut self.0[plan as usize]
    }
}
