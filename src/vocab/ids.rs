//! Identifiers of accounts and of their claims, alert rules and deliveries.

use std::fmt;
use std::num::NonZeroU64;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An account's number, assigned when it is added and never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AccountId(pub u64);

/// The largest id of a claim or a rule: 2^53 - 1, which every JSON reader represents exactly.
pub const ID_MAX: u64 = (1 << 53) - 1;

/// A random id, unique within one account. Invariant: 1 to [`ID_MAX`].
macro_rules! random_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "u64", into = "u64")]
        pub struct $name(NonZeroU64);

        impl $name {
            /// Returns the id with this number; `None` outside 1 to [`ID_MAX`].
            pub fn new(number: u64) -> Option<$name> {
                NonZeroU64::new(number).filter(|number| number.get() <= ID_MAX).map($name)
            }

            /// Parses an id in a URL path: decimal digits without a leading zero. `None` for any
            /// other text.
            pub fn parse(text: &str) -> Option<$name> {
                let canonical =
                    !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
                $name::new(text.parse().ok().filter(|_| canonical)?)
            }

            /// Returns the id as a number.
            pub fn get(self) -> u64 {
                self.0.get()
            }
        }

        impl TryFrom<u64> for $name {
            type Error = &'static str;

            fn try_from(number: u64) -> Result<$name, &'static str> {
                $name::new(number).ok_or("an id is 1 to 2^53 - 1")
            }
        }

        impl From<$name> for u64 {
            fn from(id: $name) -> u64 {
                id.get()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

random_id! {
    /// Id of a claim. Invariant: 1 to [`ID_MAX`].
    ClaimId
}
random_id! {
    /// Id of an alert rule. Invariant: 1 to [`ID_MAX`].
    RuleId
}
impl RuleId {
    /// The id of the settings of the watchlist, which have an outbox like rules. No rule gets it.
    pub const WATCHLIST: RuleId = RuleId(NonZeroU64::new(ID_MAX).unwrap());
    /// The id of the morning digest, which has an outbox like rules. No rule gets it.
    pub const DIGEST: RuleId = RuleId(NonZeroU64::new(ID_MAX - 1).unwrap());
}

random_id! {
    /// Id of a saved search. Invariant: 1 to [`ID_MAX`].
    SearchId
}
random_id! {
    /// Id of an action that can be undone. Invariant: 1 to [`ID_MAX`].
    ActionId
}
random_id! {
    /// Id of an API key. Invariant: 1 to [`ID_MAX`].
    KeyId
}

impl KeyId {
    /// Id of the key that `dropdex account key` and the button for a first key create.
    pub const FIRST: KeyId = KeyId(NonZeroU64::MIN);
}

/// Id of a delivery: 16 random bytes, drawn when its match is recorded, and constant over retries
/// and restarts. Written as 32 hex digits in JSON, in `webhook-id` (after `msg_`) and in
/// `Message-ID`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeliveryId([u8; 16]);

impl DeliveryId {
    /// Returns the id of these bytes.
    pub fn new(bytes: [u8; 16]) -> DeliveryId {
        DeliveryId(bytes)
    }

    /// Parses 32 lower-case hex digits, as [`fmt::Display`] writes them. `None` for any other text.
    pub fn parse(text: &str) -> Option<DeliveryId> {
        let mut bytes = [0; 16];
        let canonical = !text.bytes().any(|byte| byte.is_ascii_uppercase());
        hex::decode_to_slice(text, &mut bytes).ok().filter(|()| canonical)?;
        Some(DeliveryId(bytes))
    }

    /// Returns the id as bytes.
    pub fn bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for DeliveryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for DeliveryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Serialises as hex in human-readable formats, and as 16 bytes in binary ones.
impl Serialize for DeliveryId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            self.0.serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for DeliveryId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<DeliveryId, D::Error> {
        if deserializer.is_human_readable() {
            let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
            DeliveryId::parse(&text).ok_or_else(|| D::Error::custom("must be 32 hex digits"))
        } else {
            <[u8; 16]>::deserialize(deserializer).map(DeliveryId)
        }
    }
}

/// The secret in the unsubscribe links of a rule's mails. `Debug` does not print the secret, and it
/// is never logged.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnsubscribeToken(DeliveryId);

impl UnsubscribeToken {
    /// Returns the token of these random bytes.
    pub fn new(bytes: [u8; 16]) -> UnsubscribeToken {
        UnsubscribeToken(DeliveryId(bytes))
    }

    /// Returns the token of a rule whose first mail was queued by an older version: the id of that
    /// mail.
    pub fn of_older_version(first_mail: DeliveryId) -> UnsubscribeToken {
        UnsubscribeToken(first_mail)
    }

    /// Parses 32 lower-case hex digits; `None` for any other text.
    pub fn parse(text: &str) -> Option<UnsubscribeToken> {
        DeliveryId::parse(text).map(UnsubscribeToken)
    }

    /// Returns the text for the link. Only the mail may contain it.
    pub fn reveal(&self) -> String {
        self.0.to_string()
    }
}

impl fmt::Debug for UnsubscribeToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UnsubscribeToken(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delivery_ids_have_one_spelling() {
        let id = DeliveryId::new([0xab; 16]);
        assert_eq!(id.to_string(), "ab".repeat(16));
        assert_eq!(DeliveryId::parse(&id.to_string()), Some(id));
        assert_eq!(serde_json::to_string(&id).expect("JSON"), format!("\"{id}\""));
        for text in ["", "ab", &"AB".repeat(16), &"ab".repeat(17), &"zz".repeat(16)] {
            assert_eq!(DeliveryId::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn ids_fit_json_numbers() {
        assert_eq!(ClaimId::new(0), None);
        assert_eq!(ClaimId::new(ID_MAX).map(ClaimId::get), Some(9_007_199_254_740_991));
        assert_eq!(ClaimId::new(ID_MAX + 1), None);
        assert_eq!(serde_json::to_string(&RuleId::new(7)).expect("JSON"), "7");
        assert!(serde_json::from_str::<RuleId>("0").is_err());
    }

    #[test]
    fn ids_in_paths_have_one_spelling() {
        assert_eq!(RuleId::parse("42"), RuleId::new(42));
        for text in ["", "0", "042", "+42", " 42", "4 2", "-1", "9007199254740992", "4e1", "٤"] {
            assert_eq!(RuleId::parse(text), None, "{text:?}");
        }
    }
}
