//! Embedded styles, scripts and icon. The paths of these files contain a content hash, so browsers
//! can cache them forever.

use std::collections::HashMap;
use std::sync::LazyLock;

use axum::Router;
use axum::extract::Path;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use rust_embed::Embed;

use crate::Web;
use crate::edge::caching::Caching;
use crate::edge::class::Class;
use crate::edge::error::Refusal;
use crate::edge::routes::Route;
use crate::service::error::ApiError;

#[derive(Embed)]
#[folder = "assets"]
struct AssetFiles;

/// Hex digits of the content hash in a path.
const VERSION_DIGITS: usize = 12;

/// Content hash of all files. Modules import each other by relative path, so they share one version.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let mut hasher = blake3::Hasher::new();
    let mut names: Vec<_> = AssetFiles::iter().collect();
    names.sort();
    for name in names {
        let file = AssetFiles::get(&name).expect("it was listed");
        hasher.update(name.as_bytes()).update(&file.data);
    }
    hasher.finalize().to_hex()[..VERSION_DIGITS].to_owned()
});

static PATHS: LazyLock<HashMap<String, String>> = LazyLock::new(|| {
    let path = |name: &str| format!("/assets/{}/{name}", *VERSION);
    AssetFiles::iter().map(|name| (name.to_string(), path(&name))).collect()
});

/// URL path of an embedded file.
///
/// # Panics
/// If the file does not exist: a bug that the first page view reveals.
pub fn path(name: &str) -> &'static str {
    PATHS.get(name).unwrap_or_else(|| panic!("no asset {name}"))
}

/// All files.
pub const ROUTE: Route = Route {
    method: "GET",
    path: "/assets/{version}/{*name}",
    class: Class::Read,
    caching: Caching::Public,
};

/// Routes of the files.
pub fn routes() -> Router<Web> {
    Router::new().route(ROUTE.path, get(send))
}

/// Serves one file. The version is ignored, so a page of an older binary gets the current file.
async fn send(Path((_, name)): Path<(String, String)>) -> Response {
    let Some(file) = AssetFiles::get(&name) else {
        return Refusal::from(ApiError::NotFound).into_response();
    };
    let kind = match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    };
    let headers = [(CONTENT_TYPE, kind), (CACHE_CONTROL, "public, max-age=31536000, immutable")];
    (headers, file.data).into_response()
}
