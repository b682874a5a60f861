//! Tokens: session ids and the secrets of verification links. Tokens are stored as digests.
//!
//! A token has 256 random bits, so a fast hash is enough, as for [`super::keys`].

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::vocab::secret::Secret;

/// Hexadecimal digits of a token.
const DIGITS: usize = 64;

/// A token in plaintext: 64 lower-case hexadecimal digits. Its `Debug` hides it.
#[derive(Clone, Debug)]
pub struct Token(Secret);

impl Token {
    /// Draws a token.
    ///
    /// # Errors
    /// The system's random source failed.
    pub fn generate() -> Result<Token, getrandom::Error> {
        let mut bytes = [0; DIGITS / 2];
        getrandom::fill(&mut bytes)?;
        Ok(Token(Secret::new(hex::encode(bytes))))
    }

    /// Parses a presented token. Treat `None` like an unknown token.
    pub fn parse(presented: &str) -> Option<Token> {
        let is_token = presented.len() == DIGITS
            && presented.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        is_token.then(|| Token(Secret::new(presented.to_owned())))
    }

    /// Returns the plaintext, which only the owner may see.
    pub fn reveal(&self) -> &str {
        self.0.reveal()
    }

    /// Returns the stored form.
    pub fn digest(&self) -> TokenDigest {
        TokenDigest(Sha256::digest(self.reveal().as_bytes()).into())
    }
}

/// SHA-256 of a token. It identifies the token in storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TokenDigest([u8; 32]);

impl TokenDigest {
    #[cfg(test)]
    pub fn new(bytes: [u8; 32]) -> TokenDigest {
        TokenDigest(bytes)
    }

    /// Returns an id to show to the holder of the token: half of the digest in hexadecimal digits.
    pub fn public_id(&self) -> String {
        hex::encode(&self.0[..16])
    }

    /// Returns true if both are equal. Takes constant time.
    pub fn is(&self, other: &TokenDigest) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_distinct_and_recognised_by_digest() {
        let one = Token::generate().expect("random");
        let other = Token::generate().expect("random");
        assert_eq!(one.reveal().len(), DIGITS);
        assert!(!one.digest().is(&other.digest()));
        let presented = Token::parse(one.reveal()).expect("a token");
        assert!(presented.digest().is(&one.digest()));
        assert!(!format!("{one:?}").contains(one.reveal()), "must not reach a log");
    }

    #[test]
    fn malformed_tokens_are_refused() {
        let good = "0af9".repeat(16);
        assert!(Token::parse(&good).is_some());
        for bad in ["", &good[1..], &format!("{good}0"), &good.replacen('a', "A", 1), " "] {
            assert!(Token::parse(bad).is_none(), "{bad:?}");
        }
    }
}
