//! Query strings of links: parameters in, a path with its query out.

use url::form_urlencoded::Serializer;

/// `path` with these parameters, values escaped; `path` alone where there is none.
pub fn with(parameters: &[(&str, &str)], path: &str) -> String {
    if parameters.is_empty() {
        return path.to_owned();
    }
    let query = Serializer::new(String::new()).extend_pairs(parameters).finish();
    format!("{path}?{query}")
}
