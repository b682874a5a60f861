//! The section `[cluster]`: the shared log of several nodes.

use std::num::NonZeroU32;
use std::path::PathBuf;

use anyhow::ensure;
use serde::Deserialize;

use crate::bucket::S3Settings;
use crate::cluster::record::NODE_BYTES_MAX;
use crate::cluster::settings::SharedLogSettings;
use crate::config::bucket::{S3File, S3Keys};
use crate::config::number::Bounded;
use crate::vocab::secret::Secret;

const STREAM_DEFAULT: &str = "dropdex";
const REPLICAS_DEFAULT: u8 = 3;
const KEYS: S3Keys = S3Keys { section: "cluster.s3", variable: "DROPDEX_S3_SECRET_ACCESS_KEY" };

/// The section in the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClusterFile {
    servers: Vec<String>,
    stream: Option<String>,
    replicas: Option<Bounded<1, 5>>,
    credentials: Option<PathBuf>,
    ca_file: Option<PathBuf>,
    may_lead: Option<bool>,
    transfer_mib_per_second: Option<Bounded<1, 4_000>>,
    s3: Option<S3File>,
}

/// Settings of a node of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterSettings {
    pub log: SharedLogSettings,
    /// Whether this node may become the leader, which does the work for all nodes.
    pub may_lead: bool,
    /// Maximum rate at which this node sends or fetches files.
    pub bytes_per_second: Option<NonZeroU32>,
    /// Bucket for the files; `None` keeps them in NATS, beside the log.
    pub s3: Option<S3Settings>,
}

impl ClusterFile {
    /// The settings of the node `node`.
    ///
    /// # Errors
    /// A value is missing or invalid.
    pub(super) fn settings(
        self,
        node: Option<&str>,
        s3_key: Option<Secret>,
    ) -> anyhow::Result<ClusterSettings> {
        let ClusterFile { servers, stream, replicas, credentials, ca_file, .. } = self;
        ensure!(
            cfg!(feature = "cluster"),
            "cluster: this dropdex was built without the feature `cluster`; remove the section, or build with `--features cluster`"
        );
        let node = node.unwrap_or_default();
        ensure!(
            (1..=NODE_BYTES_MAX).contains(&node.len()),
            "cluster: set `node` to a name of at most {NODE_BYTES_MAX} bytes, another one on each node"
        );
        let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        ensure!(
            node.chars().all(fits),
            "cluster: `node` is `{node}`, but may hold letters, digits, -, _ and . only, such as dropdex-1"
        );
        ensure!(!servers.is_empty(), "cluster.servers: name at least one NATS server, best all");
        for server in &servers {
            let has_scheme = ["nats://", "tls://"].iter().any(|it| server.starts_with(it));
            ensure!(
                has_scheme,
                "cluster.servers: `{server}` is not an address such as nats://10.0.0.1:4222"
            );
        }
        let stream = stream.unwrap_or_else(|| STREAM_DEFAULT.to_owned());
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        ensure!(
            !stream.is_empty() && stream.chars().all(is_name),
            "cluster.stream: `{stream}` may hold letters, digits, - and _ only"
        );
        let replicas = replicas.map_or(REPLICAS_DEFAULT, Bounded::get);
        ensure!(
            replicas % 2 == 1,
            "cluster.replicas: must be 1, 3 or 5, so that a majority exists"
        );
        let s3 = self.s3.map(|s3| s3.settings(s3_key, &stream, &KEYS)).transpose()?;
        let log = SharedLogSettings {
            servers,
            stream,
            replicas,
            credentials,
            ca_file,
            node: node.to_owned(),
        };
        let bytes_per_second = self.transfer_mib_per_second.map(|mib| mib.get::<u32>() << 20);
        Ok(ClusterSettings {
            log,
            may_lead: self.may_lead.unwrap_or(true),
            bytes_per_second: bytes_per_second.and_then(NonZeroU32::new),
            s3,
        })
    }
}

#[cfg(all(test, feature = "cluster"))]
mod tests {
    use super::*;
    use crate::config::{Config, Given, GivenSecrets};

    const NODE: &str =
        "node = \"a\"\n[cluster]\nservers = [\"nats://10.0.0.1:4222\"]\nstream = \"drops\"\n";
    const S3: &str = "[cluster.s3]\nendpoint = \"http://10.0.0.5:9000/\"\nbucket = \"files\"\n\
                      access_key_id = \"id\"\n";

    fn load(text: &str, s3_secret_access_key: Option<Secret>) -> anyhow::Result<ClusterSettings> {
        let secrets = GivenSecrets { s3_secret_access_key, ..GivenSecrets::default() };
        let config = Config::load_text(text, Given { secrets, ..Given::default() })?;
        Ok(config.cluster.expect("a section"))
    }

    #[test]
    fn files_are_beside_the_log_or_in_a_bucket() {
        let plain = load(NODE, None).expect("loads");
        assert_eq!((plain.s3, plain.may_lead, plain.log.replicas), (None, true, 3));
        let text =
            format!("{NODE}{S3}secret_access_key = \"hidden\"\nallow = [\"10.0.0.5:9000\"]\n");
        let settings = load(&text, None).expect("loads");
        assert!(!format!("{settings:?}").contains("hidden"), "{settings:?}");
        let s3 = settings.s3.expect("a bucket");
        assert_eq!((s3.endpoint.as_str(), s3.prefix.as_str()), ("http://10.0.0.5:9000", "drops"));
        assert_eq!((s3.region.as_str(), s3.bucket.as_str()), ("us-east-1", "files"));
        let given = load(&text, Some(Secret::new("given".into()))).expect("loads").s3;
        assert_eq!(
            given.expect("a bucket").secret_access_key.read().expect("given").reveal(),
            "given"
        );
    }

    #[test]
    fn errors_name_the_setting() {
        let secret = "secret_access_key = \"s\"\n";
        for (more, word) in [
            ("", "DROPDEX_S3_SECRET_ACCESS_KEY"),
            (&format!("{secret}secret_access_key_file = \"f\"\n"), "not both"),
            (&format!("{secret}prefix = \"a/../b\"\n"), "cluster.s3.prefix"),
            (&format!("{secret}prefix = \"/a\"\n"), "cluster.s3.prefix"),
            (&format!("{secret}allow = [\"10.0.0.5\"]\n"), "10.0.0.5"),
            (&format!("{secret}keys = 1\n"), "keys"),
        ] {
            let refused = load(&format!("{NODE}{S3}{more}"), None).expect_err(more);
            assert!(format!("{refused:#}").contains(word), "{more}: {refused:#}");
        }
        for (changed, word) in [
            ("endpoint = \"s3.example.com\"\nbucket = \"b\"", "s3.example.com"),
            ("endpoint = \"http://h\"\nbucket = \"a/b\"", "cluster.s3.bucket"),
        ] {
            let section = format!("[cluster.s3]\n{changed}\naccess_key_id = \"id\"\n{secret}");
            let refused = load(&format!("{NODE}{section}"), None).expect_err(changed);
            assert!(format!("{refused:#}").contains(word), "{changed}: {refused:#}");
        }
        for (node, word) in [
            (NODE.replace("nats://", ""), "cluster.servers"),
            (NODE.replace("drops", "a.b"), "cluster.stream"),
            (format!("{NODE}replicas = 2\n"), "cluster.replicas"),
            (NODE.replace("\"a\"", "\"\""), "`node`"),
        ] {
            let refused = load(&node, None).expect_err(word);
            assert!(format!("{refused:#}").contains(word), "{node}: {refused:#}");
        }
    }
}
