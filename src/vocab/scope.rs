//! Scopes of API keys (`data/docs/api.md`, Keys).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::named::{named_enum, parse_named};

named_enum! {
    /// A part of the API that a key may be limited to.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Scope {
        Read = "read",
        Export = "export",
        Watchlist = "watchlist",
        Alerts = "alerts",
        Portfolio = "portfolio",
        Feeds = "feeds",
        Mcp = "mcp",
    }
}

parse_named!(Scope);

impl Scope {
    /// Returns the parts of the API that the scope covers, in a few words.
    pub fn description(self) -> &'static str {
        match self {
            Scope::Read => "drops, search, dossiers, appraisals",
            Scope::Export => "CSV exports",
            Scope::Watchlist => "watchlist, hidden names, saved searches, votes",
            Scope::Alerts => "alert rules and their messages",
            Scope::Portfolio => "backorder claims",
            Scope::Feeds => {
                "feeds and calendars; their addresses show the names of your watchlist, saved searches and rules, \
                 and your notes"
            }
            Scope::Mcp => "tools for agents",
        }
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A non-empty set of scopes. Stored as a byte: append only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct Scopes(u8);

impl Scopes {
    /// All scopes, including those of later versions.
    pub const ALL: Scopes = Scopes(u8::MAX);

    /// Returns the set of these scopes; `None` without any. The set of all existing scopes is
    /// [`Scopes::ALL`].
    pub fn of(scopes: impl IntoIterator<Item = Scope>) -> Option<Scopes> {
        let bits = scopes.into_iter().fold(0, |bits, scope| bits | scope.bit());
        let all = Scope::ALL.into_iter().fold(0, |bits, scope| bits | scope.bit());
        match bits {
            0 => None,
            bits if bits == all => Some(Scopes::ALL),
            bits => Some(Scopes(bits)),
        }
    }

    pub fn holds(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// Returns the scopes in their order.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.holds(*scope))
    }
}

/// Writes `read, export`, or `all`.
impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Scopes::ALL {
            return f.write_str("all");
        }
        let names: Vec<_> = self.iter().map(Scope::as_str).collect();
        f.write_str(&names.join(", "))
    }
}

impl TryFrom<u8> for Scopes {
    type Error = &'static str;

    fn try_from(bits: u8) -> Result<Scopes, &'static str> {
        if bits == 0 { Err("a key has a scope") } else { Ok(Scopes(bits)) }
    }
}

impl From<Scopes> for u8 {
    fn from(scopes: Scopes) -> u8 {
        scopes.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_contain_their_members() {
        let some = Scopes::of([Scope::Mcp, Scope::Read]).expect("two");
        assert!(some.holds(Scope::Read) && some.holds(Scope::Mcp) && !some.holds(Scope::Export));
        assert_eq!(some.to_string(), "read, mcp");
        assert_eq!(Scopes::of(Scope::ALL), Some(Scopes::ALL));
        assert_eq!((Scopes::of([]), Scopes::ALL.to_string()), (None, "all".to_owned()));
        assert_eq!(Scopes::try_from(u8::from(some)), Ok(some));
        assert!(Scopes::try_from(0).is_err());
    }
}
