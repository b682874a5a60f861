//! Errors of request parameters.

use std::borrow::Cow;
use std::fmt::Display;

use crate::vocab::named::named_enum;

named_enum! {
    /// The `code` of an error about a parameter or a member of the body.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ParameterCode {
        InvalidValue = "invalid_value",
        Repeated = "repeated_parameter",
        UnknownParameter = "unknown_parameter",
        UnknownMember = "unknown_member",
        CrossedRange = "crossed_range",
        InvalidPattern = "invalid_pattern",
        InvalidRegex = "invalid_regex",
        RegexTooLarge = "regex_too_large",
        InvalidCursor = "invalid_cursor",
        CursorMismatch = "cursor_mismatch",
        UnknownField = "unknown_field",
        UnknownFacet = "unknown_facet",
        UnmappedColumns = "unmapped_columns",
    }
}

/// An invalid parameter, or an invalid member of a filter (`filter.tlds[1]`).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {what}")]
pub struct BadParameter {
    pub name: Cow<'static, str>,
    /// Text that follows the name and a colon.
    pub what: String,
    pub code: ParameterCode,
}

impl BadParameter {
    pub fn new(name: impl Into<Cow<'static, str>>, what: impl Display) -> BadParameter {
        BadParameter::coded(ParameterCode::InvalidValue, name, what)
    }

    /// Returns an error with a more specific code.
    pub fn coded(
        code: ParameterCode,
        name: impl Into<Cow<'static, str>>,
        what: impl Display,
    ) -> BadParameter {
        BadParameter { name: name.into(), what: what.to_string(), code }
    }

    /// Returns the error for a parameter or member that is given more than once.
    pub fn repeated(name: impl Into<Cow<'static, str>>) -> BadParameter {
        BadParameter::coded(ParameterCode::Repeated, name, "is given more than once")
    }
}
