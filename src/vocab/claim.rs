//! Claim statuses and votes, as the API writes them (`data/docs/api.md`).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::named::{named_enum, parse_named};

named_enum! {
    /// Outcome of a backorder.
    // Stored by its position in this list, so only append to the list.
    #[derive(
        Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
    )]
    #[serde(rename_all = "lowercase")]
    pub enum ClaimStatus {
        /// The backorder is placed.
        Attempted = "attempted",
        /// Caught at the drop.
        Caught = "caught",
        /// Registered by hand.
        Registered = "registered",
        /// Another party got it.
        Lost = "lost",
        /// Owned and sold.
        Sold = "sold",
    }
}

parse_named!(ClaimStatus);

named_enum! {
    /// The owner's decision about the next renewal of a name.
    // Stored by its position in this list, so only append to the list.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum RenewalDecision {
        Keep = "keep",
        Drop = "drop",
    }
}

parse_named!(RenewalDecision);

/// Vote on a name.
// Stored by its place in the list: append only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Vote {
    /// Worth having.
    Up,
    /// Not worth having.
    Down,
}

impl Vote {
    pub fn as_str(self) -> &'static str {
        match self {
            Vote::Up => "up",
            Vote::Down => "down",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_round_trip() {
        for status in ClaimStatus::ALL {
            assert_eq!(status.as_str().parse(), Ok(status));
            let json = serde_json::to_string(&status).expect("JSON");
            assert_eq!(json, format!("\"{status}\""));
        }
        let err = "Sold".parse::<ClaimStatus>().expect_err("another case");
        assert_eq!(err.to_string(), "must be one of attempted, caught, registered, lost, sold");
    }
}
