//! Enums whose variants have fixed names in the API, in settings or on the command line.

use serde::de::value::Error as ValueError;
use serde::de::{Deserialize, Deserializer, Error, IntoDeserializer};

/// Defines an enum with `ALL`, `NAMES`, `as_str` and `Display` from variants and their names.
#[macro_export]
macro_rules! named_enum {
    (
        $(#[$meta:meta])*
        pub enum $type:ident {
            $($(#[$variant_meta:meta])* $variant:ident = $name:literal,)+
        }
    ) => {
        $(#[$meta])*
        pub enum $type {
            $($(#[$variant_meta])* $variant,)+
        }

        impl $type {
            /// All variants, in their order.
            pub const ALL: [$type; [$($name),+].len()] = [$($type::$variant),+];

            /// The names of all variants, in their order.
            pub const NAMES: [&'static str; $type::ALL.len()] = [$($name),+];

            /// Returns the name of the variant.
            pub fn as_str(self) -> &'static str {
                match self {
                    $($type::$variant => $name,)+
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

/// Implements `FromStr` for such an enum: its names, exactly as written.
#[macro_export]
macro_rules! parse_named {
    ($type:ident) => {
        impl std::str::FromStr for $type {
            type Err = $crate::named::NotOneOf;

            fn from_str(text: &str) -> Result<$type, Self::Err> {
                let named = $type::ALL.into_iter().find(|it| it.as_str() == text);
                named.ok_or($crate::named::NotOneOf(&$type::NAMES))
            }
        }
    };
}

/// Error for a text that is not one of the names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be one of {}", .0.join(", "))]
pub struct NotOneOf(pub &'static [&'static str]);

pub use {named_enum, parse_named};

/// Reads the name of a variant. Some formats would refuse another name without listing the known ones.
///
/// # Errors
/// `unknown variant`, with the known ones.
pub fn deserialize<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    let text = String::deserialize(from)?;
    T::deserialize(IntoDeserializer::<ValueError>::into_deserializer(text))
        .map_err(D::Error::custom)
}

/// As [`deserialize`], for a field that may be missing.
///
/// # Errors
/// `unknown variant`, with the known ones.
pub fn optional<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    deserialize(from).map(Some)
}
