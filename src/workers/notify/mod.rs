//! Alerts: matches new lists against alert rules ([`matching`]) and records messages before they are sent.

pub mod matching;
