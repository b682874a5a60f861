//! Alerts: matches new lists against alert rules ([`matching`]) and changes against watchlists
//! ([`watching`]), finds new names for morning digests ([`digest`]), and records the messages before they
//! are sent.

pub mod digest;
pub mod matching;
pub mod watching;
