//! Position and health of a node, for operators.

use serde::{Deserialize, Serialize};

/// A node, as `dropdex cluster status` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeFacts {
    pub node: String,
    /// The last record of the shared log that is applied.
    pub seq: u64,
    /// Hash over all records up to it, in hexadecimal.
    pub chain: String,
    /// Whether it leads: it does the work that is done once for all nodes.
    pub leads: bool,
    /// Whether it has all records of the shared log.
    pub caught_up: bool,
    /// Key of the list of its newest files, in use or ready to be.
    #[serde(default)]
    pub files: Option<String>,
    /// Whether it lacks the files that the log has put into use.
    #[serde(default)]
    pub behind: bool,
    /// Why the shared log cannot be reached, if so.
    pub cut_off: Option<String>,
    /// Why the node accepts no more writes, if so.
    pub halted: Option<String>,
    /// Its time, in Unix time, if its clock is trusted.
    #[serde(default)]
    pub unix_ms: Option<i64>,
    #[serde(default)]
    pub clock_untrusted: bool,
    /// Peers that it has heard from since its start, but not in the last seconds.
    #[serde(default)]
    pub silent: Vec<String>,
    /// Digests of the state at the last checkpoints, oldest first.
    pub checkpoints: Vec<Checkpoint>,
}

/// Digest of the state after a record of the shared log that asks for it. Equal on all nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    pub id: u64,
    /// 64 hexadecimal digits.
    pub digest: String,
}
