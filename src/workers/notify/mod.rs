//! Alerts: matches new lists against alert rules ([`matching`]) and changes against watchlists
//! ([`watching`]), and records the messages before they are sent.

pub mod matching;
pub mod watching;
