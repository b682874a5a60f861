//! The words about claims and votes (api.md, States and transitions; decisions.md §5).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What became of a backorder. Stored by its place in the list: append only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClaimStatus {
    /// Tried for.
    Attempted,
    /// Caught at the drop.
    Caught,
    /// Registered by hand.
    Registered,
    /// Somebody else has it.
    Lost,
    /// Owned and sold.
    Sold,
}

impl ClaimStatus {
    /// All of them, in the order of the API document.
    pub const ALL: [ClaimStatus; 5] = [
        ClaimStatus::Attempted,
        ClaimStatus::Caught,
        ClaimStatus::Registered,
        ClaimStatus::Lost,
        ClaimStatus::Sold,
    ];

    /// The word of the API.
    pub fn as_str(self) -> &'static str {
        match self {
            ClaimStatus::Attempted => "attempted",
            ClaimStatus::Caught => "caught",
            ClaimStatus::Registered => "registered",
            ClaimStatus::Lost => "lost",
            ClaimStatus::Sold => "sold",
        }
    }
}

impl fmt::Display for ClaimStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that names no claim status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be one of attempted, caught, registered, lost, sold")]
pub struct ClaimStatusError;

impl FromStr for ClaimStatus {
    type Err = ClaimStatusError;

    fn from_str(text: &str) -> Result<ClaimStatus, ClaimStatusError> {
        ClaimStatus::ALL.into_iter().find(|status| status.as_str() == text).ok_or(ClaimStatusError)
    }
}

/// What an account thinks of a name. Stored by its place in the list: append only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
    fn words_are_read_back() {
        for status in ClaimStatus::ALL {
            assert_eq!(status.as_str().parse(), Ok(status));
            let json = serde_json::to_string(&status).expect("JSON");
            assert_eq!(json, format!("\"{status}\""));
        }
        assert_eq!("Sold".parse::<ClaimStatus>(), Err(ClaimStatusError));
    }
}
