//! What happens without a request.

pub mod admin;
pub mod bootstrap;
pub mod deliver;
pub mod gauges;
pub mod inbox;
pub mod jobs;
pub mod notify;
pub mod reload;
pub mod verify;
