//! Lists of names by category: a plain list, which is named after its category, or an archive of such lists.

use std::io::Read;

use tar::Archive;

use super::PublishedError;
use super::lines::{BadText, Line, Reader};
use crate::vocab::name::{DomainName, NameError};

/// A category: its list, and the word that is the value of the fact.
pub(super) type Category = (&'static str, &'static str);

/// Lists of UT1, the most severe category first: a name on several lists is of the first one. Others are not read.
pub(super) const UT1: &[Category] = &[
    ("malware", "malware"),
    ("phishing", "phishing"),
    ("cryptojacking", "cryptojacking"),
    ("stalkerware", "stalkerware"),
    ("ddos", "ddos"),
    ("hacking", "hacking"),
    ("warez", "piracy"),
    ("drogue", "drugs"),
    ("dangerous_material", "dangerous"),
    ("agressif", "aggressive"),
    ("sect", "sect"),
    ("adult", "adult"),
    ("mixed_adult", "adult"),
    ("gambling", "gambling"),
    ("dating", "dating"),
    ("bank", "bank"),
];

/// Lists of HaGeZi, in the same order. `tif` are its threat intelligence feeds.
pub(super) const HAGEZI: &[Category] = &[
    ("tif", "threat"),
    ("fake", "scam"),
    ("anti.piracy", "piracy"),
    ("nsfw", "adult"),
    ("gambling", "gambling"),
];

/// Reads a plain list with the name of its file, or an archive of files `CATEGORY/domains`.
pub(super) fn read(
    reader: &mut Reader,
    categories: &[Category],
    file: &str,
    head: &[u8],
    input: impl Read,
) -> Result<(), PublishedError> {
    let at = |name: &str| categories.iter().position(|(list, _)| *list == name);
    if head.get(257..262) != Some(b"ustar") {
        let category = at(stem(file)).ok_or_else(|| PublishedError::Category(file.to_owned()))?;
        return reader.file(file, input, None, u64::MAX, |line| listed(line, category));
    }
    let (mut archive, mut is_known) = (Archive::new(input), false);
    for entry in archive.entries().map_err(PublishedError::Unpack)? {
        let entry = entry.map_err(PublishedError::Unpack)?;
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let folder = path.strip_suffix("/domains").and_then(|folder| folder.rsplit('/').next());
        let Some(category) = folder.and_then(at) else { continue };
        // Categories that were renamed are links to the new ones.
        if entry.header().entry_type().is_file() {
            is_known = true;
            reader.file(&path, entry, None, u64::MAX, |line| listed(line, category))?;
        }
    }
    if is_known { Ok(()) } else { Err(PublishedError::Category(file.to_owned())) }
}

/// Returns the category that a file is named after: `gambling` of `gambling.mini-onlydomains.txt`.
fn stem(file: &str) -> &str {
    let stem = file.strip_suffix(".gz").unwrap_or(file);
    let stem = stem.strip_suffix(".txt").unwrap_or(stem);
    let stem = stem.strip_suffix("-onlydomains").unwrap_or(stem);
    stem.strip_suffix(".mini").or_else(|| stem.strip_suffix(".medium")).unwrap_or(stem)
}

/// Parses `brightmesa.com`, `*.brightmesa.com` or `||brightmesa.com^`. A list of hosts below a name says nothing
/// about the name, except `www`.
fn listed(line: &str, category: usize) -> Result<Line, BadText> {
    let text = line.split('#').next().unwrap_or_default().trim();
    if text.is_empty() || text.starts_with(['!', '[']) {
        return Ok(Line::Nothing);
    }
    let text = text.strip_prefix("||").map_or(text, |rule| rule.strip_suffix('^').unwrap_or(rule));
    let host = text.strip_prefix("*.").unwrap_or(text);
    let name = match (DomainName::parse(host), host.strip_prefix("www.")) {
        (Err(NameError::BelowRegistrable), Some(host)) => DomainName::parse(host),
        (name, _) => name,
    };
    Line::of(name, [category as u32, 0, 0])
}
