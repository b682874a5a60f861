//! Work that one node does for all: a single server, or the leader of a cluster.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use url::Url;

use super::fetcher;
use crate::backup::store::BackupStore;
use crate::changes::Appender;
use crate::config::Config;
use crate::facts::published::FactsFolder;
use crate::intake::inbox::Inbox;
use crate::intake::queue::Queue;
use crate::intake::tables::TablesFolder;
use crate::outbound::dns::Dns;
use crate::outbound::guard::Guard;
use crate::outbound::http::Client;
use crate::outbound::parent::Parents;
use crate::service::app::App;
use crate::sources::run::Runner;
use crate::sources::state::Folder;
use crate::sources::worker::Worker;
use crate::workers::archive::Archive;
use crate::workers::backups::{self, BackupWorker};
use crate::workers::bootstrap::Registry;
use crate::workers::changes::Deriving;
use crate::workers::deliver::Deliver;
use crate::workers::deliver::schedule::Schedule;
use crate::workers::deliver::send::Senders;
use crate::workers::erasure::Erasure;
use crate::workers::gather::{Gather, Rows};
use crate::workers::notify::digest::Digests;
use crate::workers::notify::matching::Matching;
use crate::workers::notify::renewals::Renewals;
use crate::workers::notify::watching::Watching;
use crate::workers::verify::server::Limits;
use crate::workers::verify::{Verify, WhoisServers};
use crate::workers::{self, until};

/// Maximum time of a query to a web archive, which may read long lists from slow disks.
const ARCHIVE_CALL_MAX: Duration = Duration::from_secs(60);

/// Dependencies of the workers, kept so that they can be started again.
pub(super) struct Work {
    pub config: Config,
    pub app: App,
    pub queue: Queue,
    pub deliver: Deliver,
    pub changes: Arc<Appender>,
    /// Notified when a new generation is served: one for matching rules, one for deriving changes.
    pub published: [Arc<Notify>; 2],
}

impl workers::Work for Work {
    /// Starts the workers, which end when the sender of `stopped` is dropped. On the very first start, rules and
    /// watchlists ignore the lists and changes that already exist.
    ///
    /// # Errors
    /// A setting is invalid.
    async fn start(&self, stopped: &watch::Receiver<()>) -> anyhow::Result<JoinSet<()>> {
        let stop = || until(stopped.clone());
        let mut tasks = JoinSet::new();
        if self.config.inbox.enabled {
            tasks.spawn(self.inbox().run(stop()));
        }
        tasks.spawn(self.sources()?.run(stop()));
        tasks.spawn(self.queue.clone().keep_built(stop()));
        if let Some(backups) = self.backups()? {
            tasks.spawn(backups.run(stop()));
        }
        let deriving = self.deriving();
        deriving.begin().await;
        tasks.spawn(deriving.run(stop()));
        let folder = FactsFolder::new(&self.config.site().data);
        let (gather, rows) = Gather::new(folder.clone(), self.config.clock);
        // Ends after those that send rows.
        tasks.spawn(gather.run());
        if let Some(archive) = self.archive(folder, rows.clone())? {
            tasks.spawn(archive.run(stop()));
        }
        if let Some(verify) = self.verify(rows)? {
            tasks.spawn(verify.run(stop()));
        }
        let (matching, watching) = (self.matching(), self.watching());
        matching.begin().await;
        watching.begin().await;
        tasks.spawn(watching.run(stop()));
        tasks.spawn(self.renewals().run(stop()));
        let erasure = Erasure { store: self.app.store.clone(), clock: self.config.clock };
        tasks.spawn(erasure.run(stop()));
        tasks.spawn(matching.run(stop()));
        if self.app.reach.channels.email {
            tasks.spawn(self.digests().run(stop()));
        }
        tasks.spawn(self.deliver.clone().run(stop()));
        Ok(tasks)
    }
}

impl Work {
    /// Creates the workers' dependencies. Jobs on lists end when the sender of `stopped` is dropped.
    ///
    /// # Errors
    /// A setting is invalid.
    pub fn new(
        config: &Config,
        app: App,
        changes: Appender,
        published: [Arc<Notify>; 2],
        stopped: &watch::Receiver<()>,
    ) -> anyhow::Result<Work> {
        let (guard, dns) = (app.reach.guard.clone(), Dns::new(&config.outbound.dns)?);
        let deliver = Deliver {
            store: app.store.clone(),
            senders: config.check(Senders::new(
                &config.outbound,
                guard,
                &dns,
                Arc::clone(&app.live),
            ))?,
            schedule: Schedule::new(config.outbound.webhooks.retry.clone()),
            clock: config.clock,
        };
        let (log_json, jobs) = (config.telemetry.logs.json, Arc::clone(&app.status.jobs));
        let queue = Queue::new(config.site(), log_json, jobs, stopped.clone());
        let (config, changes) = (config.clone(), Arc::new(changes));
        Ok(Work { config, app, queue, deliver, changes, published })
    }

    fn inbox(&self) -> Inbox {
        Inbox {
            queue: self.queue.clone(),
            period: self.config.inbox.period,
            status: Arc::clone(&self.app.status.inbox),
            clock: self.config.clock,
        }
    }

    fn sources(&self) -> anyhow::Result<Worker> {
        let site = self.config.site();
        let runner = Runner {
            fetcher: fetcher(&self.config)?,
            folder: Folder::new(&site.data),
            tables: TablesFolder::new(&site.data),
            facts: FactsFolder::new(&site.data),
            intake: self.queue.clone(),
        };
        Ok(Worker::new(runner, self.config.sources.clone(), Arc::clone(&self.app.status.sources)))
    }

    /// Returns the worker of scheduled backups; `None` without `[backup]`.
    fn backups(&self) -> anyhow::Result<Option<BackupWorker>> {
        backups::reset_gauges();
        let Some(settings) = self.config.backup.clone() else { return Ok(None) };
        let calls = &self.config.outbound;
        Ok(Some(BackupWorker {
            backups: BackupStore::open(&settings.place, calls, Handle::current())?,
            settings,
            store: self.app.store.clone(),
            data: self.config.site().data,
            file: self.config.file.clone(),
            clock: self.config.clock,
            status: Arc::clone(&self.app.status.backups),
        }))
    }

    fn deriving(&self) -> Deriving {
        Deriving {
            live: Arc::clone(&self.app.live),
            store: self.app.store.clone(),
            clock: self.config.clock,
            catch_days: self.config.catch_days,
            index: self.config.index.clone(),
            log: Arc::clone(&self.changes),
            published: Arc::clone(&self.published[1]),
        }
    }

    fn matching(&self) -> Matching {
        Matching {
            facts: Arc::clone(&self.app.facts),
            live: Arc::clone(&self.app.live),
            store: self.app.store.clone(),
            clock: self.config.clock,
            catch_days: self.config.catch_days,
            published: Arc::clone(&self.published[0]),
        }
    }

    fn digests(&self) -> Digests {
        Digests {
            live: Arc::clone(&self.app.live),
            store: self.app.store.clone(),
            facts: Arc::clone(&self.app.facts),
            clock: self.config.clock,
            catch_days: self.config.catch_days,
        }
    }

    fn renewals(&self) -> Renewals {
        Renewals {
            store: self.app.store.clone(),
            clock: self.config.clock,
            has_mail: self.app.reach.channels.email,
        }
    }

    fn watching(&self) -> Watching {
        Watching {
            log: self.app.changes.clone(),
            store: self.app.store.clone(),
            clock: self.config.clock,
            has_mail: self.app.reach.channels.email,
        }
    }

    /// Whether facts are kept that show what members want.
    fn keeps_facts_of_members(&self) -> bool {
        self.config.facts_of_members.unwrap_or_else(|| self.config.is_single_user())
    }

    /// Returns the worker that asks a web archive, unless that is off.
    fn archive(&self, folder: FactsFolder, rows: Rows) -> anyhow::Result<Option<Archive>> {
        let (config, app) = (&self.config, &self.app);
        // Without the worker, no name waits.
        metrics::gauge!("dropdex_archive_waiting").set(0.0);
        let settings = config.outbound.archive.as_ref().zip(app.reach.archive.as_ref());
        let Some((settings, archive)) = settings else { return Ok(None) };
        let rules = config.outbound.rules(&settings.allow);
        let guard = Guard::new(rules, Dns::new(&config.outbound.dns)?);
        let client = Client::new(guard, settings.ca_file.as_deref())?;
        Ok(Some(Archive {
            archive: Arc::clone(archive),
            client: client.with_timeout(ARCHIVE_CALL_MAX),
            url: Url::parse(settings.url.as_str()).context("archive.url")?,
            every: settings.every,
            best: settings.best,
            store: app.store.clone(),
            live: Arc::clone(&app.live),
            clock: config.clock,
            catch_days: config.catch_days,
            folder,
            rows,
            of_members: self.keeps_facts_of_members(),
        }))
    }

    /// Returns the worker that verifies watched names with RDAP, unless verification is off.
    fn verify(&self, rows: Rows) -> anyhow::Result<Option<Verify>> {
        let (config, app) = (&self.config, &self.app);
        let Some(checks) = &app.reach.checks else { return Ok(None) };
        let settings = &config.outbound.rdap;
        let dns = Dns::new(&config.outbound.dns)?;
        let guard = Guard::new(config.outbound.rules(&settings.allow), dns.clone());
        let zones = config.outbound.dns.zones.clone();
        let whois = &config.outbound.whois;
        let whois = whois.enabled.then(|| WhoisServers {
            chosen: whois.servers.clone(),
            guard: Guard::new(config.outbound.rules(&whois.allow), dns.clone()),
        });
        let parents = Parents::new(dns, guard.clone(), zones);
        let live = Arc::clone(&app.reach.bootstrap);
        let registry = Registry::open(&config.data, settings, config.clock, live)?;
        Ok(Some(Verify {
            store: app.store.clone(),
            live: Arc::clone(&app.live),
            registry: Some(Box::new(registry)),
            client: Client::new(guard, settings.ca_file.as_deref())?,
            parents,
            whois,
            clock: config.clock,
            checks: Arc::clone(checks),
            catch_days: config.catch_days,
            limits: Limits {
                per_second: settings.requests_per_second,
                concurrency: settings.concurrency,
            },
            sample: config.outbound.sample.clone(),
            lives: self.keeps_facts_of_members().then_some(rows),
        }))
    }
}
