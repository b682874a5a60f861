//! HTML pages. They work without JavaScript; scripts only add convenience. [`router`] serves them
//! beside the API, and each page's file lists its routes.
//!
//! Pages contain no business rules: they call `service` like the API, and show the errors of
//! [`crate::edge::error`]. Markup is written with `maud`, which escapes all text. Styles and
//! scripts are in `assets/` and are embedded in the binary.

pub mod account;
pub mod alerts;
mod assets;
mod browser_name;
mod checks;
mod components;
mod confirm;
mod cross_site;
pub mod docs;
pub mod dossier;
pub mod drops;
mod error;
mod feeds;
mod field;
mod form;
mod fragment;
mod layout;
pub mod links;
mod logged_in;
mod next;
mod notice;
pub mod outcomes;
pub mod overview;
mod owned;
mod peer;
pub mod portfolio;
pub mod reference;
pub mod search;
pub mod searches;
pub mod settings;
pub mod status;
mod throttle;
mod undo;
mod viewer;
pub mod watchlist;

use dropdex_accounts as accounts;
use dropdex_edge as edge;
use dropdex_facts as facts_file;
use dropdex_index as index;
use dropdex_intake as intake;
use dropdex_outbound as outbound;
use dropdex_query as query;
use dropdex_sales as sales;
use dropdex_scorer as scorer;
use dropdex_service as service;
use dropdex_sources as sources;
use dropdex_telemetry as telemetry;
use dropdex_vocab as vocab;

use std::ops::Deref;
use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRef, Request};
use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, Uri};
use axum::middleware;
use axum::response::{IntoResponse, Response};

use crate::accounts::{Person, UserData};
use crate::edge::caching::Caching;
use crate::edge::class::Class;
use crate::edge::error::Refusal;
use crate::edge::operation::Description;
use crate::edge::routes::Route;
use crate::error::PageError;
use crate::outbound::email::Mailer;
use crate::service::app::App;
use crate::service::error::ApiError;
pub use crate::settings::WebSettings;
use crate::throttle::Throttle;

/// State shared by all page handlers.
#[derive(Clone)]
pub struct Web(Arc<WebState>);

/// The parts of a [`Web`].
pub struct WebState {
    pub app: App,
    pub settings: WebSettings,
    /// Sends verification links; `None` without a mail server.
    pub mailer: Option<Mailer>,
    throttle: Throttle,
    mailed_links: account::MailedLinks,
    /// Charts of the day.
    overview: overview::Cache,
}

impl Web {
    /// Creates the pages of `app` without a mail server.
    pub fn new(app: App, settings: WebSettings) -> Web {
        Web::with_mailer(app, settings, None)
    }

    /// The same as [`Web::new`], with a mail server.
    pub fn with_mailer(app: App, settings: WebSettings, mailer: Option<Mailer>) -> Web {
        let (throttle, overview) = (Throttle::default(), overview::Cache::default());
        let mailed_links = account::MailedLinks::new();
        Web(Arc::new(WebState { app, settings, mailer, throttle, mailed_links, overview }))
    }

    /// Returns the current watches, rules and claims of an account.
    fn user_data(&self, person: &Person) -> Arc<UserData> {
        self.app.store.user_data(&person.caller)
    }
}

impl FromRef<Web> for App {
    fn from_ref(web: &Web) -> App {
        web.app.clone()
    }
}

impl Deref for Web {
    type Target = WebState;

    fn deref(&self) -> &WebState {
        &self.0
    }
}

/// Builds the router of the pages and of `api`, which `described` documents.
pub fn router(web: Web, api: Router, described: Description) -> Router {
    let pages = Router::new()
        .merge(drops::routes())
        .merge(search::routes())
        .merge(searches::routes())
        .merge(checks::routes())
        .merge(feeds::routes())
        .merge(dossier::routes())
        .merge(outcomes::routes())
        .merge(overview::routes())
        .merge(account::routes())
        .merge(watchlist::routes())
        .merge(alerts::routes())
        .merge(portfolio::routes())
        .merge(undo::routes())
        .merge(reference::routes(described))
        .merge(docs::routes())
        .merge(status::routes())
        .method_not_allowed_fallback(method_not_allowed)
        .layer(middleware::from_fn_with_state(web.clone(), account::first_visit))
        .layer(middleware::from_fn_with_state(web.clone(), account::lead_to_setup))
        .layer(middleware::from_fn(cross_site::refuse))
        .layer(middleware::map_response(layout::protect))
        .merge(assets::routes())
        .with_state(web);
    api.merge(pages).fallback(not_found)
}

/// Attributes of the pages that need other than the usual ones: forms with a password, and forms
/// that change nothing.
pub fn routes() -> impl Iterator<Item = Route> {
    let form = |path, class| Route { method: "POST", path, class, caching: Caching::Session };
    let log_ins = account::LOG_INS.iter().map(move |&(path, _)| form(path, Class::LogIn));
    let reads = [alerts::PREVIEW, alerts::BACKTEST].map(|path| form(path, Class::Read));
    log_ins.chain(reads).chain([assets::ROUTE])
}

/// Responds to paths without a route.
async fn not_found(request: Request) -> Response {
    refusals(request.uri(), request.headers())(ApiError::NotFound)
}

async fn method_not_allowed(request: Request) -> Response {
    refusals(request.uri(), request.headers())(ApiError::MethodNotAllowed)
}

/// Returns the renderer of errors for a request: a page for browsers, JSON for API paths and for clients
/// that do not accept HTML.
pub fn refusals(uri: &Uri, headers: &HeaderMap) -> fn(ApiError) -> Response {
    let accepts = || headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
    if !uri.path().starts_with("/api/") && accepts().is_some_and(|it| it.contains("text/html")) {
        |err| layout::protect_now(PageError::from(err).into_response())
    } else {
        |err| Refusal::from(err).into_response()
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Method;

    use super::*;
    use crate::edge::operation::Access;
    use crate::edge::routes::Routes;
    use dropdex_http as http;

    fn of(method: Method, path: &str) -> (Class, Caching) {
        let routes = Routes::new(http::routes().chain(routes()));
        let uri = path.parse().expect("a URI");
        routes.of(&method, &uri, &HeaderMap::new())
    }

    #[test]
    fn operations_have_the_class_and_caching_of_their_path() {
        for operation in http::description().operations {
            let path = operation.path.replace(['{', '}'], "x");
            let method: Method = operation.method.parse().expect("a method");
            let is_health = path == "/api/health" || path.starts_with("/api/ready");
            let class = match (operation.method, &*path) {
                _ if is_health => Class::Health,
                (_, path) if path.starts_with("/api/export") => Class::Export,
                ("GET", _) => Class::Read,
                (
                    _,
                    "/api/v1/appraise"
                    | "/api/v1/alerts/backtest"
                    | "/api/v1/alerts/preview"
                    | "/api/v1/archive"
                    | "/api/v1/check"
                    | "/api/v1/search/batch",
                ) => Class::Read,
                _ => Class::Write,
            };
            let caching = match operation.access {
                Access::Key => Caching::Key,
                Access::Export => Caching::KeyOrSession,
                Access::Everybody if path.starts_with("/unsubscribe") => Caching::Session,
                Access::Everybody if is_health => Caching::Health,
                Access::Everybody => Caching::Public,
            };
            assert_eq!(of(method, &path), (class, caching), "{} {path}", operation.method);
        }
    }

    #[test]
    fn pages_and_unknown_paths_have_a_class_and_caching() {
        use Caching::{Health, Key, KeyOrSession, Public, Session};
        for (method, path, class, caching) in [
            (Method::GET, "/", Class::Read, Session),
            (Method::GET, "/login", Class::Read, Session),
            (Method::POST, "/login", Class::LogIn, Session),
            (Method::POST, "/setup", Class::LogIn, Session),
            (Method::POST, "/signup", Class::LogIn, Session),
            (Method::POST, "/signup/AbC-_", Class::LogIn, Session),
            (Method::POST, "/reset/AbC-_", Class::LogIn, Session),
            (Method::POST, "/account/password", Class::LogIn, Session),
            (Method::POST, "/account/delete", Class::LogIn, Session),
            (Method::GET, "/account/data.zip", Class::Export, Session),
            (Method::POST, "/alerts/preview", Class::Read, Session),
            (Method::POST, "/alerts/backtest", Class::Read, Session),
            (Method::POST, "/alerts/1", Class::Write, Session),
            (Method::POST, "/watchlist", Class::Write, Session),
            (Method::GET, "/assets/1/base.css", Class::Read, Public),
            (Method::POST, "/mcp", Class::Read, Key),
            (Method::HEAD, "/api/export/drops", Class::Export, KeyOrSession),
            (Method::POST, "/api/export/drops", Class::Write, KeyOrSession),
            (Method::GET, "/api/export/files", Class::Export, KeyOrSession),
            (Method::HEAD, "/api/export/files/a.parquet", Class::Export, KeyOrSession),
            (Method::GET, "/api/v1/changes?wait=30", Class::Stream, Key),
            (Method::GET, "/api/v1/drops?wait=30", Class::Read, Key),
            (Method::POST, "/api/health", Class::Health, Health),
            (Method::GET, "/api/v1/none", Class::Read, Key),
            (Method::POST, "/api/none", Class::Write, Public),
            (Method::GET, "/none", Class::Read, Session),
        ] {
            assert_eq!(of(method.clone(), path), (class, caching), "{method} {path}");
        }
    }
}
