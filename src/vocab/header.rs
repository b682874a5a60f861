//! Column names and separators of the tables that people and vendors write.

/// Separators of cells.
pub const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];
/// Maximum letters and digits of a column's name; longer names match no other.
pub const NAME_BYTES_MAX: usize = 24;

/// Names of the domain column as [`plain`] writes them. If several columns match, the first one listed here is used.
const DOMAIN_NAMES: [&str; 10] = [
    "domainname",
    "domain",
    "dominio",
    "nombrededominio",
    "domaine",
    "nomdedomaine",
    "domeinnaam",
    "domena",
    "fqdn",
    "name",
];

/// Returns the rank of a domain column within one header, 0 for the most specific name; `None` for
/// other columns.
pub fn domain_rank(name: &str) -> Option<usize> {
    rank(name, &DOMAIN_NAMES)
}

/// Returns the position of a column's name in `names`, compared by [`plain`].
pub fn rank(name: &str, names: &[&str]) -> Option<usize> {
    let mut buffer = [0; NAME_BYTES_MAX];
    let plain = plain(name, &mut buffer)?;
    names.iter().position(|known| known.as_bytes() == plain)
}

/// Reduces a column's name to lower-case letters and digits, to compare it with known names:
/// `Domain Name` and `domain_name` become `domainname`. `None` if the result is longer than any
/// known name.
///
/// Runs for every key of every JSON element of a list, so it allocates nothing.
pub fn plain<'a>(name: &str, buffer: &'a mut [u8; NAME_BYTES_MAX]) -> Option<&'a [u8]> {
    let mut length = 0;
    for byte in name.bytes().filter(u8::is_ascii_alphanumeric) {
        *buffer.get_mut(length)? = byte.to_ascii_lowercase();
        length += 1;
    }
    Some(&buffer[..length])
}

/// Returns the delimiter that a spreadsheet declares on the first line: `sep=;`.
pub fn declared_delimiter(line: &str) -> Option<u8> {
    let line = line.trim_matches(['"', '\r', '\n', ' ']);
    let (key, value) = line.split_at_checked(4)?;
    // Spreadsheets quote such a line if it contains commas, and pad it with empty cells.
    let delimiter = value.bytes().next().filter(|_| key.eq_ignore_ascii_case("sep="))?;
    DELIMITERS.contains(&delimiter).then_some(delimiter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domain_columns_are_found_in_any_spelling() {
        for name in ["domain", " Domain_Name ", "Nom de domaine", "DOMEINNAAM", "fqdn", "Name"] {
            assert!(domain_rank(name).is_some(), "{name}");
        }
        for name in ["", "Domänename", "names", "domain.com", "a name longer than any other one is"]
        {
            assert_eq!(domain_rank(name), None, "{name}");
        }
        assert!(domain_rank("domain_name") < domain_rank("name"));
    }

    #[test]
    fn only_known_delimiters_can_be_declared() {
        for (line, delimiter) in [
            ("sep=;", Some(b';')),
            ("\"sep=,\"", Some(b',')),
            ("SEP=\t", Some(b'\t')),
            ("sep=;;;;", Some(b';')),
            ("sep=|\r", Some(b'|')),
            ("sep=", None),
            ("sep=x", None),
            ("sép=;", None),
            ("domain;sep=;", None),
        ] {
            assert_eq!(declared_delimiter(line), delimiter, "{line:?}");
        }
    }
}
