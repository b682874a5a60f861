//! Alerts: matches new lists against alert rules ([`matching`]) and changes against watchlists
//! ([`watching`]), finds new names for morning digests ([`digest`]), reminds of renewals ([`renewals`]), and
//! records the messages before they are sent.

pub mod digest;
pub mod matching;
pub mod renewals;
pub mod watching;
