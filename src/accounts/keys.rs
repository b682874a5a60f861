//! API keys, stored as digests and shown once.
//!
//! A key has 192 random bits, so a fast hash is enough: it cannot be guessed.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Prefix of every key. Secret scanners look for `ddx_[0-9a-f]{48}`.
pub const PREFIX: &str = "ddx_";
/// Hexadecimal digits after the prefix (`data/docs/api.md`, Authentication).
const DIGITS: usize = 48;

/// A new key in plaintext. The key is not stored, and has neither `Debug` nor `Display`.
pub struct ApiKey(String);

impl ApiKey {
    /// Draws a key.
    ///
    /// # Errors
    /// The system's random source failed.
    pub fn generate() -> Result<ApiKey, getrandom::Error> {
        let mut bytes = [0; DIGITS / 2];
        getrandom::fill(&mut bytes)?;
        Ok(ApiKey(format!("{PREFIX}{}", hex::encode(bytes))))
    }

    /// Returns the plaintext, which is to be shown only once.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns the stored form.
    pub fn stored(&self) -> StoredKey {
        let mut last4 = [0; 4];
        last4.copy_from_slice(&self.0.as_bytes()[self.0.len() - 4..]);
        StoredKey { digest: digest(&self.0), last4 }
    }
}

/// A new key.
pub struct IssuedKey {
    pub key: ApiKey,
    /// Whether the key replaced an older one.
    pub replaced: bool,
}

/// SHA-256 of a key.
pub type KeyDigest = [u8; 32];

/// A stored key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredKey {
    digest: KeyDigest,
    last4: [u8; 4],
}

impl StoredKey {
    /// Returns the digest by which the key is looked up.
    pub fn digest(&self) -> &KeyDigest {
        &self.digest
    }

    /// Returns the last four characters, by which the owner recognises the key.
    pub fn last4(&self) -> String {
        String::from_utf8_lossy(&self.last4).into_owned()
    }

    /// Returns true if `presented` is the digest of this key. Takes constant time.
    pub fn is(&self, presented: &KeyDigest) -> bool {
        self.digest.ct_eq(presented).into()
    }
}

/// Returns the digest of a presented key; `None` if the text is not a key. Treat `None` like an
/// unknown key, so that a client cannot distinguish them.
pub fn digest_of_presented(presented: &str) -> Option<KeyDigest> {
    let digits = presented.strip_prefix(PREFIX)?;
    let is_key = digits.len() == DIGITS
        && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_key.then(|| digest(presented))
}

fn digest(key: &str) -> KeyDigest {
    Sha256::digest(key.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_distinct_and_have_the_documented_form() {
        let (one, other) =
            (ApiKey::generate().expect("random"), ApiKey::generate().expect("random"));
        for key in [&one, &other] {
            assert_eq!(key.reveal().len(), 52);
            let digest = digest_of_presented(key.reveal()).expect("a key");
            assert!(key.stored().is(&digest));
            assert!(key.reveal().ends_with(&key.stored().last4()));
        }
        assert!(!one.stored().is(other.stored().digest()));
    }

    #[test]
    fn malformed_keys_have_no_digest() {
        let good = format!("{PREFIX}{}", "0af9".repeat(12));
        assert!(digest_of_presented(&good).is_some());
        for bad in [
            "",
            "ddx_",
            &good[1..],
            &good[..51],
            &format!("{good}0"),
            &format!(" {good}"),
            &format!("{good}\n"),
            &good.replacen("ddx_", "DDX_", 1),
            &good.replacen('a', "A", 1),
            &good.replacen('a', "g", 1),
            &good.replacen("af", "é", 1),
        ] {
            assert!(digest_of_presented(bad).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn the_digest_is_sha_256() {
        let key = format!("{PREFIX}{}", "0".repeat(48));
        let digest = digest_of_presented(&key).map(hex::encode);
        let expected = "ea4d64710f3c2c632c2dc86631b35e3c9b42480e9f92f17bfc7b5c1ee709db05";
        assert_eq!(digest.as_deref(), Some(expected));
    }
}
