//! Secrets that a browser or a mail carries for its owner: session ids, links that verify an address.
//! Made here, handed over once, kept as a digest.
//!
//! A token carries 256 random bits, so one fast hash is enough to keep it, as with [`super::keys`].

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::secret::Secret;

/// Hexadecimal digits of a token.
const DIGITS: usize = 64;

/// A token as its owner has it: 64 lower-case hexadecimal digits. Its `Debug` hides it.
#[derive(Clone, Debug)]
pub struct Token(Secret);

impl Token {
    /// A token from the system's random source.
    ///
    /// # Errors
    /// What the random source says.
    pub fn generate() -> Result<Token, getrandom::Error> {
        let mut bytes = [0; DIGITS / 2];
        getrandom::fill(&mut bytes)?;
        Ok(Token(Secret::new(hex::encode(bytes))))
    }

    /// A token that somebody presents; `None` for what cannot be one, which whoever asks treats as
    /// an unknown one.
    pub fn parse(presented: &str) -> Option<Token> {
        let is_token = presented.len() == DIGITS
            && presented.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        is_token.then(|| Token(Secret::new(presented.to_owned())))
    }

    /// The text, for its owner alone.
    pub fn reveal(&self) -> &str {
        self.0.reveal()
    }

    /// What is kept of it.
    pub fn digest(&self) -> TokenDigest {
        TokenDigest(Sha256::digest(self.reveal().as_bytes()).into())
    }
}

/// SHA-256 of a token: what is kept of it, and its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TokenDigest([u8; 32]);

impl TokenDigest {
    /// A digest of these bytes, as tests need it.
    #[cfg(test)]
    pub(super) fn new(bytes: [u8; 32]) -> TokenDigest {
        TokenDigest(bytes)
    }

    /// Whether both are of one token, in a time that does not depend on how much of them fits.
    pub fn is(&self, other: &TokenDigest) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_never_the_same_and_known_by_its_digest() {
        let one = Token::generate().expect("random");
        let other = Token::generate().expect("random");
        assert_eq!(one.reveal().len(), DIGITS);
        assert!(!one.digest().is(&other.digest()));
        let presented = Token::parse(one.reveal()).expect("a token");
        assert!(presented.digest().is(&one.digest()));
        assert!(!format!("{one:?}").contains(one.reveal()), "it never reaches a log");
    }

    #[test]
    fn what_is_no_token_is_none() {
        let good = "0af9".repeat(16);
        assert!(Token::parse(&good).is_some());
        for bad in ["", &good[1..], &format!("{good}0"), &good.replacen('a', "A", 1), " "] {
            assert!(Token::parse(bad).is_none(), "{bad:?}");
        }
    }
}
