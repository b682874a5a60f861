//! E-mail addresses.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Minimum characters of an address (`a@b`).
const CHARS_MIN: usize = 3;
/// Maximum characters of an address: a path of RFC 5321 §4.5.3.1.3 without its angle brackets.
const CHARS_MAX: usize = 254;

/// An e-mail address, trimmed and in lower case.
///
/// Invariant: 3 to 254 characters, exactly one `@` with text on either side, no white space, no
/// control character. Nothing else is checked, because only a delivered message proves that an
/// address works.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Email(String);

/// Reason why a text is not an [`Email`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum EmailError {
    /// The text has this number of characters.
    #[error("an e-mail address has {CHARS_MIN} to {CHARS_MAX} characters, this has {0}")]
    Length(usize),
    #[error("an e-mail address has no white space and no control characters")]
    Character,
    #[error("an e-mail address has one @ with text on either side")]
    Form,
}

impl Email {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the mailbox of this address, as far as its spelling shows: without the part after
    /// `+` and, for Google, without dots. The result is used for limits only, since other addresses
    /// may share a mailbox too.
    pub fn mailbox(&self) -> String {
        let (user, host) = self.0.split_once('@').unwrap_or((&self.0, ""));
        let user = user.strip_prefix('"').and_then(|it| it.strip_suffix('"')).unwrap_or(user);
        let user = match user.split_once('+') {
            Some((user, _)) if !user.is_empty() => user,
            _ => user,
        };
        match host.trim_end_matches('.') {
            "gmail.com" | "googlemail.com" => format!("{}@gmail.com", user.replace('.', "")),
            host => format!("{user}@{host}"),
        }
    }
}

impl FromStr for Email {
    type Err = EmailError;

    fn from_str(text: &str) -> Result<Email, EmailError> {
        let address = text.trim().to_lowercase();
        let chars = address.chars().count();
        if !(CHARS_MIN..=CHARS_MAX).contains(&chars) {
            return Err(EmailError::Length(chars));
        }
        if address.chars().any(|it| it.is_whitespace() || it.is_control()) {
            return Err(EmailError::Character);
        }
        match address.split_once('@') {
            Some((user, host)) if !user.is_empty() && !host.is_empty() && !host.contains('@') => {
                Ok(Email(address))
            }
            _ => Err(EmailError::Form),
        }
    }
}

impl TryFrom<String> for Email {
    type Error = EmailError;

    fn try_from(text: String) -> Result<Email, EmailError> {
        text.parse()
    }
}

impl From<Email> for String {
    fn from(email: Email) -> String {
        email.0
    }
}

impl fmt::Display for Email {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_and_surrounding_space_are_ignored() {
        for text in ["ann@example.com", " Ann@Example.COM\n", "ANN@EXAMPLE.com"] {
            assert_eq!(text.parse::<Email>().map(String::from), Ok("ann@example.com".into()));
        }
    }

    #[test]
    fn spellings_of_a_mailbox_are_recognized() {
        let mailbox = |text: &str| text.parse::<Email>().expect(text).mailbox();
        for text in
            ["ann@example.com", "Ann+1@Example.com", "ann++@example.com.", "\"ann\"@example.com"]
        {
            assert_eq!(mailbox(text), "ann@example.com", "{text}");
        }
        for text in ["a.n.n@gmail.com", "ann+x.y@googlemail.com", "AN.N@GMAIL.COM."] {
            assert_eq!(mailbox(text), "ann@gmail.com", "{text}");
        }
        for text in ["a.nn@example.com", "+ann@example.com", "ann@mail.example.com"] {
            assert_eq!(mailbox(text), text, "{text}");
        }
    }

    #[test]
    fn malformed_addresses_are_refused() {
        let long = format!("{}@b", "a".repeat(253));
        for (text, expected) in [
            ("", EmailError::Length(0)),
            ("@b", EmailError::Length(2)),
            (long.as_str(), EmailError::Length(255)),
            ("a b@c", EmailError::Character),
            ("a\0b@c", EmailError::Character),
            ("a@b@c", EmailError::Form),
            ("abc", EmailError::Form),
            ("@abc", EmailError::Form),
            ("abc@", EmailError::Form),
        ] {
            assert_eq!(text.parse::<Email>(), Err(expected), "{text:?}");
        }
        assert!(format!("{}@b", "é".repeat(252)).parse::<Email>().is_ok(), "254 characters");
    }
}
