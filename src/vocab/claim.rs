//! Claim statuses and votes, as the API writes them (`data/docs/api.md`).

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::vocab::named::named_enum;

named_enum! {
    /// Outcome of a backorder.
    // Stored by its place in the list: append only.
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

/// Rejects a text that is no claim status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be one of attempted, caught, registered, lost, sold")]
pub struct ClaimStatusError;

impl FromStr for ClaimStatus {
    type Err = ClaimStatusError;

    fn from_str(text: &str) -> Result<ClaimStatus, ClaimStatusError> {
        ClaimStatus::ALL.into_iter().find(|status| status.as_str() == text).ok_or(ClaimStatusError)
    }
}

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
        assert_eq!("Sold".parse::<ClaimStatus>(), Err(ClaimStatusError));
    }
}
