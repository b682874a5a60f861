//! Passwords and their hashes. Passwords themselves are not stored.

use argon2::Argon2;
use argon2::password_hash::{PasswordHasher, PasswordVerifier, phc};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::email::Email;
use crate::vocab::secret::Secret;

/// Minimum characters of a password (OWASP ASVS 5.0, 6.2.1).
const CHARS_MIN: usize = 8;
/// Maximum characters of a password: longer ones cost time and add no security.
const CHARS_MAX: usize = 128;

/// A password. Invariant: 8 to 128 characters.
pub struct Password(Secret);

/// An argon2id hash in PHC string form, with its parameters and salt.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PasswordHash(String);

/// A fingerprint of a [`PasswordHash`]; it changes when the password changes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PasswordSeal([u8; 32]);

impl PasswordSeal {
    pub const fn new(bytes: [u8; 32]) -> PasswordSeal {
        PasswordSeal(bytes)
    }

    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// The most common leaked passwords that are long enough, one per line.
const COMMON: &str = include_str!("guessed-first.txt");

/// Reason why a text is not a [`Password`], or could not be hashed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PasswordError {
    /// The text has this number of characters.
    #[error("a password has {CHARS_MIN} to {CHARS_MAX} characters, this has {0}")]
    Length(usize),
    #[error("this password is too common or too easy to guess; choose another")]
    Guessable,
    /// The hash function or the system's random source failed.
    #[error("cannot hash the password: {0}")]
    Hash(String),
}

impl Password {
    /// # Errors
    /// [`PasswordError::Length`].
    pub fn new(text: Secret) -> Result<Password, PasswordError> {
        let chars = text.reveal().chars().count();
        if (CHARS_MIN..=CHARS_MAX).contains(&chars) {
            Ok(Password(text))
        } else {
            Err(PasswordError::Length(chars))
        }
    }

    /// Parses a new password for the account of `email`. Common passwords and the address itself
    /// are refused (OWASP ASVS 5.0, 6.2.4 and 6.2.11).
    ///
    /// # Errors
    /// [`PasswordError::Length`], [`PasswordError::Guessable`].
    pub fn chosen(text: Secret, email: Option<&Email>) -> Result<Password, PasswordError> {
        let password = Password::new(text)?;
        let typed = password.0.reveal().to_lowercase();
        let address = email.map(Email::as_str).unwrap_or_default();
        let user = address.split('@').next().unwrap_or_default();
        let is_own = [address, user].contains(&typed.as_str());
        let is_one_char = typed.chars().all(|char| typed.starts_with(char));
        if is_own || is_one_char || COMMON.lines().any(|line| line == typed) {
            return Err(PasswordError::Guessable);
        }
        Ok(password)
    }

    /// Hashes the password with a new salt (19 MiB, 2 passes, 1 lane: the crate's defaults and
    /// OWASP's minimum). Takes tens of milliseconds, so async code must not call it.
    ///
    /// # Errors
    /// [`PasswordError::Hash`].
    pub fn hash(&self) -> Result<PasswordHash, PasswordError> {
        Argon2::default()
            .hash_password(self.0.reveal().as_bytes())
            .map(|hash| PasswordHash(hash.to_string()))
            .map_err(|err| PasswordError::Hash(err.to_string()))
    }
}

/// Returns the hash of an unknown password, with the parameters of [`Password::hash`].
const UNKNOWN: &str = "$argon2id$v=19$m=19456,t=2,p=1$Xc+M8SE0h4vb01hS5zY2PQ$GL1G6Pzz90p4qC0fbppyQLtEGRca1XjPi82mgUKCs0U";

impl PasswordHash {
    /// Returns a hash that no password matches. Verifying a password against it takes as long as
    /// against a real hash.
    pub fn unknown() -> PasswordHash {
        PasswordHash(UNKNOWN.to_owned())
    }

    /// Returns the fingerprint.
    pub fn seal(&self) -> PasswordSeal {
        PasswordSeal(blake3::hash(self.0.as_bytes()).into())
    }

    /// Returns true if this is the hash of `typed`. Takes tens of milliseconds for any text, so
    /// async code must not call it.
    pub fn matches(&self, typed: &Secret) -> bool {
        // No password is longer than this, so truncating the text bounds the work.
        let typed = typed.reveal().as_bytes();
        let typed = &typed[..typed.len().min(4 * CHARS_MAX + 1)];
        let Ok(parsed) = phc::PasswordHash::new(&self.0) else { return false };
        Argon2::default().verify_password(typed, &parsed).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_is_counted_in_characters() {
        for (text, ok) in [
            ("1234567".to_owned(), false),
            ("12345678".to_owned(), true),
            ("é".repeat(128), true),
            ("é".repeat(129), false),
        ] {
            assert_eq!(Password::new(Secret::new(text.clone())).is_ok(), ok, "{text}");
        }
    }

    #[test]
    fn common_passwords_and_the_address_are_refused() {
        let email = "anna.long@example.com".parse().expect("an address");
        let chosen = |text: &str| Password::chosen(Secret::new(text.into()), Some(&email)).err();
        for text in
            ["password", "PassWord1", "12345678", "zzzzzzzz", "anna.long", "Anna.Long@example.com"]
        {
            assert_eq!(chosen(text), Some(PasswordError::Guessable), "{text}");
        }
        assert_eq!(chosen("short"), Some(PasswordError::Length(5)));
        assert_eq!(chosen("correct horse"), None);
        for line in COMMON.lines() {
            assert!(line.chars().count() >= CHARS_MIN && line.to_lowercase() == line, "{line}");
        }
    }

    #[test]
    fn the_hash_is_argon2id_and_matches_only_its_password() {
        let password = Password::new(Secret::new("correct horse".into())).expect("long enough");
        let hash = password.hash().expect("hashed");
        assert!(hash.0.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{}", hash.0);
        assert!(hash != password.hash().expect("hashed"), "each hash has its own salt");
        assert!(hash.matches(&Secret::new("correct horse".into())));
        assert!(!hash.matches(&Secret::new("correct horsf".into())));
        assert!(!hash.matches(&Secret::new(String::new())));
    }

    #[test]
    fn the_unknown_hash_has_usual_parameters_and_matches_nothing() {
        let (unknown, parameters) = (PasswordHash::unknown(), "$argon2id$v=19$m=19456,t=2,p=1$");
        assert!(unknown.0.starts_with(parameters));
        phc::PasswordHash::new(&unknown.0)
            .expect("a PHC string: a malformed one would take no time");
        for typed in ["", "password", "unknown", &"x".repeat(10_000)] {
            assert!(!unknown.matches(&Secret::new(typed.into())), "{typed}");
        }
    }
}
