//! The macro that defines an enum of events from a table of numbers.

/// Defines an enum whose variants and fields have numbers, and its stored form: `NUMBER NAME { NUMBER FIELD: TYPE, ..;
/// NUMBER FIELD: TYPE, .. }`, where the fields after the semicolon have a default.
macro_rules! table {
    (
        $(#[$doc:meta])*
        pub enum $event:ident {
            $(
                $(#[$variant_doc:meta])*
                $variant_number:literal $variant:ident {
                    $($number:literal $field:ident: $type:ty),*
                    ; $($optional_number:literal $optional:ident: $optional_type:ty),* $(,)?
                }
            )*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq)]
        pub enum $event {
            $($(#[$variant_doc])* $variant { $($field: $type,)* $($optional: $optional_type,)* },)*
        }

        impl $event {
            /// The name and number of each event.
            pub const ALL: &[(&str, u8)] = &[$((stringify!($variant), $variant_number)),*];

            /// Returns the number by which the event is stored.
            pub fn number(&self) -> u8 {
                match self {
                    $($event::$variant { .. } => $variant_number,)*
                }
            }

            fn name(&self) -> &'static str {
                match self {
                    $($event::$variant { .. } => stringify!($variant),)*
                }
            }

            fn write(&self, row: &mut $crate::data::fields::RowWriter) {
                match self {
                    $($event::$variant { $($field,)* $($optional,)* } => {
                        $(row.put($number, stringify!($field), $field);)*
                        $(row.put_optional($optional_number, stringify!($optional), $optional);)*
                    })*
                }
            }

            /// Appends the fields.
            fn encode(&self, bytes: &mut Vec<u8>) {
                let mut row =
                    $crate::data::fields::RowWriter::after(std::mem::take(bytes));
                self.write(&mut row);
                *bytes = row.into_bytes();
            }

            /// Decodes the fields of the event with this number.
            fn decode(number: u8, bytes: &[u8]) -> Result<$event, String> {
                match number {
                    $($variant_number => {
                        $crate::data::fields::read_row(stringify!($variant), bytes, |row| {
                            Ok($event::$variant {
                                $($field: row.required($number, stringify!($field))?,)*
                                $($optional: row.optional($optional_number, stringify!($optional))?,)*
                            })
                        })
                    })*
                    other => Err(format!(
                        "event {other} is unknown; {}",
                        $crate::data::fields::NEWER
                    )),
                }
            }
        }
    };
}
