//! Passwords: checked, hashed at once, never kept.

use argon2::Argon2;
use argon2::password_hash::{PasswordHasher, PasswordVerifier, phc};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::email::Email;
use super::secret::Secret;

/// Characters of a password at least (OWASP ASVS 5.0, 6.2.1).
const CHARS_MIN: usize = 8;
/// Characters of a password at most: hashing more is work for the server and no gain.
const CHARS_MAX: usize = 128;

/// A password somebody chose. Invariant: 8 to 128 characters.
pub struct Password(Secret);

/// A password's argon2id hash in the PHC string form, which names its parameters and salt.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PasswordHash(String);

/// Passwords that are tried first: the commonest of leaked ones that are long enough, a line each.
const GUESSED_FIRST: &str = include_str!("guessed-first.txt");

/// Why a text is not a [`Password`], or could not be hashed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PasswordError {
    /// Too short or too long.
    #[error("a password has {CHARS_MIN} to {CHARS_MAX} characters, this has {0}")]
    Length(usize),
    /// It would be guessed at once.
    #[error("this password is one of the first that are guessed; choose another")]
    Guessable,
    /// The hash function or the system's random source failed.
    #[error("cannot hash the password: {0}")]
    Hash(String),
}

impl Password {
    /// `text` as a password.
    ///
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

    /// `text` as a password that somebody chooses for the account of `email`: none that is tried
    /// first, such as a common one or the address (OWASP ASVS 5.0, 6.2.4 and 6.2.11).
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
        if is_own || is_one_char || GUESSED_FIRST.lines().any(|line| line == typed) {
            return Err(PasswordError::Guessable);
        }
        Ok(password)
    }

    /// Its argon2id hash with a new salt (19 MiB, 2 passes, 1 lane: the crate's defaults and OWASP's
    /// minimum). Takes tens of milliseconds: not for async code.
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

/// The hash of a password that nobody knows, made as [`Password::hash`] makes them.
const OF_NOBODY: &str = "$argon2id$v=19$m=19456,t=2,p=1$Xc+M8SE0h4vb01hS5zY2PQ$GL1G6Pzz90p4qC0fbppyQLtEGRca1XjPi82mgUKCs0U";

impl PasswordHash {
    /// What a password is compared with where there is none: it fits nothing, and takes as long.
    pub(super) fn of_nobody() -> PasswordHash {
        PasswordHash(OF_NOBODY.to_owned())
    }

    /// Whether it is the hash of what somebody typed. Takes tens of milliseconds, whatever was typed:
    /// not for async code.
    pub fn fits(&self, typed: &Secret) -> bool {
        // Longer than any password: as much work for as little.
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
    fn what_is_guessed_first_is_not_chosen() {
        let email = "anna.long@example.com".parse().expect("an address");
        let chosen = |text: &str| Password::chosen(Secret::new(text.into()), Some(&email)).err();
        for text in
            ["password", "PassWord1", "12345678", "zzzzzzzz", "anna.long", "Anna.Long@example.com"]
        {
            assert_eq!(chosen(text), Some(PasswordError::Guessable), "{text}");
        }
        assert_eq!(chosen("short"), Some(PasswordError::Length(5)));
        assert_eq!(chosen("correct horse"), None);
        for line in GUESSED_FIRST.lines() {
            assert!(line.chars().count() >= CHARS_MIN && line.to_lowercase() == line, "{line}");
        }
    }

    #[test]
    fn the_hash_is_argon2id_and_knows_its_password_alone() {
        let password = Password::new(Secret::new("correct horse".into())).expect("long enough");
        let hash = password.hash().expect("hashed");
        assert!(hash.0.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{}", hash.0);
        assert!(hash != password.hash().expect("hashed"), "each hash has its own salt");
        assert!(hash.fits(&Secret::new("correct horse".into())));
        assert!(!hash.fits(&Secret::new("correct horsf".into())));
        assert!(!hash.fits(&Secret::new(String::new())));
    }

    #[test]
    fn nobody_has_a_hash_like_others_that_fits_nothing() {
        let (nobody, parameters) = (PasswordHash::of_nobody(), "$argon2id$v=19$m=19456,t=2,p=1$");
        assert!(nobody.0.starts_with(parameters));
        phc::PasswordHash::new(&nobody.0).expect("a PHC string, or it would take no time");
        for typed in ["", "password", "nobody", &"x".repeat(10_000)] {
            assert!(!nobody.fits(&Secret::new(typed.into())), "{typed}");
        }
    }
}
