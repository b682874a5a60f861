//! The work that is done once: by a single node, or by the leader of a cluster.

use std::sync::Arc;

use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use super::until;
use crate::config::Config;
use crate::http::App;
use crate::http::alerts::rule_query;
use crate::outbound::bootstrap::LiveBootstrap;
use crate::outbound::dns::Dns;
use crate::outbound::guard::Guard;
use crate::outbound::http::Client;
use crate::workers::bootstrap::Registry;
use crate::workers::deliver::Deliver;
use crate::workers::notify::matching::Matching;
use crate::workers::notify::watching::Watching;
use crate::workers::verify::Verify;
use crate::workers::verify::server::Limits;

/// Everything that the workers are made of, each time that they start.
pub(super) struct Work {
    pub config: Config,
    pub app: App,
    pub deliver: Deliver,
    pub bootstrap: Arc<LiveBootstrap>,
    /// Notified when another generation is served.
    pub published: Arc<Notify>,
}

impl Work {
    /// Starts the workers, which end when the sender of `stopped` is dropped. At the very first start, rules and
    /// watchlists begin with the lists and changes that come from now on.
    ///
    /// # Errors
    /// A setting is invalid.
    pub async fn start(&self, stopped: &watch::Receiver<()>) -> anyhow::Result<JoinSet<()>> {
        let stop = || until(stopped.clone());
        let mut tasks = JoinSet::new();
        if let Some(verify) = self.verify()? {
            tasks.spawn(verify.run(stop()));
        }
        let (matching, watching) = (self.matching(), self.watching());
        matching.begin().await;
        watching.begin().await;
        tasks.spawn(watching.run(stop()));
        tasks.spawn(matching.run(stop()));
        tasks.spawn(self.deliver.clone().run(stop()));
        Ok(tasks)
    }

    fn matching(&self) -> Matching {
        Matching {
            live: Arc::clone(&self.app.live),
            store: self.app.store.clone(),
            clock: self.config.clock,
            catch_days: self.config.catch_days,
            resolve: |filter, today| rule_query(filter, today).ok(),
            published: Arc::clone(&self.published),
        }
    }

    fn watching(&self) -> Watching {
        Watching {
            log: self.app.changes.clone(),
            store: self.app.store.clone(),
            clock: self.config.clock,
            has_mail: self.app.channels.email,
        }
    }

    /// The worker that verifies watched names with RDAP, unless that is switched off.
    fn verify(&self) -> anyhow::Result<Option<Verify>> {
        let (config, app) = (&self.config, &self.app);
        let Some(checks) = &app.checks else { return Ok(None) };
        let settings = &config.outbound.rdap;
        let dns = Dns::new(&config.outbound.dns)?;
        let guard = Guard::new(config.outbound.rules(&settings.allow), dns.clone());
        let live = Arc::clone(&self.bootstrap);
        let registry = Registry::open(&config.data, settings, config.clock, live)?;
        Ok(Some(Verify {
            store: app.store.clone(),
            live: Arc::clone(&app.live),
            registry: Some(Box::new(registry)),
            client: Client::new(guard, settings.ca_file.as_deref())?,
            dns,
            clock: config.clock,
            checks: Arc::clone(checks),
            catch_days: config.catch_days,
            limits: Limits {
                per_second: settings.requests_per_second,
                concurrency: settings.concurrency,
            },
        }))
    }
}
