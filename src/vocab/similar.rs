//! Suggestions for mistyped names.

/// Returns the most similar name in `known`; `None` if none is similar. Case and separators make no
/// difference: `minDQS`, `min-dqs` and `min_dqs` are the same name.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name = letters(name);
    let distance = |known: &&str| strsim::damerau_levenshtein(&name, &letters(known));
    // Up to a third of the letters may differ; beyond that, names share letters only by chance.
    let similar = |known: &&str| distance(known) <= letters(known).chars().count() / 3;
    known.filter(similar).min_by_key(distance)
}

/// Returns the name in `known` that differs from this one in spelling only.
pub fn respelt<'a>(name: &str, mut known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name = letters(name);
    known.find(|known| letters(known) == name)
}

/// Returns a name without case and separators.
fn letters(name: &str) -> String {
    let letters = name.chars().filter(|c| !matches!(c, '_' | '-' | '.' | ' '));
    letters.flat_map(char::to_lowercase).collect()
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

    #[test]
    fn spellings_of_one_name_are_equal() {
        let nearest = |name| nearest(name, ["q", "min_dqs", "max_dqs", "domainName"].into_iter());
        for name in ["minDqs", "minDQS", "min-dqs", "MIN_DQS", "mindqs", "Min Dqs", "min.dqs"] {
            assert_eq!(nearest(name), Some("min_dqs"), "{name}");
        }
        for name in ["domain_name", "domain-name", "domainname", "DomainName"] {
            assert_eq!(nearest(name), Some("domainName"), "{name}");
        }
    }
}
