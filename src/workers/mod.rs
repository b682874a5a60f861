//! What happens without a request.

pub mod admin;
pub mod reload;
