//! Stands in for `cluster` in a build without that feature, whose settings have no `[cluster]`.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::work::Work;
use crate::accounts::{OnServe, Store, StoreOptions};
use crate::config::Config;
use crate::config::cluster::ClusterSettings;
use crate::workers::files::switch::Switch;

/// Never made: a server without the feature `cluster` is no node.
pub(super) enum Member {}

pub(super) fn open(
    _options: StoreOptions,
    _cluster: &ClusterSettings,
    _on_serve: OnServe,
) -> anyhow::Result<Store> {
    anyhow::bail!("this dropdex was built without the feature `cluster`")
}

impl Member {
    pub fn new(
        _config: &Config,
        _cluster: &ClusterSettings,
        _switch: Arc<Switch>,
        _is_current: bool,
    ) -> anyhow::Result<Member> {
        anyhow::bail!("this dropdex was built without the feature `cluster`")
    }

    pub fn spawn(self, _work: Work, _tasks: &mut JoinSet<()>, _stopped: &watch::Receiver<()>) {
        match self {}
    }
}
