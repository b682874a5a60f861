//! HTML pages. They work without JavaScript; scripts only add comfort. [`router`] serves them beside
//! the API, and each page's file lists its routes.
//!
//! Pages hold no business rules: they call `service` as the API does, and show the errors of
//! [`crate::edge::error`]. Markup is written with `maud`, which escapes every text. Styles and
//! scripts are in `assets/` and are embedded in the binary.

pub mod account;
pub mod alerts;
mod assets;
mod components;
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
mod viewer;
pub mod watchlist;

use std::ops::Deref;
use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRef, Request};
use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, Uri};
use axum::middleware;
use axum::response::{IntoResponse, Response};

use crate::accounts::{Person, UserData};
use crate::edge::error::Refusal;
use crate::edge::operation::Description;
use crate::outbound::email::Mailer;
use crate::service::app::App;
use crate::service::error::ApiError;
use crate::web::error::PageError;
pub use crate::web::settings::WebSettings;
use crate::web::throttle::Throttle;

/// State shared by all page handlers.
#[derive(Clone)]
pub struct Web(Arc<WebState>);

/// Contents of a [`Web`].
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
    /// Pages of `app` without a mail server.
    pub fn new(app: App, settings: WebSettings) -> Web {
        Web::with_mailer(app, settings, None)
    }

    /// As [`Web::new`], with a mail server.
    pub fn with_mailer(app: App, settings: WebSettings, mailer: Option<Mailer>) -> Web {
        let (throttle, overview) = (Throttle::default(), overview::Cache::default());
        let mailed_links = account::MailedLinks::new();
        Web(Arc::new(WebState { app, settings, mailer, throttle, mailed_links, overview }))
    }

    /// Current watches, rules and claims of an account.
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

/// Router of the pages and of `api`, which `described` describes.
pub fn router(web: Web, api: Router, described: Description) -> Router {
    let pages = Router::new()
        .merge(drops::routes())
        .merge(search::routes())
        .merge(searches::routes())
        .merge(feeds::routes())
        .merge(dossier::routes())
        .merge(overview::routes())
        .merge(account::routes())
        .merge(watchlist::routes())
        .merge(alerts::routes())
        .merge(portfolio::routes())
        .merge(reference::routes(described))
        .merge(docs::routes())
        .merge(status::routes())
        .method_not_allowed_fallback(method_not_allowed)
        .layer(middleware::from_fn_with_state(web.clone(), account::first_visit))
        .layer(middleware::from_fn(cross_site::refuse))
        .layer(middleware::map_response(layout::protect))
        .merge(assets::routes())
        .with_state(web);
    api.merge(pages).fallback(not_found)
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
