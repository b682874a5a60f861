//! The section `[cluster]`: the shared log of several nodes.

use std::num::NonZeroU32;
use std::path::PathBuf;

use anyhow::ensure;
use serde::Deserialize;

use crate::cluster::record::NODE_BYTES_MAX;
use crate::cluster::settings::Settings;
use crate::config::number::Bounded;

const STREAM_DEFAULT: &str = "dropdex";
const REPLICAS_DEFAULT: u8 = 3;

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
}

/// Settings of a node of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterSettings {
    pub log: Settings,
    /// Whether this node may do the work that is done once for all.
    pub may_lead: bool,
    /// Bytes of files that this node sends or fetches in a second at most.
    pub bytes_per_second: Option<NonZeroU32>,
}

impl ClusterFile {
    /// The settings of the node `node`.
    ///
    /// # Errors
    /// A value is missing or invalid.
    pub(super) fn settings(self, node: Option<&str>) -> anyhow::Result<ClusterSettings> {
        let ClusterFile { servers, stream, replicas, credentials, ca_file, .. } = self;
        ensure!(
            cfg!(feature = "cluster"),
            "cluster: this dropdex was built without the feature `cluster`; remove the section, or build with it"
        );
        let node = node.unwrap_or_default();
        ensure!(
            (1..=NODE_BYTES_MAX).contains(&node.len()),
            "cluster: set `node` to a name of at most {NODE_BYTES_MAX} bytes, another one on each node"
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
        let log =
            Settings { servers, stream, replicas, credentials, ca_file, node: node.to_owned() };
        let bytes_per_second = self.transfer_mib_per_second.map(|mib| mib.get::<u32>() << 20);
        Ok(ClusterSettings {
            log,
            may_lead: self.may_lead.unwrap_or(true),
            bytes_per_second: bytes_per_second.and_then(NonZeroU32::new),
        })
    }
}
