//! Rows that queries return. A row borrows everything it shows: it is built in buffers that the
//! next row reuses, and lives for one call of a visitor.

use serde::Serialize;

use crate::scorer::Signals;
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;

/// State of a name today (`currentStatus`, data/docs/api.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    Registered,
    Redemption,
    PendingDelete,
    Available,
    Unknown,
}

impl Status {
    /// Returns the value that the API shows.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Registered => "registered",
            Status::Redemption => "redemption",
            Status::PendingDelete => "pending-delete",
            Status::Available => "available",
            Status::Unknown => "unknown",
        }
    }
}

/// Search result.
#[derive(Clone, Debug)]
pub struct SearchRow<'a> {
    pub domain: &'a str,
    pub tld: &'a str,
    /// Length of the label in characters.
    pub length: u8,
    pub current_status: Status,
    /// `None` for a name that never dropped.
    pub latest_drop: Option<LatestDrop<'a>>,
}

/// Latest drop of a search result.
#[derive(Clone, Debug)]
pub struct LatestDrop<'a> {
    pub date: Day,
    pub dqs: Dqs,
    pub explanation: &'a str,
}

/// Row of the drops list.
#[derive(Clone, Debug)]
pub struct DropRow<'a> {
    pub name: &'a str,
    pub tld: &'a str,
    /// Length of the label in characters.
    pub length: u8,
    pub dqs: Dqs,
    pub explanation: &'a str,
    pub signals: &'a Signals<'a>,
}
