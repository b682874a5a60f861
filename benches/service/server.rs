//! The service in this process over loopback, with routes that return static bytes for comparison: the
//! limit of the HTTP library itself.

use std::future::pending;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use axum::Router;
use axum::body::Bytes;
use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use dropdex::accounts::Store;
use dropdex::app;
use dropdex::config::{Config, Given};
use dropdex::edge::allowance;
use dropdex::edge::mount::Mount;
use dropdex::edge::routes::Routes;
use dropdex::http;
use dropdex::index::Index;
use dropdex::index::generation::live::LiveIndex;
use dropdex::server::settings::ServerSettings;
use dropdex::server::{self, Server};
use dropdex::service::app::App;
use dropdex::telemetry::requests;
use dropdex::vocab::clock::Clock;
use dropdex::vocab::plan::Plan;
use dropdex::web::{self, Web, WebSettings};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// An allowance that no run uses up: half of the maximum.
const REQUESTS_PER_DAY: u32 = u32::MAX / 2;
/// The default of the service.
const BLOCKING_THREADS_PER_CORE: usize = 4;
const EMAIL: &str = "bench@dropdex.example";

/// The service with one account of plan `api`.
pub struct Service {
    app: App,
    key: String,
    runtime: Runtime,
}

impl Service {
    /// Opens a store in the new folder `accounts` and builds the service.
    ///
    /// # Errors
    ///
    /// The folder cannot be written, or the runtime does not start.
    pub fn new(index: Arc<Index>, accounts: &Path, clock: Clock) -> anyhow::Result<Service> {
        let mut config = Config::load(Given { data: Some(accounts.into()), ..Given::default() })?;
        config.clock = clock;
        // Requests come from other users than the owner of the machine.
        config.listen = "0.0.0.0:0".to_owned().try_into().map_err(anyhow::Error::msg)?;
        config.outbound.rdap.enabled = false;
        config.plans.limits_mut(Plan::Api).requests_per_day = REQUESTS_PER_DAY;
        config.plans.limits_mut(Plan::Api).concurrent_exports = u32::MAX;
        let store = Store::open(accounts, config.plans.clone(), clock)?;
        let email = EMAIL.parse()?;
        store.add_account(&email, Plan::Api, None)?;
        let key = store.issue_key(&email)?.key.reveal().to_owned();
        let (_, changes) = app::open_changes(&config)?;
        let app = app::build(&config, Arc::new(LiveIndex::new(index)), store, changes, None)?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .max_blocking_threads(cores * BLOCKING_THREADS_PER_CORE)
            .build()
            .context("cannot start the server's runtime")?;
        Ok(Service { app, key, runtime })
    }

    /// Returns the key of the account.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Listens on a free port as the service does, with one more route for each of `bare`: a path, and
    /// the number of bytes of JSON that it returns. Such a route of the same process and library has
    /// the highest rate that any service on it could reach.
    ///
    /// # Errors
    ///
    /// No port is free.
    pub fn listen(&self, bare: &[(&str, usize)]) -> anyhow::Result<SocketAddr> {
        let app = self.app.clone();
        let web = Web::new(app.clone(), WebSettings::default());
        let mut router = web::router(web, http::router(app.clone()), http::description());
        for &(path, bytes) in bare {
            let body = Bytes::from(json_of(bytes));
            let answer = move || async move { ([(CONTENT_TYPE, "application/json")], body) };
            router = router.merge(Router::new().route(path, get(answer)));
        }
        self.runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.context("no free port")?;
            let address = listener.local_addr().context("the listener has no address")?;
            let server = Server::new(
                &ServerSettings::default(),
                server::ServerParts {
                    router,
                    routes: Routes::new(http::routes().chain(web::routes())),
                    error_renderer: web::refusals,
                    identify: Arc::new(move |request: &mut Request| {
                        allowance::identify(&app, request)
                    }),
                    positions: None,
                    public_host: None,
                    mount: Mount::default(),
                    tls: None,
                    observing: requests::RequestSettings::default(),
                    draining: Arc::default(),
                },
            );
            tokio::spawn(async move { server.run(listener, pending()).await });
            Ok(address)
        })
    }
}

/// Returns a JSON string of exactly this many bytes, including its quotes.
pub fn json_of(bytes: usize) -> String {
    format!("\"{}\"", "x".repeat(bytes.saturating_sub(2)))
}
