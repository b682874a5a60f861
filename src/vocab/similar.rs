//! Suggestions for names that were mistyped.

/// The name among `known` that is most like this one; `None` if none is similar.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let distance = |known: &&str| strsim::damerau_levenshtein(&name, known);
    // A third of the letters may differ: beyond that, names only share letters by chance.
    let similar = |known: &&str| distance(known) <= known.chars().count() / 3;
    known.filter(similar).min_by_key(distance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_are_suggested() {
        let nearest = |name| nearest(name, ["uk-nominet", "tranco", "psl"].into_iter());
        assert_eq!(nearest("UK-nominat"), Some("uk-nominet"));
        assert_eq!(nearest("nominet"), Some("uk-nominet"));
        assert_eq!(nearest("czds"), None);
    }
}
