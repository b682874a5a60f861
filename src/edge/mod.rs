//! HTTP code shared by the API, the pages and the server: headers, cookies, client addresses and
//! statuses.

pub mod allowance;
pub mod body;
pub mod caching;
pub mod class;
pub mod code;
pub mod csv;
pub mod error;
pub mod etag;
pub mod export;
pub mod extensions;
pub mod home;
pub mod local;
pub mod mount;
pub mod operation;
pub mod origin;
pub mod paths;
pub mod peer;
pub mod position;
pub mod rate_limit;
pub mod routes;
pub mod session;

use dropdex_accounts as accounts;
use dropdex_index as index;
use dropdex_query as query;
use dropdex_service as service;
use dropdex_telemetry as telemetry;
use dropdex_vocab as vocab;
