//! Settings of the shared log.

use std::path::PathBuf;

/// Where the shared log is, and who this node is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Addresses of NATS servers: `nats://10.0.0.1:4222`, or `tls://` with encryption.
    pub servers: Vec<String>,
    /// Name of the stream.
    pub stream: String,
    /// Servers that keep a copy of the stream.
    pub replicas: u8,
    /// File with the JWT and the NKey seed of the user.
    pub credentials: Option<PathBuf>,
    /// Certificates that those of the servers are checked with; without it, those of the system.
    pub ca_file: Option<PathBuf>,
    /// Name of this node, another one on each.
    pub node: String,
}

impl Settings {
    /// Returns the subject of the records.
    pub fn subject(&self) -> String {
        format!("{}.log", self.stream)
    }

    /// Returns the subject on which operators ask the nodes.
    pub fn nodes_subject(&self) -> String {
        format!("{}.nodes", self.stream)
    }
}
