//! Builds the service from a [`Config`] and runs it: binds, spawns the workers, serves and drains.
//!
//! The only module that depends on all others.

mod acme;
mod work;

use std::io::{ErrorKind, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use axum::extract::Request;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tower::util::MapRequestLayer;

use crate::accounts::{Store, StoreOptions, Token};
use crate::changes::{Appender, ChangeLog};
use crate::config::Config;
use crate::config::telemetry::Telemetry;
use crate::copies::Copies;
use crate::corpus::Corpus;
use crate::edge::allowance;
use crate::edge::mount::Mount;
use crate::edge::position::Positions;
use crate::edge::routes::Routes;
use crate::exit::{self, ExitWith};
use crate::http;
use crate::index::error::OpenError;
use crate::index::filter::AsOf;
use crate::index::generation::build;
use crate::index::generation::live::LiveIndex;
use crate::index::generation::open::{self, Opened};
use crate::index::storage::manifest::Manifest;
use crate::intake;
use crate::intake::request::{Rebuild, Request as IntakeRequest, Task};
use crate::intake::run::IndexState;
use crate::intake::tables::TablesFolder;
use crate::journal::fs::Disk;
use crate::nodes::LocalNode;
use crate::outbound::bootstrap::LiveBootstrap;
use crate::outbound::dns::Dns;
use crate::outbound::email::Mailer;
use crate::outbound::guard::Guard;
use crate::server::settings::{DrainTimes, ServerSettings, TlsSource};
use crate::server::tls::Tls;
use crate::server::{self, Server, slices, supervisor};
use crate::service::app::{App, AppParts, ConfiguredChannels, Reach, ResponseLimits, Status};
use crate::service::fact_book::FactBook;
use crate::service::site::{Setup, Site};
use crate::service::work::PAUSED_PER_CORE;
use crate::sources::fetch::Fetcher;
use crate::sources::state::{Folder, View};
use crate::telemetry::disk::MeteredFs;
use crate::telemetry::listener::{Listener as MetricsListener, Sample};
use crate::telemetry::process::Started;
use crate::telemetry::requests;
use crate::telemetry::{catalogue, query};
use crate::vocab::file_error::is_full;
use crate::vocab::new_file;
use crate::vocab::plan::AccountLimits;
use crate::vocab::suffixes;
use crate::vocab::tables::{self, Table};
use crate::vocab::url::BaseUrl;
use crate::web::{self, Web};
use crate::workers::admin::{AdminSocket, Backend, Inviter};
use crate::workers::bootstrap::Registry;
use crate::workers::erasure::Purging;
use crate::workers::files::ExportFiles;
use crate::workers::gauges::Gauges;
use crate::workers::reload::Reload;
use crate::workers::sales::SalesFiles;
use crate::workers::{Work as _, until};
use acme::{Acme, register_counters};
use work::Work;

/// Time to flush and close the journal after a drain.
const LAST_STEPS: Duration = Duration::from_secs(5);
/// Blocking threads per core: four for running queries, the others for paused queries.
const BLOCKING_THREADS_PER_CORE: usize = 4 + PAUSED_PER_CORE;

/// Opens the index and the store, listens, and serves until SIGTERM or SIGINT. Calls `ready` with the
/// base URL once requests are served.
///
/// # Errors
/// A file cannot be opened, an address cannot be bound, or the journal cannot be closed.
pub fn serve(
    config: &Config,
    ready: impl FnOnce(&str, &Store) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    tracing::info!(version = env!("CARGO_PKG_VERSION"), data = %config.data.display(), "dropdex starts");
    remove_leftovers(config);
    let Telemetry { listen, slow, .. } = &config.telemetry;
    // The recorder must exist before the first counter is used.
    let metrics = listen.as_ref().map(|_| catalogue::install()).transpose()?;
    query::set_slow_threshold(*slow);
    let workers = Workers::new();
    let (work, node) = open_all(config, &workers.stopped)?;
    let store = work.app.store.clone();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    slices::shorten();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(cores * BLOCKING_THREADS_PER_CORE)
        .build()
        .context("cannot start the async runtime")?;
    let served = runtime.block_on(run(config, (work, node), workers, metrics, ready));
    // Waits for running queries. Connections are closed or past their deadline by now.
    runtime.shutdown_timeout(Duration::from_secs(1));
    let closed = store.close().context("closing the journal");
    if closed.is_ok() {
        tracing::info!("stopped; the journal is flushed");
    }
    served.and(closed)
}

/// Opens the index, the users' data and the log of changes. The workers end when the sender of `stopped`
/// is dropped. Also returns this node's membership in a cluster.
fn open_all(
    config: &Config,
    stopped: &watch::Receiver<()>,
) -> anyhow::Result<(Work, Option<LocalNode>)> {
    let Opened { index, fallback } = open_index(config)?;
    warn_about_sources(config)?;
    // Computes the day's tables now instead of in the first request.
    index.prepare(AsOf { today: config.clock.today(), catch_days: config.catch_days });
    let live = Arc::new(LiveIndex::new(Arc::new(index)));
    let published = [(); 2].map(|()| Arc::new(Notify::new()));
    let (store, node) = open_store(config, &live, &published, fallback.is_none())?;
    // The open journal is locked, so no other server uses the data folder.
    if let Err(err) = TablesFolder::new(&config.site().data).tidy(&config.tables) {
        tracing::warn!(error = %err, "cannot remove old tables of suffixes");
    }
    let (appender, changes) = open_changes(config)?;
    let problem = fallback.map(|problem| problem.to_string());
    let app = build(config, live, store, changes, problem)?;
    Ok((Work::new(config, app, appender, published, stopped)?, node))
}

/// Opens the users' data: the journal of a single server, or this node's copy of the cluster's log.
/// `is_current` is true if `live` is the generation that the index folder names.
fn open_store(
    config: &Config,
    live: &Arc<LiveIndex>,
    published: &[Arc<Notify>],
    is_current: bool,
) -> anyhow::Result<(Store, Option<LocalNode>)> {
    // The server never opens the corpus, so it checks the data folder here to fail early.
    check_folder(&config.data)?;
    // Without a mail server, no address can be verified.
    let limits = match config.outbound.smtp {
        Some(_) => config.accounts,
        None => AccountLimits { unverified_bytes: u64::MAX, ..config.accounts },
    };
    let options = StoreOptions {
        fs: Arc::new(MeteredFs::new(Disk)),
        limits: Some(limits),
        ..StoreOptions::new(&config.data, config.plans.clone(), config.clock)
    };
    if let Some(cluster) = &config.cluster {
        let published = published.to_vec();
        let opened = LocalNode::open(options, config, cluster, live, published, is_current)?;
        return Ok((opened.0, Some(opened.1)));
    }
    let store = Store::open_with(options)?;
    anyhow::ensure!(
        !store.is_copy(),
        "the data folder {} is that of a node of a cluster, and the settings have no [cluster]; \
         `dropdex cluster leave` makes it that of a single node",
        config.data.display()
    );
    Ok((store, None))
}

/// Builds the state of requests. `index_problem` is the reason why `live` differs from the generation in `CURRENT`.
///
/// # Errors
/// A setting is invalid.
pub fn build(
    config: &Config,
    live: Arc<LiveIndex>,
    store: Store,
    changes: ChangeLog,
    index_problem: Option<String>,
) -> anyhow::Result<App> {
    let outbound = &config.outbound;
    let bootstrap = Arc::new(LiveBootstrap::new(Arc::new(outbound.rdap.compiled())));
    Registry::open(&config.data, &outbound.rdap, config.clock, Arc::clone(&bootstrap))?;
    Ok(App::new(AppParts {
        live,
        store,
        facts: Arc::new(FactBook::new(
            &config.data,
            (config.index_life.facts_memory_mib as usize) << 20,
        )),
        sales: Arc::default(),
        own_sales: Arc::default(),
        changes,
        copies: config.export_files.map(|_| Copies::new(&config.data)),
        clock: config.clock,
        catch_days: config.catch_days,
        site: Site {
            home: outbound.public_url.clone(),
            cookie: config.web.cookie(outbound.public_url.as_ref()),
            single_user: config.is_single_user(),
            owner_link: Token::generate()
                .map_err(|err| anyhow!("the system's random source failed: {err}"))?,
            setup: (config.cluster.is_none() && !config.web.demo).then(|| Setup {
                sources: Folder::new(&config.site().data),
                contact: config.sources.contact.clone(),
            }),
        },
        reach: Reach {
            guard: Guard::new(outbound.webhook_rules(), Dns::new(&outbound.dns)?),
            channels: ConfiguredChannels {
                email: outbound.smtp.is_some(),
                webhook: true,
                telegram: outbound.telegram.is_some(),
            },
            bootstrap,
            checks: outbound.rdap.enabled.then(Arc::default),
            whois: outbound.whois.enabled,
            archive: outbound.archive.is_some().then(Arc::default),
        },
        limits: ResponseLimits::new(
            config.server.deadlines.write_stall,
            config.sources.export_internal,
        ),
        status: Status::new(config.node.clone(), index_problem),
    }))
}

/// Warns of lists that no source renews, and of sources whose settings are missing.
fn warn_about_sources(config: &Config) -> anyhow::Result<()> {
    // The demo serves only the sample.
    let is_alone = config.cluster.is_none() && !config.web.demo;
    if is_alone && !fetches_lists(config)? && Corpus::has_lists(&config.site().data) {
        tracing::warn!(
            "there are lists, but no source is enabled: new ones come from the inbox and from `dropdex \
             ingest` alone; `dropdex sources enable` fetches public ones, also after a backup without \
             the choice of sources was restored"
        );
    }
    let undefined = Folder::new(&config.site().data).undefined(&config.sources)?;
    if !undefined.is_empty() {
        tracing::warn!(
            sources = undefined.join(", "),
            "there is a state of sources that no setting defines, so they are not fetched: after a restore, take them \
             over from settings-of-backup.toml in the data folder; if they were removed, remove their folders in \
             sources/"
        );
    }
    Ok(())
}

/// Logs that the index was built with tables other than those of this process. A Public Suffix List from
/// the settings was chosen on purpose, so a difference in it is a warning; other tables take effect with
/// the next list.
fn compare_tables(manifest: &Manifest) {
    let used = manifest.suffixes.as_ref().map(|used| used.sha256.as_str());
    let is_fixed = tables::in_use(Table::Suffixes).is_none_or(|it| it.is_fixed);
    if used != suffixes::installed() && is_fixed {
        tracing::warn!(
            index = used.unwrap_or("compiled in"),
            server = suffixes::installed().unwrap_or("compiled in"),
            "the index was built with another Public Suffix List; run `dropdex rebuild`"
        );
    } else if used != suffixes::installed() || manifest.tables != tables::versions() {
        tracing::info!(
            "newer tables of suffixes are in use; the next rebuild applies them to the index"
        );
    }
}

/// Opens the index and logs what is served.
fn open_index(config: &Config) -> anyhow::Result<Opened> {
    let opened = current_index(config)?;
    let (manifest, contains) = (opened.index.manifest(), opened.index.contains());
    let generation = manifest.generation;
    if let Some(problem) = &opened.fallback {
        tracing::error!(
            error = %problem,
            serving = %generation,
            "the current generation is damaged; serving its predecessor"
        );
    }
    tracing::info!(%generation, names = manifest.names, ?contains, "the index is open");
    compare_tables(manifest);
    config.clock.saw(manifest.newest_observed_at);
    Ok(opened)
}

/// Opens the current generation. If it is missing or was built from other lists, a new one is built
/// first. An installation is served before its first lists arrive.
fn current_index(config: &Config) -> anyhow::Result<Opened> {
    let is_node = config.cluster.is_some();
    match open::open_current(&config.index) {
        Err(OpenError::Missing(_)) => {}
        Ok(_) if !is_node && intake::run::index_state(&config.site()) == IndexState::Foreign => {
            tracing::warn!(
                index = %config.index.display(),
                "the index was built from other lists than those of the data folder; rebuilding it before the start"
            );
        }
        opened => return Ok(opened?),
    }
    let task = Task::Rebuild(Rebuild { compact: false, only_if_behind: false });
    let outcome = intake::run::run(&IntakeRequest { site: config.site(), task }, &());
    if let Some(error) = outcome.error() {
        bail!("no index can be built in {}: {error}", config.index.display());
    }
    Ok(open::open_current(&config.index)?)
}

/// Opens the log of changes in the data folder.
///
/// # Errors
/// The log is damaged or cannot be read.
pub fn open_changes(config: &Config) -> anyhow::Result<(Appender, ChangeLog)> {
    let folder = config.data.join("changes");
    Appender::open(&folder, config.clock.now()).context("opening the change log")
}

/// Whether any source is enabled.
fn fetches_lists(config: &Config) -> anyhow::Result<bool> {
    let views = Folder::new(&config.site().data).views(&config.sources)?;
    Ok(views.iter().any(View::is_enabled))
}

/// The fetcher of sources.
///
/// # Errors
/// A setting is invalid.
pub fn fetcher(config: &Config) -> anyhow::Result<Fetcher> {
    let rules = config.outbound.rules(&config.sources.allow);
    let guard = Guard::new(rules, Dns::new(&config.outbound.dns)?);
    let folder = Folder::new(&config.site().data);
    config.check(Fetcher::new(&config.sources, folder, guard, config.clock).context("[sources]"))
}

/// Removes unfinished files of killed commands. Failures are logged and do not stop startup.
fn remove_leftovers(config: &Config) {
    let removed = build::tidy(&config.index).map_err(anyhow::Error::from);
    let removed = removed.and(Corpus::tidy(&config.data).map_err(anyhow::Error::from));
    if let Err(err) = removed {
        tracing::warn!(error = format!("{err:#}"), "cannot remove leftovers of a rebuild");
    }
}

async fn run(
    config: &Config,
    (work, node): (Work, Option<LocalNode>),
    mut workers: Workers,
    metrics: Option<PrometheusHandle>,
    ready: impl FnOnce(&str, &Store) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let app = work.app.clone();
    let bound = Bound::bind(config, metrics, &app).await?;
    let mailer = config.check(config.outbound.smtp.as_ref().map(Mailer::new).transpose())?;
    let web = Web::with_mailer(app.clone(), config.web.clone(), mailer);
    workers.spawn_all(work, node, bound.admin, inviter(&web)).await?;
    register_counters();
    let metrics_at = bound.metrics.as_ref().map(MetricsListener::address).transpose()?;
    if let Some(listener) = bound.metrics {
        workers.tasks.spawn(listener.run(until(workers.stopped.clone())));
    }
    let mut signals = Signals::listen()?;
    let hang_up = signal(SignalKind::hangup()).context("cannot listen for SIGHUP")?;
    let scheme = if bound.tls.is_some() { "https" } else { "http" };
    let (store, draining) = (app.store.clone(), Arc::clone(&app.status.draining));
    let app_opens =
        app.site.single_user && (store.has_open_owner() || web::account::makes_owner(&web));
    let app_link = app.site.owner_link.clone();
    let code = web::account::asks_code(&web).then(|| web::account::setup_code(&app.site));
    let serving = Serving::start(config, app, web, bound.listeners, bound.tls.clone());
    tokio::spawn(supervisor::feed_watchdog());
    tokio::spawn(reload_on_hang_up(bound.tls.clone(), hang_up));
    if let Some(tls) = bound.tls {
        if let Some(TlsSource::Acme(acme)) = &config.server.tls {
            let guard =
                Guard::new(config.outbound.rules(&acme.allow), Dns::new(&config.outbound.dns)?);
            let acme = config.check(Acme::new(acme, guard, tls.clone(), config.clock))?;
            tokio::spawn(acme.run());
        }
        tokio::spawn(tls.watch_files());
    }
    if config.server.proxies == ServerSettings::default().proxies {
        tracing::info!(
            "X-Forwarded-For and X-Request-Id are trusted from this machine (127.0.0.1, ::1), for a \
             reverse proxy; server.proxies changes that, [] trusts no one"
        );
    }
    // `ready` may write to the store, so it blocks until the write is durable.
    let base = format!("{scheme}://{}", bound.address);
    tokio::task::block_in_place(|| ready(&base, &store))?;
    if app_opens {
        print_line(&format!("open {base}/welcome?key={} on this machine", app_link.reveal()));
    }
    if let Some(code) = code {
        print_line(&format!("set this server up at {base}/setup with the setup code {code}"));
    }
    if let Some(address) = metrics_at {
        print_line(&format!("metrics on http://{address}/metrics"));
    }
    supervisor::ready();
    let stop = signals.next().await;
    tokio::select! {
        () = drain(&config.server.drain, stop, &draining, serving, workers) => {}
        _ = signals.next() => tracing::warn!("second signal; stopping at once"),
    }
    Ok(())
}

/// Mails invitations, with links that the pages verify; `None` if mail is not set up.
fn inviter(web: &Web) -> Option<Inviter> {
    let web = web::account::can_mail(web).then(|| web.clone())?;
    Some(Arc::new(move |email| {
        let web = web.clone();
        let now = web.app.clock.now();
        Box::pin(async move { web::account::send_invitation(&web, &email, now).await })
    }))
}

/// All listeners of the server.
struct Bound {
    tls: Option<Tls>,
    listeners: Vec<TcpListener>,
    /// The address of the first listener.
    address: SocketAddr,
    /// `None` if the disk is full, which prevents the creation of its socket file.
    admin: Option<AdminSocket>,
    metrics: Option<MetricsListener>,
}

impl Bound {
    async fn bind(
        config: &Config,
        metrics: Option<PrometheusHandle>,
        app: &App,
    ) -> anyhow::Result<Bound> {
        server::raise_descriptor_limit(&config.server.connections);
        let tls = config.check(config.server.tls.as_ref().map(Tls::open).transpose())?;
        let listeners = listeners(config).await?;
        let address = listeners[0].local_addr().context("the listener has no address")?;
        let admin = match AdminSocket::bind(&config.data) {
            Err(err) if err.chain().any(|cause| cause.downcast_ref().is_some_and(is_full)) => {
                tracing::error!(
                    error = format!("{err:#}"),
                    "the disk is full: there is no admin socket until the next start"
                );
                None
            }
            bound => Some(bound?),
        };
        let metrics = match (metrics, &config.telemetry.listen) {
            (Some(handle), Some(listen)) => Some(
                MetricsListener::bind(listen.as_str(), handle, sample(config, app, tls.as_ref()))
                    .await
                    .map_err(|err| err.context(ExitWith::new(exit::ADDRESS, "no metrics")))?,
            ),
            _ => None,
        };
        Ok(Bound { tls, listeners, address, admin, metrics })
    }
}

/// Samples the gauges for a scrape.
fn sample(config: &Config, app: &App, tls: Option<&Tls>) -> Sample {
    let started = Started::now();
    let (sources, clock) = (Arc::clone(&app.status.sources), config.clock);
    let gauges = Gauges {
        live: Arc::clone(&app.live),
        changes: app.changes.clone(),
        store: app.store.clone(),
        clock: config.clock,
        index_problem: Arc::clone(&app.status.index_problem),
        data: config.data.clone(),
        index: config.index.clone(),
    };
    let tls = tls.cloned();
    Arc::new(move || {
        let ends = tls.as_ref().and_then(Tls::expires).unwrap_or(0);
        metrics::gauge!("dropdex_certificate_expires_timestamp_seconds").set(ends as f64);
        started.sample();
        gauges.sample();
        sources.sample(clock);
    })
}

/// The sockets from socket activation or, without them, a listener on the configured address.
async fn listeners(config: &Config) -> anyhow::Result<Vec<TcpListener>> {
    let mut listeners = Vec::new();
    for socket in supervisor::sockets()? {
        socket.set_nonblocking(true).context("inherited socket")?;
        listeners.push(TcpListener::from_std(socket).context("inherited socket")?);
    }
    if listeners.is_empty() {
        let address = config.listen.as_str();
        listeners.push(server::bind(address).await.map_err(|err| not_bound(address, err))?);
    }
    for listener in &listeners {
        let address = listener.local_addr().context("the listener has no address")?;
        if config.web.plain_http && !address.ip().is_loopback() {
            let why = format!(
                "web.plain_http sends passwords over plain HTTP and is only allowed on loopback, but the \
                 server listens on {address}; remove the setting and put a TLS proxy in front"
            );
            return Err(ExitWith::new(exit::SETTINGS, why).into());
        }
    }
    Ok(listeners)
}

/// The error for an address that cannot be bound, with the remedy.
fn not_bound(address: &str, err: std::io::Error) -> anyhow::Error {
    let port = address.rsplit_once(':').map_or(address, |(_, port)| port);
    let remedy = match err.kind() {
        ErrorKind::AddrInUse => format!(
            "port {port} is in use: `ss -ltnp` shows by which process; stop it, or choose another port with \
             --listen (127.0.0.1:0 takes a free one)"
        ),
        ErrorKind::PermissionDenied => format!(
            "port {port} is for root and processes with CAP_NET_BIND_SERVICE, which the systemd unit gives; \
             or choose one from 1024 on with --listen"
        ),
        _ => "choose an address of this machine with --listen".to_owned(),
    };
    let why = format!("cannot listen on {address}; {remedy}");
    anyhow::Error::from(err).context(ExitWith::new(exit::ADDRESS, why))
}

/// The background tasks. The workers end when `stopping` is dropped.
struct Workers {
    tasks: JoinSet<()>,
    stopping: watch::Sender<()>,
    stopped: watch::Receiver<()>,
}

impl Workers {
    fn new() -> Workers {
        let (stopping, stopped) = watch::channel(());
        Workers { tasks: JoinSet::new(), stopping, stopped }
    }

    async fn spawn_all(
        &mut self,
        work: Work,
        node: Option<LocalNode>,
        admin: Option<AdminSocket>,
        inviter: Option<Inviter>,
    ) -> anyhow::Result<()> {
        let Workers { tasks, stopped, .. } = self;
        let stop = || until(stopped.clone());
        let (config, app) = (work.config.clone(), work.app.clone());
        if let Some(admin) = admin {
            let (store, queue) = (app.store.clone(), work.queue.clone());
            tasks.spawn(admin.serve(Backend { store, queue, inviter }, stop()));
        }
        let reload = Reload {
            index: config.index.clone(),
            live: Arc::clone(&app.live),
            facts: Arc::clone(&app.facts),
            published: work.published.clone(),
            problem: Arc::clone(&app.status.index_problem),
            clock: config.clock,
            catch_days: config.catch_days,
            follows_current: node.is_none(),
        };
        tasks.spawn(reload.run(stop()));
        tasks.spawn(Purging::new(app.store.clone()).run(stop()));
        let sales = SalesFiles::new(&config.site().data, Arc::clone(&app.sales));
        tasks.spawn(sales.run(stop()));
        // Without the worker, there are no files.
        metrics::gauge!("dropdex_export_files_bytes").set(0.0);
        if let Some((copies, keep_days)) = app.copies.clone().zip(config.export_files) {
            let files = ExportFiles { app: app.clone(), copies, keep_days };
            tasks.spawn(files.run(stop()));
        }
        match node {
            Some(node) => {
                let served = (app.store.clone(), Arc::clone(&app.live), Arc::clone(&work.changes));
                node.spawn(&config, served, work, tasks, stopped);
            }
            None => {
                // Started before requests are served, so that rules apply to every list from then
                // on.
                let mut working = work.start(stopped).await?;
                tasks.spawn(async move { while working.join_next().await.is_some() {} });
            }
        }
        Ok(())
    }
}

/// The HTTP server and its accept loops, which end when `closing` is dropped.
struct Serving {
    server: Arc<Server>,
    accepting: JoinSet<()>,
    closing: watch::Sender<()>,
}

impl Serving {
    fn start(
        config: &Config,
        app: App,
        web: Web,
        listeners: Vec<TcpListener>,
        tls: Option<Tls>,
    ) -> Serving {
        let draining = Arc::clone(&app.status.draining);
        let identify = Arc::new({
            let app = app.clone();
            move |request: &mut Request| allowance::identify(&app, request)
        });
        let positions = config.cluster.as_ref().map(|_| Positions {
            store: app.store.clone(),
            live: Arc::clone(&app.live),
            cookie: config.web.cookie(config.outbound.public_url.as_ref()),
        });
        let public_host = config.outbound.public_url.as_ref().map(BaseUrl::authority);
        let router = web::router(web, http::router(app), http::description());
        let mount = Mount::new(config.outbound.public_url.as_ref());
        let parts = server::ServerParts {
            router: router.layer(MapRequestLayer::new(requests::record_route)),
            routes: Routes::new(http::routes().chain(web::routes())),
            error_renderer: web::refusals,
            identify,
            positions,
            public_host,
            mount,
            tls,
            observing: requests::RequestSettings {
                proxies: config.server.proxies.as_slice().into(),
                access: config.telemetry.access,
            },
            draining,
        };
        let server = Arc::new(Server::new(&config.server, parts));
        let (closing, closed) = watch::channel(());
        let mut accepting = JoinSet::new();
        for listener in listeners {
            let (server, closed) = (Arc::clone(&server), closed.clone());
            accepting.spawn(async move { server.run(listener, until(closed)).await });
        }
        Serving { server, accepting, closing }
    }
}

/// Ends the service: readiness fails during the drain delay, then the server stops accepting, finishes
/// the requests in flight, and the workers end.
async fn drain(
    times: &DrainTimes,
    stop: Stop,
    draining: &AtomicBool,
    serving: Serving,
    workers: Workers,
) {
    draining.store(true, Ordering::Relaxed);
    let DrainTimes { delay, deadline } = *times;
    let delay = if stop == Stop::Interrupt { Duration::ZERO } else { delay };
    tracing::info!(delay_s = delay.as_secs_f32(), "stopping");
    supervisor::stopping(delay + deadline + LAST_STEPS);
    tokio::time::sleep(delay).await;
    let Serving { server, mut accepting, closing } = serving;
    drop(closing);
    while accepting.join_next().await.is_some() {}
    let Workers { mut tasks, stopping, .. } = workers;
    drop(stopping);
    let left = server.close(deadline).await;
    if left > 0 {
        tracing::warn!(connections = left, "requests were still running; closing them");
    }
    while tasks.join_next().await.is_some() {}
}

/// Reloads the certificate on SIGHUP. Without TLS, SIGHUP does nothing.
async fn reload_on_hang_up(tls: Option<Tls>, mut hang_up: Signal) {
    while hang_up.recv().await.is_some() {
        supervisor::reloading();
        if let Some(tls) = &tls {
            tls.reload_or_keep();
        }
        supervisor::ready();
    }
}

/// The reason for a shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// SIGTERM from a supervisor. The drain delay applies, because load balancers need it.
    Terminate,
    /// SIGINT from a terminal. There is no delay.
    Interrupt,
}

/// The signals that stop the server.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn listen() -> anyhow::Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?,
            interrupt: signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?,
        })
    }

    async fn next(&mut self) -> Stop {
        tokio::select! {
            _ = self.terminate.recv() => Stop::Terminate,
            _ = self.interrupt.recv() => Stop::Interrupt,
        }
    }
}

fn check_folder(data: &Path) -> anyhow::Result<()> {
    new_file::create_folder(data).and_then(|()| std::fs::read_dir(data).map(drop)).with_context(
        || format!("cannot use the data folder {}; choose another with --data", data.display()),
    )
}

/// Prints the line that reports the address once requests are served.
pub fn print_ready(address: &str) {
    print_line(&format!("listening on {address}"));
}

/// Prints a line on standard output. If the write fails, the server keeps running.
fn print_line(line: &str) {
    let mut out = std::io::stdout().lock();
    if let Err(err) = writeln!(out, "{line}").and_then(|()| out.flush()) {
        tracing::warn!(error = %err, line, "cannot write to standard output");
    }
}
