//! The world we call: name servers, registries, and whoever an alert is for. What is to be said
//! comes in as plain values; what became of it goes out. Nothing here knows rules, accounts or
//! queues, and nothing is dialled but through [`guard`] (the operator's mail server aside).

pub mod dns;
pub mod guard;
pub mod http;
pub mod rdap;
pub mod settings;
