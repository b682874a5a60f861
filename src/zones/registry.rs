//! Reads a registry's list of all its names like a zone file.

use std::path::Path;

use super::error::ZoneError;
use super::snapshot::{Names, Owner};
use crate::feeds::{Feed, Row};
use crate::vocab::day::Day;

/// Up to one row in this many may be bad.
const BAD_SHARE: u64 = 10;

/// The names of a list.
pub struct Registry {
    feed: Feed,
    /// The suffix of the first name. A registry has one list for each suffix.
    apex: String,
    /// The day of the list, which replaces a serial number.
    day: Day,
    owner: Vec<u8>,
    rows: u64,
    bad: u64,
}

impl Registry {
    /// Opens the list of a day.
    ///
    /// # Errors
    /// The list cannot be read, or has no names.
    pub fn open(path: &Path, day: Day) -> Result<Registry, ZoneError> {
        let apex = apex(path)?;
        let (feed, owner) = (Feed::open_registry(path)?, Vec::new());
        Ok(Registry { feed, apex, day, owner, rows: 0, bad: 0 })
    }
}

/// Returns the suffix of the names in a list.
///
/// # Errors
/// The list cannot be read, or has no names.
pub fn apex(path: &Path) -> Result<String, ZoneError> {
    for row in Feed::open_registry(path)? {
        if let Row::Seen(seen) = row? {
            return Ok(seen.name.tld().to_owned());
        }
    }
    Err(ZoneError::NoNames)
}

impl Names for Registry {
    fn apex(&self) -> &str {
        &self.apex
    }

    fn next(&mut self) -> Result<Option<Owner<'_>>, ZoneError> {
        for row in self.feed.by_ref() {
            self.rows += 1;
            match row? {
                Row::Seen(seen) if seen.name.tld() == self.apex => {
                    self.owner.clear();
                    self.owner.extend_from_slice(seen.name.label().as_bytes());
                    self.owner.push(b'.');
                    // The list has no name servers.
                    return Ok(Some(Owner { name: &self.owner, class: None }));
                }
                _ => self.bad += 1,
            }
        }
        Ok(None)
    }

    fn serial(&self) -> Result<u32, ZoneError> {
        if self.bad * BAD_SHARE > self.rows {
            return Err(ZoneError::BadRows { bad: self.bad, rows: self.rows });
        }
        Ok(self.day.raw().into())
    }
}
