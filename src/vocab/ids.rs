//! Identifiers of what users own.

use serde::{Deserialize, Serialize};

/// An account, by the number it got when it was added. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AccountId(pub u64);
