//! Normalisation of request paths.

use axum::http::Uri;

/// Removes the trailing slash that some clients add to the path of an operation, so that routes,
/// limits and idempotency keys see one path.
pub fn without_slash(uri: &Uri) -> Option<Uri> {
    let path = uri.path().strip_suffix('/')?;
    let is_operation = path.starts_with("/api/") || path == "/mcp";
    // A path that ends with two slashes is a different path, without a route.
    if !is_operation || path.ends_with('/') {
        return None;
    }
    let target = match uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(target.try_into().ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slash_at_the_end_of_an_operation_is_removed() {
        for (sent, meant) in [
            ("/api/v1/", Some("/api/v1")),
            ("/api/v1/drops/", Some("/api/v1/drops")),
            ("/api/v1/drops/?tld=com&q=a/", Some("/api/v1/drops?tld=com&q=a/")),
            ("http://example.com/api/health/", Some("http://example.com/api/health")),
            ("/mcp/", Some("/mcp")),
            ("/api/v1/drops", None),
            ("/api/v1/drops?q=/", None),
            ("/api/v1/drops//", None),
            ("/api/", None),
            ("/", None),
            ("/feeds/secret.atom/", None),
            ("/apis/", None),
            ("*", None),
        ] {
            let uri: Uri = sent.parse().expect("a URI");
            assert_eq!(without_slash(&uri), meant.map(|it| it.parse().expect("a URI")), "{sent}");
        }
    }
}
