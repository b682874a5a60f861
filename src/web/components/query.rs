//! Query strings of links.

use url::form_urlencoded::Serializer;

/// Appends the parameters that have a value to `path`.
pub fn with(parameters: &[(&str, &str)], path: &str) -> String {
    let filled = parameters.iter().filter(|(_, value)| !value.is_empty());
    let query = Serializer::new(String::new()).extend_pairs(filled).finish();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

/// Returns the `offset` parameter of a page, which is empty for the first page.
pub fn offset(offset: u32) -> String {
    if offset == 0 { String::new() } else { offset.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_values_are_omitted() {
        assert_eq!(with(&[("b", ""), ("c", "")], "/a"), "/a");
        assert_eq!(with(&[("b", "1&2"), ("c", ""), ("d", "é")], "/a"), "/a?b=1%262&d=%C3%A9");
    }
}
