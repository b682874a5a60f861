//! Parsing of parameters off the async threads.

use axum::http::Uri;

use crate::query::params::Params;
use crate::service::error::ApiError;
use crate::service::work;

/// Parses the parameters of a request. A regular expression is compiled on the blocking pool, unless it
/// is cached.
///
/// # Errors
/// The errors of `parse` and of [`work::run`].
pub async fn parameters<T: Send + 'static, E: Into<ApiError>>(
    uri: &Uri,
    parse: impl FnOnce(&Uri) -> Result<T, E> + Send + 'static,
) -> Result<T, ApiError> {
    // Most requests have no regular expression; they are parsed once, on this thread.
    let has_one = uri.query().is_some_and(|query| query.contains("regex"));
    if !has_one || !Params::new(uri.query()).compiles() {
        return parse(uri).map_err(Into::into);
    }
    let uri = uri.clone();
    work::scan(move || parse(&uri).map_err(Into::into)).await
}
