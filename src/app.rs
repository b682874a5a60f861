//! Builds the service from one [`Config`] and runs it: the one place that knows all stages.

use std::io::Write;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Context;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tower::util::MapRequestLayer;

use crate::accounts::Store;
use crate::config::Config;
use crate::config::telemetry::Telemetry;
use crate::corpus::Corpus;
use crate::http::{App, ConfiguredChannels, Parts};
use crate::index::build;
use crate::index::filter::Moment;
use crate::index::live::LiveIndex;
use crate::index::open::{self, Opened};
use crate::intake::inbox::Inbox;
use crate::intake::queue::Queue;
use crate::journal::fs::Disk;
use crate::outbound::dns::Dns;
use crate::outbound::email::Mailer;
use crate::outbound::guard::Guard;
use crate::outbound::http::Client;
use crate::server::settings::DrainTimes;
use crate::server::tls::Tls;
use crate::server::{self, Server, supervisor};
use crate::telemetry::disk::MeteredFs;
use crate::telemetry::listener::{Listener, Sample};
use crate::telemetry::process::Started;
use crate::telemetry::requests;
use crate::telemetry::{catalogue, query};
use crate::vocab::url::HostRules;
use crate::web::{self, Outside, Web};
use crate::workers::admin::{AdminSocket, Backend};
use crate::workers::bootstrap::Registry;
use crate::workers::deliver::Deliver;
use crate::workers::deliver::schedule::Schedule;
use crate::workers::deliver::send::Senders;
use crate::workers::gauges::Gauges;
use crate::workers::notify::matching::Matching;
use crate::workers::reload::Reload;
use crate::workers::verify::Verify;
use crate::workers::verify::server::Limits;

/// What is left to do when the last request is answered: the journal is flushed and closed.
const LAST_STEPS: Duration = Duration::from_secs(5);
/// Threads for queries that leave the async threads, per core: they compute, they do not wait.
const BLOCKING_THREADS_PER_CORE: usize = 4;

/// Opens index and store, listens, and serves until SIGTERM or SIGINT. `ready` is called with the
/// address once requests are answered.
///
/// # Errors
/// What to print on stderr before exit 1.
pub fn serve(
    config: &Config,
    ready: impl FnOnce(&str, &Store) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    tidy(config);
    let Telemetry { listen, slow, .. } = &config.telemetry;
    // Before anything is counted.
    let metrics = listen.as_ref().map(|_| catalogue::install()).transpose()?;
    query::set_slow_threshold(*slow);
    let Opened { index, fallback } = open::open_current(&config.index)?;
    if let Some(problem) = &fallback {
        tracing::error!(
            error = %problem,
            serving = %index.manifest().generation,
            "the current generation is damaged; serving the one before it"
        );
    }
    // Worked out here, not under the first request.
    index.prepare(Moment { today: config.clock.today(), catch_days: config.catch_days });
    // The corpus is not opened here, but a data folder that is none should be told at once.
    check_folder(&config.data)?;
    let disk = Arc::new(MeteredFs::new(Disk));
    let store = Store::open_on(disk, &config.data, config.plans.clone(), config.clock)?;
    let dns = Dns::new(&config.outbound.dns)?;
    let registry = Registry::open(&config.data, &config.outbound.rdap, config.clock)?;
    let guard = Guard::new(config.outbound.webhook_rules(), dns.clone());
    let deliver = Deliver {
        store: store.clone(),
        senders: Senders::new(&config.outbound, guard.clone(), &dns)?,
        schedule: Schedule::new(config.outbound.webhooks.retry.clone()),
        clock: config.clock,
    };
    let parts = Parts {
        live: Arc::new(LiveIndex::new(Arc::new(index))),
        store: store.clone(),
        channels: ConfiguredChannels {
            email: config.outbound.smtp.is_some(),
            webhook: true,
            telegram: config.outbound.telegram.is_some(),
        },
        guard,
        cookie: config.web.cookie(),
        clock: config.clock,
        bootstrap: registry.live(),
        catch_days: config.catch_days,
        node: config.node.clone(),
        started: Instant::now(),
        inbox: Arc::default(),
        index_problem: Arc::new(Mutex::new(fallback.map(|problem| problem.to_string()))),
        draining: Arc::default(),
    };
    let app = App::new(parts);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(cores * BLOCKING_THREADS_PER_CORE)
        .build()
        .context("cannot start the async runtime")?;
    let served = runtime.block_on(run(config, app, (registry, deliver, metrics), ready));
    // Waits for queries in hand, not for connections: those are gone or past their deadline.
    runtime.shutdown_timeout(Duration::from_secs(1));
    let closed = store.close().context("closing the journal");
    if closed.is_ok() {
        tracing::info!("stopped; the journal is flushed");
    }
    served.and(closed)
}

/// Removes what commands that were killed left behind. What cannot be removed keeps nobody from
/// serving.
fn tidy(config: &Config) {
    let tidied = build::tidy(&config.index).map_err(anyhow::Error::from);
    let tidied = tidied.and(Corpus::tidy(&config.data).map_err(anyhow::Error::from));
    if let Err(err) = tidied {
        tracing::warn!(error = format!("{err:#}"), "leftovers of a rebuild cannot be removed");
    }
}

async fn run(
    config: &Config,
    app: App,
    (registry, deliver, metrics): (Registry, Deliver, Option<PrometheusHandle>),
    ready: impl FnOnce(&str, &Store) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    server::raise_descriptor_limit(&config.server.connections);
    let tls = config.server.tls.as_ref().map(Tls::open).transpose()?;
    let listeners = listeners(config).await?;
    let address = listeners[0].local_addr().context("the listener has no address")?;
    let (stopping, stopped) = watch::channel(());
    let mut workers = JoinSet::new();
    let admin = AdminSocket::bind(&config.data)?;
    let queue = Queue::new(config.site(), config.telemetry.logs.json, stopped.clone());
    let backend = Backend { store: app.store.clone(), queue: queue.clone() };
    workers.spawn(admin.serve(backend, until(stopped.clone())));
    if config.inbox.enabled {
        let inbox = Inbox {
            queue,
            period: config.inbox.period,
            status: Arc::clone(&app.inbox),
            clock: config.clock,
        };
        workers.spawn(inbox.run(until(stopped.clone())));
    }
    let published = Arc::new(Notify::new());
    let reload = Reload {
        index: config.index.clone(),
        live: Arc::clone(&app.live),
        published: Arc::clone(&published),
        problem: Arc::clone(&app.index_problem),
        clock: config.clock,
        catch_days: config.catch_days,
    };
    workers.spawn(reload.run(until(stopped.clone())));
    if config.outbound.rdap.enabled {
        let verify = verify(config, &app, registry)?;
        workers.spawn(verify.run(until(stopped.clone())));
    }
    let matching = Matching {
        live: Arc::clone(&app.live),
        store: app.store.clone(),
        clock: config.clock,
        catch_days: config.catch_days,
        published,
    };
    // Before requests are answered: a rule that is added is about every list from then on.
    matching.begin().await;
    workers.spawn(matching.run(until(stopped.clone())));
    workers.spawn(deliver.run(until(stopped.clone())));
    let metrics_at = match (metrics, &config.telemetry.listen) {
        (Some(handle), Some(listen)) => {
            let listener = Listener::bind(listen.as_str(), handle, sample(config, &app)).await?;
            let address = listener.address()?;
            workers.spawn(listener.run(until(stopped.clone())));
            Some(address)
        }
        _ => None,
    };
    let mut signals = Signals::listen()?;
    let hang_up = signal(SignalKind::hangup()).context("cannot listen for SIGHUP")?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let (store, draining) = (app.store.clone(), Arc::clone(&app.draining));
    let outside = Outside {
        home: config.outbound.public_url.clone(),
        mailer: config.outbound.smtp.as_ref().map(Mailer::new).transpose()?,
    };
    let router = web::router(Web::with_outside(app, config.web.clone(), outside));
    let observing = requests::Settings {
        proxies: config.server.proxies.as_slice().into(),
        access: config.telemetry.access,
    };
    let router = router.layer(MapRequestLayer::new(requests::record_route));
    let parts = server::ServerParts {
        router,
        error_renderer: web::refusals,
        tls: tls.clone(),
        observing,
        draining: Arc::clone(&draining),
    };
    let server = Server::new(&config.server, parts);
    let server = Arc::new(server);
    let (closing, closed) = watch::channel(());
    let mut accepting = JoinSet::new();
    for listener in listeners {
        let (server, closed) = (Arc::clone(&server), closed.clone());
        accepting.spawn(async move { server.run(listener, until(closed)).await });
    }
    drop(closed);
    tokio::spawn(supervisor::feed_watchdog());
    tokio::spawn(reload_when_told(tls.clone(), hang_up));
    if let Some(tls) = tls.clone() {
        tokio::spawn(tls.watch_files());
    }
    // It may change the store, which blocks until that is on disk.
    tokio::task::block_in_place(|| ready(&format!("{scheme}://{address}"), &store))?;
    if let Some(address) = metrics_at {
        print_line(&format!("metrics on http://{address}/metrics"))?;
    }
    supervisor::ready();
    let stop = signals.next().await;
    draining.store(true, Ordering::Relaxed);
    let DrainTimes { delay, deadline } = config.server.drain;
    let delay = if stop == Stop::Interrupt { Duration::ZERO } else { delay };
    tracing::info!(delay_s = delay.as_secs_f32(), "stopping");
    supervisor::stopping(delay + deadline + LAST_STEPS);
    let drained = async {
        tokio::time::sleep(delay).await;
        drop(closing);
        while accepting.join_next().await.is_some() {}
        drop(stopping);
        let left = server.close(deadline).await;
        if left > 0 {
            tracing::warn!(connections = left, "requests were still running; closing them");
        }
        while workers.join_next().await.is_some() {}
    };
    tokio::select! {
        () = drained => {}
        _ = signals.next() => tracing::warn!("told to stop again: stopping at once"),
    }
    Ok(())
}

/// What is looked at when somebody asks how things stand.
fn sample(config: &Config, app: &App) -> Sample {
    let (started, gauges) = (
        Started::now(),
        Gauges {
            live: Arc::clone(&app.live),
            store: app.store.clone(),
            clock: config.clock,
            index_problem: Arc::clone(&app.index_problem),
        },
    );
    Arc::new(move || {
        started.sample();
        gauges.sample();
    })
}

/// Where requests come in: sockets that were handed over, or else the address in the settings.
async fn listeners(config: &Config) -> anyhow::Result<Vec<TcpListener>> {
    let mut listeners = Vec::new();
    for socket in supervisor::sockets()? {
        socket.set_nonblocking(true).context("a socket that was handed over")?;
        listeners.push(TcpListener::from_std(socket).context("a socket that was handed over")?);
    }
    if listeners.is_empty() {
        let address = config.listen.as_str();
        listeners.push(server::bind(address).await.with_context(|| {
            format!(
                "cannot listen on {address}; stop what uses it, or choose another address with \
                 --listen (127.0.0.1:0 takes a free port)"
            )
        })?);
    }
    for listener in &listeners {
        let address = listener.local_addr().context("the listener has no address")?;
        anyhow::ensure!(
            !config.web.plain_http || address.ip().is_loopback(),
            "web.plain_http lets log-ins go over plain HTTP, which is for a server on loopback \
             alone, and this one listens on {address}; take the setting away and put a proxy with \
             TLS before it"
        );
    }
    Ok(listeners)
}

/// The worker that asks registries.
fn verify(config: &Config, app: &App, registry: Registry) -> anyhow::Result<Verify> {
    let settings = &config.outbound.rdap;
    let dns = Dns::new(&config.outbound.dns)?;
    let rules = HostRules { allow: settings.allow.clone(), deny_names: Vec::new() };
    let guard = Guard::new(rules, dns.clone());
    Ok(Verify {
        store: app.store.clone(),
        live: Arc::clone(&app.live),
        registry,
        client: Client::new(guard, settings.ca_file.as_deref())?,
        dns,
        clock: config.clock,
        catch_days: config.catch_days,
        limits: Limits {
            per_second: settings.requests_per_second,
            concurrency: settings.concurrency,
        },
    })
}

/// Done when the sender is gone.
async fn until(mut stopped: watch::Receiver<()>) {
    while stopped.changed().await.is_ok() {}
}

/// Reads the certificate again with each SIGHUP, which without one does nothing.
async fn reload_when_told(tls: Option<Tls>, mut told: Signal) {
    while told.recv().await.is_some() {
        supervisor::reloading();
        if let Some(tls) = &tls {
            tls.reload();
        }
        supervisor::ready();
    }
}

/// How the server is told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// By its supervisor: others may still send requests here.
    Terminate,
    /// By somebody at the keyboard.
    Interrupt,
}

/// SIGTERM and SIGINT, from now on.
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
    std::fs::create_dir_all(data).and_then(|()| std::fs::read_dir(data).map(drop)).with_context(
        || format!("the data folder {} cannot be used; --data names another", data.display()),
    )
}

/// Prints the one line that tells a supervisor that requests are answered.
///
/// # Errors
/// Standard output is closed.
pub fn print_ready(address: &str) -> anyhow::Result<()> {
    print_line(&format!("listening on {address}"))
}

fn print_line(line: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).context("standard output")
}
