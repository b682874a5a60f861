//! Parsed settings of a store. `config` builds them.

use std::path::PathBuf;

use crate::outbound::settings::SecretSource;
use crate::vocab::net::AllowList;
use crate::vocab::url::BaseUrl;

/// A bucket of a service that speaks the protocol of Amazon S3, and who uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3Settings {
    pub endpoint: BaseUrl,
    pub bucket: String,
    /// Begins the names of all objects.
    pub prefix: String,
    pub region: String,
    pub access_key_id: String,
    pub secret_access_key: SecretSource,
    /// Allowed private addresses of `endpoint`.
    pub allow: AllowList,
    pub ca_file: Option<PathBuf>,
}
