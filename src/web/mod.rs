//! Pages for people: what the API answers, as HTML that is made here, works without JavaScript and
//! is better with it. [`router`] puts the pages beside the API; each page's routes are in its file.
//!
//! Nothing is decided here: pages ask `index` and `accounts` as the API does, and refusals are those
//! of [`crate::http::error`], shown as a page. Markup is `maud`, so every text is escaped unless a
//! type says that it is markup. Styles and scripts are in `assets/`, embedded in the binary.

pub mod account;
pub mod alerts;
mod assets;
mod components;
mod cross_site;
pub mod docs;
pub mod dossier;
pub mod drops;
mod error;
mod field;
mod form;
mod fragment;
mod layout;
mod next;
mod notice;
pub mod overview;
mod owned;
mod peer;
pub mod portfolio;
pub mod reference;
pub mod search;
pub mod settings;
pub mod status;
mod throttle;
mod viewer;
pub mod watchlist;

use std::ops::Deref;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, Uri};
use axum::middleware;
use axum::response::{IntoResponse, Response};

use crate::http::error::ApiError;
use crate::http::{App, operations};
use crate::outbound::email::Mailer;
use crate::vocab::url::BaseUrl;
use crate::web::error::PageError;
pub use crate::web::settings::WebSettings;
use crate::web::throttle::Throttle;

/// What every page asks: the app, and what is set for pages.
#[derive(Clone)]
pub struct Web(Arc<Parts>);

/// The parts of a [`Web`].
pub struct Parts {
    pub app: App,
    pub settings: WebSettings,
    pub outside: Outside,
    throttle: Throttle,
    /// The pictures of the day.
    overview: overview::Cache,
}

/// What pages know of the world.
#[derive(Clone, Default)]
pub struct Outside {
    /// Where people reach this server: links in mails begin with it.
    pub home: Option<BaseUrl>,
    /// For the link that verifies an address.
    pub mailer: Option<Mailer>,
}

impl Web {
    /// Pages of `app`.
    pub fn new(app: App, settings: WebSettings) -> Web {
        Web::with_outside(app, settings, Outside::default())
    }

    /// As [`Web::new`], with what the operator has set up beyond this server.
    pub fn with_outside(app: App, settings: WebSettings, outside: Outside) -> Web {
        let (throttle, overview) = (Throttle::default(), overview::Cache::default());
        Web(Arc::new(Parts { app, settings, outside, throttle, overview }))
    }
}

impl Deref for Web {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

/// The API and the pages beside it.
pub fn router(web: Web) -> Router {
    let api = operations::router(web.app.clone());
    let pages = Router::new()
        .merge(drops::routes())
        .merge(search::routes())
        .merge(dossier::routes())
        .merge(overview::routes())
        .merge(account::routes())
        .merge(watchlist::routes())
        .merge(alerts::routes())
        .merge(portfolio::routes())
        .merge(reference::routes())
        .merge(docs::routes())
        .merge(status::routes())
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn(cross_site::refuse))
        .layer(middleware::map_response(layout::protect))
        .merge(assets::routes())
        .with_state(web);
    api.merge(pages).fallback(nowhere)
}

/// Answers every path that is not routed.
async fn nowhere(request: Request) -> Response {
    refusals(request.uri(), request.headers())(ApiError::NotFound)
}

async fn wrong_method(request: Request) -> Response {
    refusals(request.uri(), request.headers())(ApiError::MethodNotAllowed)
}

/// How a request is refused, by the router or before it: a browser that asks for a page gets one, all
/// others JSON.
pub fn refusals(uri: &Uri, headers: &HeaderMap) -> fn(ApiError) -> Response {
    let accepts = || headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
    if !uri.path().starts_with("/api/") && accepts().is_some_and(|it| it.contains("text/html")) {
        |err| layout::protect_now(PageError::from(err).into_response())
    } else {
        ApiError::into_response
    }
}
