//! The service in this process over loopback, with routes that return static bytes for comparison: the
//! limit of the HTTP library itself.

use std::future::pending;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use axum::body::Bytes;
use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use dropdex::accounts::{Store, Token};
use dropdex::changes::Appender;
use dropdex::edge::allowance;
use dropdex::edge::mount::Mount;
use dropdex::edge::routes::Routes;
use dropdex::http;
use dropdex::index::Index;
use dropdex::index::generation::live::LiveIndex;
use dropdex::outbound::bootstrap::LiveBootstrap;
use dropdex::outbound::dns::Dns;
use dropdex::outbound::guard::Guard;
use dropdex::outbound::settings;
use dropdex::server::settings::ServerSettings;
use dropdex::server::{self, Server};
use dropdex::service::app::{App, AppParts, ConfiguredChannels, Reach, ResponseLimits, Status};
use dropdex::service::site::{CookieKind, Site};
use dropdex::telemetry::requests;
use dropdex::vocab::clock::Clock;
use dropdex::vocab::limits::CATCH_DAYS_DEFAULT;
use dropdex::vocab::plan::{Plan, Plans};
use dropdex::vocab::rdap::Bootstrap;
use dropdex::vocab::url::HostRules;
use dropdex::web::{self, Web, WebSettings};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// More requests than a run sends, and half of the maximum.
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
        let mut plans = Plans::default();
        plans.limits_mut(Plan::Api).requests_per_day = REQUESTS_PER_DAY;
        plans.limits_mut(Plan::Api).concurrent_exports = u32::MAX;
        let store = Store::open(accounts, plans, clock)?;
        let email = EMAIL.parse()?;
        store.add_account(&email, Plan::Api, None)?;
        let key = store.issue_key(&email)?.key.reveal().to_owned();
        let changes = accounts.join("changes");
        let (_, changes) = Appender::open(&changes, clock.now())?;
        let app = App::new(AppParts {
            live: Arc::new(LiveIndex::new(index)),
            store,
            changes,
            clock,
            catch_days: CATCH_DAYS_DEFAULT,
            site: Site {
                home: None,
                cookie: CookieKind::Secure,
                single_user: false,
                owner_link: Token::generate().expect("random"),
            },
            reach: Reach {
                guard: Guard::new(HostRules::default(), Dns::new(&settings::Dns::default())?),
                channels: ConfiguredChannels { email: true, webhook: true, telegram: true },
                bootstrap: Arc::new(LiveBootstrap::new(Bootstrap::compiled())),
                checks: None,
            },
            limits: ResponseLimits::new(Duration::from_secs(30), false),
            status: Status::new("bench".to_owned(), None),
        });
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
