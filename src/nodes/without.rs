//! The stand-in for `nodes` in builds without the feature `cluster`, whose settings have no
//! `[cluster]`.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use crate::accounts::{Store, StoreOptions};
use crate::changes::Appender;
use crate::config::Config;
use crate::config::cluster::ClusterSettings;
use crate::index::generation::live::LiveIndex;
use crate::workers::Work;

/// Returns false: there is no other node.
pub fn has_files_of_the_leader(_data: &Path) -> bool {
    false
}

/// Uninhabited: without the feature, no nodes exist.
pub enum LocalNode {}

impl LocalNode {
    /// Refuses to open the store of a node.
    ///
    /// # Errors
    /// Always.
    pub fn open(
        _options: StoreOptions,
        _config: &Config,
        _settings: &ClusterSettings,
        _live: &Arc<LiveIndex>,
        _published: Vec<Arc<Notify>>,
        _is_current: bool,
    ) -> anyhow::Result<(Store, LocalNode)> {
        anyhow::bail!("this dropdex was built without the feature `cluster`")
    }

    /// Never called.
    pub fn spawn(
        self,
        _config: &Config,
        _served: (Store, Arc<LiveIndex>, Arc<Appender>),
        _work: impl Work,
        _tasks: &mut JoinSet<()>,
        _stopped: &watch::Receiver<()>,
    ) {
        match self {}
    }
}
