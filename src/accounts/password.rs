//! Passwords: checked, hashed at once, never kept.

use argon2::Argon2;
use argon2::password_hash::PasswordHasher;
use serde::{Deserialize, Serialize};
use thiserror::Error;

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

/// Why a text is not a [`Password`], or could not be hashed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PasswordError {
    /// Too short or too long.
    #[error("a password has {CHARS_MIN} to {CHARS_MAX} characters, this has {0}")]
    Length(usize),
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

#[cfg(test)]
mod tests {
    use argon2::password_hash::PasswordVerifier;
    use argon2::password_hash::phc;

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
    fn the_hash_is_argon2id_and_knows_its_password_alone() {
        let password = Password::new(Secret::new("correct horse".into())).expect("long enough");
        let hash = password.hash().expect("hashed");
        assert!(hash.0.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{}", hash.0);
        assert!(hash != password.hash().expect("hashed"), "each hash has its own salt");
        let parsed = phc::PasswordHash::new(&hash.0).expect("a PHC string");
        assert!(Argon2::default().verify_password(b"correct horse", &parsed).is_ok());
        assert!(Argon2::default().verify_password(b"correct horsf", &parsed).is_err());
    }
}
