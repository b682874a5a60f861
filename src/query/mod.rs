//! The language of filters: it turns the text that a client, a form, a rule or a command sends into
//! conditions on names. This crate knows neither the caller nor how a query is executed.

pub mod conditions;
pub mod error;
pub mod facts;
pub mod filter;
pub mod list;
pub mod matcher;
pub mod narrow;
pub mod params;
pub mod request;
pub mod stored;
pub mod text;

use dropdex_vocab as vocab;
