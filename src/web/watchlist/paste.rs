//! A pasted list of names, whatever stands between them: texts in, names and refusals out.

use crate::vocab::name::{DomainName, NameError};

/// A text that is no name, and why.
#[derive(Debug, PartialEq, Eq)]
pub struct NotAName {
    pub text: String,
    pub why: NameError,
}

/// The names of a text, each once, and what is none. No name holds what separates them here: white
/// space, commas, semicolons, bars and quotes.
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

/// How many texts there are between separators.
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
    fn names_are_found_between_any_separators() {
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
