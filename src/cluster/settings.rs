//! Settings of the shared log.

use std::path::PathBuf;

/// Location of the shared log, and the name of this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedLogSettings {
    /// Addresses of NATS servers: `nats://10.0.0.1:4222`, or `tls://` with encryption.
    pub servers: Vec<String>,
    /// Name of the stream.
    pub stream: String,
    /// Number of servers that keep a copy of the stream.
    pub replicas: u8,
    /// File with the JWT and the NKey seed of the user.
    pub credentials: Option<PathBuf>,
    /// File with the certificate authorities of the servers; by default, those of the system.
    pub ca_file: Option<PathBuf>,
    /// Name of this node, unique in the cluster.
    pub node: String,
}

impl SharedLogSettings {
    /// Returns the subject of the records.
    pub fn subject(&self) -> String {
        format!("{}.log", self.stream)
    }

    /// Returns the subject on which operators query the nodes.
    pub fn nodes_subject(&self) -> String {
        format!("{}.nodes", self.stream)
    }
}
