//! Links that create an account. A link holds the address and its expiry, authenticated with a key of
//! this process: a sign-up writes and keeps nothing until its link is opened, and a restart ends the
//! links that were not used.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};

use crate::accounts::{Email, LINK_AGE_MAX};

/// Bytes of the authentication code.
const CODE_BYTES: usize = blake3::OUT_LEN;
/// Bytes of the expiry in Unix seconds.
const EXPIRY_BYTES: usize = size_of::<i64>();

/// Makes and checks links.
#[derive(Default)]
pub struct SignupLinks(Option<[u8; blake3::KEY_LEN]>);

impl SignupLinks {
    /// Links with a new key.
    pub fn new() -> SignupLinks {
        let mut key = [0; blake3::KEY_LEN];
        // If no random bytes are available, no link is made.
        SignupLinks(getrandom::fill(&mut key).is_ok().then_some(key))
    }

    /// The link for an address.
    pub fn link(&self, email: &Email, now: DateTime<Utc>) -> Option<String> {
        let expiry = (now + LINK_AGE_MAX).timestamp().to_be_bytes();
        let content = [expiry.as_slice(), email.as_str().as_bytes()].concat();
        let code = blake3::keyed_hash(self.0.as_ref()?, &content);
        Some(URL_SAFE_NO_PAD.encode([code.as_bytes(), content.as_slice()].concat()))
    }

    /// The address of a link, if it was made with this key and is valid at `now`.
    pub fn email(&self, link: &str, now: DateTime<Utc>) -> Option<Email> {
        let bytes = URL_SAFE_NO_PAD.decode(link).ok()?;
        let (code, content) = bytes.split_first_chunk::<CODE_BYTES>()?;
        // Compared in constant time.
        if blake3::keyed_hash(self.0.as_ref()?, content) != *code {
            return None;
        }
        let (expiry, email) = content.split_first_chunk::<EXPIRY_BYTES>()?;
        let is_valid = now.timestamp() <= i64::from_be_bytes(*expiry);
        let email = str::from_utf8(email).ok().filter(|_| is_valid)?;
        email.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn links_are_valid_for_their_address_key_and_day() {
        let (links, now) = (SignupLinks::new(), DateTime::UNIX_EPOCH);
        let ann: Email = "ann@example.com".parse().expect("an address");
        let link = links.link(&ann, now).expect("a key");
        assert_eq!(links.email(&link, now + LINK_AGE_MAX).as_ref(), Some(&ann));
        assert_eq!(links.email(&link, now + LINK_AGE_MAX + TimeDelta::seconds(1)), None);
        assert_eq!(SignupLinks::new().email(&link, now), None);
        for at in 0..link.len() {
            let mut changed = link.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).expect("ASCII");
            assert_eq!(links.email(&changed, now), None, "{changed}");
        }
        assert!(["", "AAAA", "\u{e9}"].iter().all(|link| links.email(link, now).is_none()));
    }
}
