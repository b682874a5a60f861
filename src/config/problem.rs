//! Errors about settings: which key, what is wrong with it, and the nearest known name.

use config::ConfigError;

use crate::vocab::similar;

/// A setting that cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{what}", prefix(.key))]
pub struct Problem {
    /// `section.key`; empty for the whole file.
    pub key: String,
    pub what: String,
}

fn prefix(key: &str) -> String {
    if key.is_empty() { String::new() } else { format!("{key}: ") }
}

impl From<ConfigError> for Problem {
    fn from(err: ConfigError) -> Problem {
        match err {
            ConfigError::At { error, key, .. } => Problem::from(*error).below(&key),
            ConfigError::Type { unexpected, expected, key, .. } => {
                let what = format!("is {unexpected}, but must be {}", plain(expected));
                Problem { key: String::new(), what }.below(&key)
            }
            ConfigError::FileParse { cause, .. } => {
                Problem { key: String::new(), what: syntax(&cause.to_string()) }
            }
            ConfigError::NotFound(key) => {
                Problem { key: dotted(&key), what: "is missing".to_owned() }
            }
            ConfigError::Message(text) => Problem::of_text(&text),
            other => Problem { key: String::new(), what: other.to_string() },
        }
    }
}

impl Problem {
    /// The problem in a section.
    pub fn in_section(self, section: &str) -> Problem {
        Problem { key: dotted(&[section, &self.key].join(".")), ..self }
    }

    fn below(self, section: &Option<String>) -> Problem {
        match section {
            Some(section) => self.in_section(section),
            None => self,
        }
    }

    /// Reads the messages of `serde` about unknown names, which list the known ones between backticks, and those
    /// of problems in tables that are parsed on their own, which begin with the key.
    fn of_text(text: &str) -> Problem {
        let types = text.strip_prefix("invalid type: ").or(text.strip_prefix("invalid value: "));
        if let Some((found, expected)) = types.and_then(|types| types.split_once(", expected ")) {
            let what = format!("is {found}, but must be {}", plain(expected));
            return Problem { key: String::new(), what };
        }
        if text == "invalid IP address syntax" {
            return Problem { key: String::new(), what: format!("must be {}", plain(text)) };
        }
        let is_key = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if let Some((key, what)) = text.split_once(": ")
            && key.chars().all(is_key)
        {
            return Problem { key: key.to_owned(), what: what.to_owned() };
        }
        let mut quoted = text.split('`').skip(1).step_by(2);
        let found = |prefix: &str| text.starts_with(prefix);
        let is_field = found("unknown field `");
        let Some(name) = quoted.next().filter(|_| is_field || found("unknown variant `")) else {
            return Problem { key: String::new(), what: text.to_owned() };
        };
        let known: Vec<&str> = quoted.collect();
        let advice = match similar::nearest(name, known.iter().copied()) {
            Some(nearest) => format!("did you mean {nearest}?"),
            None => format!("known are {}", known.join(", ")),
        };
        match is_field {
            true => Problem { key: name.to_owned(), what: format!("no such setting; {advice}") },
            false => Problem { key: String::new(), what: format!("`{name}` is unknown; {advice}") },
        }
    }
}

/// Adds the dot that the library leaves out after a place in a list.
fn dotted(key: &str) -> String {
    key.replace(']', "].").replace("]..", "].").trim_end_matches('.').to_owned()
}

/// Says in words which type is expected.
fn plain(expected: &str) -> &str {
    let has = |word: &str| expected.contains(word);
    let is_one_of = |types: &[&str]| types.contains(&expected);
    if has("nonzero") {
        "a whole number from 1"
    } else if has("unsigned") || is_one_of(&["u8", "u16", "u32", "u64", "usize"]) {
        "a whole number from 0"
    } else if has("integer") || is_one_of(&["i32", "i64"]) {
        "a whole number"
    } else if has("bool") {
        "true or false"
    } else if has("struct ") || has("map") {
        "a section with settings of its own"
    } else if has("sequence") || has("array") {
        "a list such as [\"one\", \"two\"]"
    } else if has("IP address") {
        "an IP address such as 10.0.0.2, not a name or a network"
    } else {
        expected
    }
}

/// Shortens an error of the parser of TOML to the place and the reason. It also quotes the line, whose bytes
/// could be anything.
fn syntax(text: &str) -> String {
    let place = text.lines().next().and_then(|line| line.split_once(" at "));
    let reason = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or(text);
    match place {
        Some((_, place)) => format!("is not TOML at {place}: {reason}"),
        None => format!("is not TOML: {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_get_the_nearest_known_one() {
        let fields = "unknown field `max_reeds`, expected one of `max_reads`, `max_writes`";
        for (text, expected) in [
            (fields, "max_reeds: no such setting; did you mean max_reads?"),
            ("unknown field `x`, expected `keep`", "x: no such setting; known are keep"),
            (
                "unknown variant `gold`, expected `free` or `core`",
                "`gold` is unknown; known are free, core",
            ),
            ("0 is out of range", "0 is out of range"),
        ] {
            assert_eq!(Problem::of_text(text).to_string(), expected);
        }
        let at = ConfigError::At {
            error: Box::new(ConfigError::Message(fields.to_owned())),
            origin: None,
            key: Some("server".to_owned()),
        };
        assert_eq!(Problem::from(at).key, "server.max_reeds");
    }
}
