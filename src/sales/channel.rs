//! Channels: auctions, which investors visit, and retail. A name sells for several times as much in retail, so sales
//! of the two are never compared.

use serde::Serialize;
use utoipa::ToSchema;

use crate::vocab::named::{named_enum, parse_named};

named_enum! {
    /// Where a name was sold: `unknown` if the file does not say it and the venue is not a known one.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, ToSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum Channel {
        Auction = "auction",
        Retail = "retail",
        Unknown = "unknown",
    }
}
parse_named!(Channel);

/// Venues by the start of their names in lower case, only `a` to `z` and digits.
const VENUES: [(&str, Channel); 23] = [
    ("dropcatch", Channel::Auction),
    ("dynadot", Channel::Auction),
    ("gname", Channel::Auction),
    ("godaddy", Channel::Auction),
    ("namecheap", Channel::Auction),
    ("namejet", Channel::Auction),
    ("namesilo", Channel::Auction),
    ("parkio", Channel::Auction),
    ("pool", Channel::Auction),
    ("sav", Channel::Auction),
    ("snapnames", Channel::Auction),
    ("afternic", Channel::Retail),
    ("atom", Channel::Retail),
    ("brandbucket", Channel::Retail),
    ("buydomains", Channel::Retail),
    ("dan", Channel::Retail),
    ("efty", Channel::Retail),
    ("hugedomains", Channel::Retail),
    ("private", Channel::Retail),
    ("sedo", Channel::Retail),
    ("spaceship", Channel::Retail),
    ("squadhelp", Channel::Retail),
    ("uniregistry", Channel::Retail),
];
/// Words after the name of a venue that do not make it another one.
const SUFFIXES: [&str; 8] = ["", "com", "io", "auction", "auctions", "comauctions", "sale", "inc"];

impl Channel {
    /// Returns the channel of a venue, as a file names it.
    pub fn of_venue(venue: &str) -> Channel {
        let plain: String = venue.chars().filter(char::is_ascii_alphanumeric).collect();
        let plain = plain.to_ascii_lowercase();
        let is_it = |name: &str| plain.strip_prefix(name).is_some_and(|it| SUFFIXES.contains(&it));
        let found = VENUES.iter().find(|(name, _)| is_it(name));
        found.map_or(Channel::Unknown, |(_, channel)| *channel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn venues_are_known_by_their_names_in_any_spelling() {
        for (venue, channel) in [
            ("NameJet", Channel::Auction),
            ("GoDaddy Auctions", Channel::Auction),
            ("park.io", Channel::Auction),
            ("Dan.com", Channel::Retail),
            ("Private Sale", Channel::Retail),
            ("Sedo", Channel::Retail),
            ("Danube", Channel::Unknown),
            ("", Channel::Unknown),
            ("a friend", Channel::Unknown),
        ] {
            assert_eq!(Channel::of_venue(venue), channel, "{venue}");
        }
    }

    #[test]
    fn the_document_names_every_venue() {
        let document = include_str!("../../data/docs/facts.md").to_lowercase().replace('.', "");
        for (venue, channel) in VENUES {
            assert!(document.contains(venue), "{venue}");
            assert_eq!(Channel::of_venue(venue), channel, "{venue}");
        }
    }
}
