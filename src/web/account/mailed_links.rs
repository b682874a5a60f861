//! Mailed links that need no state on the server. A link contains the address and its expiry,
//! authenticated with a key of this process. A restart invalidates unused links.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};

use crate::accounts::{Email, LINK_AGE_MAX, PasswordSeal};

/// Length of the authentication code in bytes.
const CODE_BYTES: usize = blake3::OUT_LEN;
/// Length in bytes of the expiry, in Unix seconds.
const EXPIRY_BYTES: usize = size_of::<i64>();
/// Lifetime of a link that sets a new password.
pub const RESET_AGE_MAX: TimeDelta = TimeDelta::hours(1);
/// Lifetime of the link of an invitation.
pub const INVITE_AGE_MAX: TimeDelta = TimeDelta::days(7);

/// The purpose of a link. A link for one purpose is not valid for another.
#[derive(Clone, Copy)]
pub enum Purpose {
    /// Creates an account.
    SignUp,
    /// The link replaces the password that has this seal, so it works only once.
    Reset(PasswordSeal),
    /// The same as [`Purpose::Reset`], but sent by an operator, who cannot know when the mail is
    /// read.
    Invite(PasswordSeal),
}

impl Purpose {
    fn lifetime(self) -> TimeDelta {
        match self {
            Purpose::SignUp => LINK_AGE_MAX,
            Purpose::Reset(_) => RESET_AGE_MAX,
            Purpose::Invite(_) => INVITE_AGE_MAX,
        }
    }

    /// Bytes that are authenticated, but not part of the link.
    fn seal(&self) -> &[u8] {
        match self {
            Purpose::SignUp => b"sign up",
            // Links for either purpose lead to the same page, so they are interchangeable.
            Purpose::Reset(seal) | Purpose::Invite(seal) => seal.as_bytes(),
        }
    }
}

/// Creates and verifies links.
#[derive(Default)]
pub struct MailedLinks(Option<[u8; blake3::KEY_LEN]>);

impl MailedLinks {
    /// Creates links with a new key.
    pub fn new() -> MailedLinks {
        let mut key = [0; blake3::KEY_LEN];
        // Without random bytes, no link can be created.
        MailedLinks(getrandom::fill(&mut key).is_ok().then_some(key))
    }

    /// Returns the link for an address.
    pub fn link(&self, purpose: Purpose, email: &Email, now: DateTime<Utc>) -> Option<String> {
        let expiry = (now + purpose.lifetime()).timestamp().to_be_bytes();
        let content = [expiry.as_slice(), email.as_str().as_bytes()].concat();
        let code = self.code(purpose, &content)?;
        Some(URL_SAFE_NO_PAD.encode([code.as_bytes(), content.as_slice()].concat()))
    }

    /// Returns the address of a link if it was created with this key, is valid at `now`, and is for
    /// the purpose that `purpose` returns for the address.
    pub fn email(
        &self,
        link: &str,
        purpose: impl FnOnce(&Email) -> Option<Purpose>,
        now: DateTime<Utc>,
    ) -> Option<Email> {
        let bytes = URL_SAFE_NO_PAD.decode(link).ok()?;
        let (code, content) = bytes.split_first_chunk::<CODE_BYTES>()?;
        let (expiry, email) = content.split_first_chunk::<EXPIRY_BYTES>()?;
        let email: Email = str::from_utf8(email).ok()?.parse().ok()?;
        // Compared in constant time.
        if self.code(purpose(&email)?, content)? != *code {
            return None;
        }
        (now.timestamp() <= i64::from_be_bytes(*expiry)).then_some(email)
    }

    fn code(&self, purpose: Purpose, content: &[u8]) -> Option<blake3::Hash> {
        let mut hasher = blake3::Hasher::new_keyed(self.0.as_ref()?);
        Some(hasher.update(purpose.seal()).update(&[0]).update(content).finalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_valid_for_their_address_key_purpose_and_day() {
        let (links, now) = (MailedLinks::new(), DateTime::UNIX_EPOCH);
        let ann: Email = "ann@example.com".parse().expect("an address");
        let link = links.link(Purpose::SignUp, &ann, now).expect("a key");
        let email = |links: &MailedLinks, link: &str, now| {
            links.email(link, |_| Some(Purpose::SignUp), now)
        };
        assert_eq!(email(&links, &link, now + LINK_AGE_MAX).as_ref(), Some(&ann));
        assert_eq!(email(&links, &link, now + LINK_AGE_MAX + TimeDelta::seconds(1)), None);
        assert_eq!(email(&MailedLinks::new(), &link, now), None);
        for at in 0..link.len() {
            let mut changed = link.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).expect("ASCII");
            assert_eq!(email(&links, &changed, now), None, "{changed}");
        }
        assert!(["", "AAAA", "\u{e9}"].iter().all(|link| email(&links, link, now).is_none()));

        let reset = |byte| Purpose::Reset(PasswordSeal::new([byte; 32]));
        let link = links.link(reset(1), &ann, now).expect("a key");
        let opened = |purpose, now| links.email(&link, |_| Some(purpose), now);
        assert_eq!(opened(reset(1), now + RESET_AGE_MAX).as_ref(), Some(&ann));
        assert_eq!(opened(reset(1), now + RESET_AGE_MAX + TimeDelta::seconds(1)), None);
        assert_eq!(opened(reset(2), now), None, "the password was changed since");
        assert_eq!(opened(Purpose::SignUp, now), None);
    }
}
