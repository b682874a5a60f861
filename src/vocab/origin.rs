//! Origin of a list that dropdex fetched automatically.

use serde::{Deserialize, Serialize};

/// Source and terms of a list, recorded in its batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Name of the source in the settings.
    pub source: String,
    /// Address of the list, without query.
    pub url: String,
    /// Terms of the publisher in one sentence, at the time of the fetch.
    pub terms: String,
    /// Licence, if the publisher names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub licence: Option<String>,
    /// Whether the terms allow internal use only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub internal: bool,
}
