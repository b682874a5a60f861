//! Styles, scripts and the icon: embedded, under paths that change with their bytes, so that browsers
//! keep them for good.

use std::collections::HashMap;
use std::sync::LazyLock;

use axum::Router;
use axum::extract::Path;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use rust_embed::Embed;

use crate::http::error::ApiError;
use crate::web::Web;

#[derive(Embed)]
#[folder = "src/web/assets"]
struct Files;

/// Digits of the hash of all files in a path: what is not the same is not kept as the same.
const VERSION_DIGITS: usize = 12;

/// What all files are, together: modules import each other by name, so they change together.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let mut hasher = blake3::Hasher::new();
    let mut names: Vec<_> = Files::iter().collect();
    names.sort();
    for name in names {
        let file = Files::get(&name).expect("it was listed");
        hasher.update(name.as_bytes()).update(&file.data);
    }
    hasher.finalize().to_hex()[..VERSION_DIGITS].to_owned()
});

static PATHS: LazyLock<HashMap<String, String>> = LazyLock::new(|| {
    let path = |name: &str| format!("/assets/{}/{name}", *VERSION);
    Files::iter().map(|name| (name.to_string(), path(&name))).collect()
});

/// The path of an embedded file.
///
/// # Panics
/// There is no such file: a bug, which the first page shows.
pub fn path(name: &str) -> &'static str {
    PATHS.get(name).unwrap_or_else(|| panic!("no asset {name}"))
}

/// The routes of the files.
pub fn routes() -> Router<Web> {
    Router::new().route("/assets/{version}/{*name}", get(send))
}

/// One file. Whatever version is asked for, there is but one: a page of an older binary is served
/// what there is.
async fn send(Path((_, name)): Path<(String, String)>) -> Response {
    let Some(file) = Files::get(&name) else { return ApiError::NotFound.into_response() };
    let kind = match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    };
    let headers = [
        (CONTENT_TYPE, kind),
        (CACHE_CONTROL, "public, max-age=31536000, immutable"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, file.data).into_response()
}
