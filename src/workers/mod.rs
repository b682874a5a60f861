//! Background work: everything that happens without a request.

pub mod admin;
pub mod bootstrap;
pub mod changes;
pub mod deliver;
pub mod files;
pub mod gauges;
pub mod lead;
pub mod notify;
pub mod reload;
pub mod verify;
