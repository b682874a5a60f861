//! Sections with a bucket: `[cluster.s3]` and `[backup.s3]`.

use std::path::PathBuf;

use anyhow::{Context, ensure};
use serde::Deserialize;

use crate::bucket::S3Settings;
use crate::config::outbound::secret;
use crate::vocab::net::AllowList;
use crate::vocab::secret::Secret;
use crate::vocab::url::BaseUrl;

/// S3-compatible services without regions expect this one.
const REGION_DEFAULT: &str = "us-east-1";

/// The section in the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct S3File {
    endpoint: BaseUrl,
    bucket: String,
    prefix: Option<String>,
    region: Option<String>,
    access_key_id: String,
    secret_access_key: Option<Secret>,
    secret_access_key_file: Option<PathBuf>,
    #[serde(default)]
    allow: AllowList,
    ca_file: Option<PathBuf>,
}

/// Names for error messages.
pub(super) struct S3Keys {
    pub section: &'static str,
    /// Environment variable of the secret access key.
    pub variable: &'static str,
}

impl S3File {
    pub(super) fn settings(
        self,
        given: Option<Secret>,
        prefix: &str,
        keys: &S3Keys,
    ) -> anyhow::Result<S3Settings> {
        let S3Keys { section, variable } = keys;
        let (text, file) = (self.secret_access_key, self.secret_access_key_file);
        let key = secret(given, text, file, &format!("{section}.secret_access_key"))?;
        let prefix = self.prefix.unwrap_or_else(|| prefix.to_owned());
        // The prefix is part of URLs, in which clients normalise `..` and empty segments.
        let is_part = |part: &str| {
            !part.is_empty()
                && part != "."
                && part != ".."
                && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        };
        ensure!(
            prefix.split('/').all(is_part),
            "{section}.prefix: `{prefix}` may hold letters, digits, `-`, `_` and `.`, and `/` between them"
        );
        ensure!(is_part(&self.bucket), "{section}.bucket: `{}` is not a bucket", self.bucket);
        Ok(S3Settings {
            endpoint: self.endpoint,
            bucket: self.bucket,
            prefix,
            region: self.region.unwrap_or_else(|| REGION_DEFAULT.to_owned()),
            access_key_id: self.access_key_id,
            secret_access_key: key.with_context(|| {
                format!(
                    "{section}.secret_access_key is missing; set it, secret_access_key_file, or {variable}"
                )
            })?,
            allow: self.allow,
            ca_file: self.ca_file,
        })
    }
}
