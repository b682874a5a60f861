//! Position and health of a node, for operators.

use serde::{Deserialize, Serialize};

/// A node, as `dropdex cluster status` shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeFacts {
    pub node: String,
    /// The last record of the shared log that is applied.
    pub seq: u64,
    /// Hash over all records up to that one, in hexadecimal.
    pub chain: String,
    /// Whether the node leads, and therefore does the work that one node does for all.
    pub leads: bool,
    /// Whether the node has all records of the shared log.
    pub caught_up: bool,
    /// Key of the list of its newest files, in use or ready for use.
    #[serde(default)]
    pub files: Option<String>,
    /// Whether the node lacks the files that the log has put into use.
    #[serde(default)]
    pub behind: bool,
    /// Why the shared log is unreachable; `None` if it is reachable.
    pub cut_off: Option<String>,
    /// Why the node accepts no more writes; `None` if it accepts them.
    pub halted: Option<String>,
    /// Unix time of the node, if its clock is trusted.
    #[serde(default)]
    pub unix_ms: Option<i64>,
    #[serde(default)]
    pub clock_untrusted: bool,
    /// Peers that the node has heard from since its start, but not in the last few seconds.
    #[serde(default)]
    pub silent: Vec<String>,
    /// Digests of the state at the last checkpoints, oldest first.
    pub checkpoints: Vec<Checkpoint>,
}

/// Digest of the state after a record that requests one. Equal on all nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    pub id: u64,
    /// 64 hexadecimal digits.
    pub digest: String,
}
