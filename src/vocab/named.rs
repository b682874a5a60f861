//! A macro for enums whose variants have fixed names in the API, in settings or on the command line.

/// Defines an enum with `ALL`, `as_str` and `Display` from variants and their names.
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

            /// The name of the variant.
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

pub(crate) use named_enum;
