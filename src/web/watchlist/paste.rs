//! Parses a pasted list of names with any separators.

use crate::vocab::name::{DomainName, NameError};

/// An invalid name and its error.
#[derive(Debug, PartialEq, Eq)]
pub struct NotAName {
    pub text: String,
    pub why: NameError,
}

/// Returns the distinct names of a text and the invalid items. Separators are white space, commas,
/// semicolons, bars and quotes, which no name contains.
pub fn names_in(text: &str) -> (Vec<DomainName>, Vec<NotAName>) {
    let (mut names, mut refused) = (Vec::new(), Vec::new());
    for item in items(text) {
        match DomainName::parse(item) {
            Ok(name) => names.push(name),
            Err(why) => refused.push(NotAName { text: item.to_owned(), why }),
        }
    }
    let mut seen = rustc_hash::FxHashSet::default();
    names.retain(|name| seen.insert(name.clone()));
    (names, refused)
}

/// Number of items in a text.
pub fn count(text: &str) -> usize {
    items(text).count()
}

fn items(text: &str) -> impl Iterator<Item = &str> {
    let separates = |char: char| char.is_whitespace() || ",;|\"'".contains(char);
    text.split(separates).filter(|item| !item.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_at_any_separator() {
        let text = "a.com, b.de;c.net\r\n\"d.org\"\tA.COM | münchen.de  <b>.com www.a.com ,,";
        let (names, refused) = names_in(text);
        let names: Vec<_> = names.iter().map(DomainName::as_str).collect();
        assert_eq!(names, ["a.com", "b.de", "c.net", "d.org", "xn--mnchen-3ya.de"]);
        let refused: Vec<_> = refused.into_iter().map(|it| (it.text, it.why)).collect();
        let expected =
            [("<b>.com", NameError::BadCharacter('<')), ("www.a.com", NameError::BelowRegistrable)];
        assert_eq!(refused, expected.map(|(text, why)| (text.to_owned(), why)));
        assert_eq!(count(text), 8);
        assert_eq!(names_in(" ,;\n"), (vec![], vec![]));
    }
}
