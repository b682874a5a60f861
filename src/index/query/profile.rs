//! Data of names for pages, beyond that of the API: lifecycle in any stage, reasons for the score,
//! and the same label in other TLDs.

use crate::columns::drop_history::EarlierDrop;
use crate::columns::names::NameBuf;
use crate::columns::typos::Popular;
use crate::filter::AsOf;
use crate::query::appraise::Standing;
use crate::query::index::{Index, NameRow, RowBuffers, with_row_buffers};
use crate::query::rows::{Lifecycle, PopularityFact, Status};
use crate::scorer::{Features, Scored, Scorer, Signals, StoredScore};
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::name::DomainName;

/// Page data of a known name.
#[derive(Debug)]
pub struct Profile {
    pub status: Status,
    pub dqs: Dqs,
    pub explanation: String,
    pub signals: Signals<'static>,
    /// Latest drop; `None` for a name that never dropped.
    pub drop: Option<Lifecycle>,
    /// Earlier drops, newest first.
    pub earlier: Vec<EarlierDrop>,
    /// Ranks on popularity lists.
    pub popularity: Vec<PopularityFact>,
    /// The popular name whose label this one misspells.
    pub typo_of: Option<Popular>,
}

/// The same label in another TLD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sibling {
    pub name: String,
    pub dqs: Dqs,
    pub status: Status,
    /// The latest drop; `None` for a name that never dropped.
    pub drop: Option<Lifecycle>,
}

/// The same label in all other TLDs.
#[derive(Debug)]
pub struct Siblings {
    /// The names in the TLDs that matter most to buyers.
    pub best: Vec<Sibling>,
    pub total: u32,
    /// Names that are registered, including those that are leaving.
    pub registered: u32,
    /// Names in redemption or pending delete.
    pub leaving: u32,
}

impl Index {
    /// Returns the profile of `name`; `None` for an unknown name. A name that never dropped is
    /// scored, which loads the dictionaries on the first call of a process.
    pub fn profile(&self, name: &DomainName, as_of: AsOf) -> Option<Profile> {
        let (layer, ordinal, row) = self.find_row(name)?;
        let Standing { spread, .. } = self.standing(name);
        let (label, tld) = (name.label(), name.tld());
        let Scored { dqs, signals, explanation, .. } = with_row_buffers(|buffers| {
            let RowBuffers { record, scratch, .. } = buffers;
            let known = match row.drop {
                Some(drop) => layer.known(drop.doc, row.tld, record),
                None => StoredScore { label, tld, spread, features: Features::NONE },
            };
            Scorer::shared().restore_owned(known, scratch)
        });
        let drop = row.drop.map(|drop| layer.lifecycle(row.tld, &drop, as_of));
        let earlier = layer.drop_history.before_latest(ordinal).collect();
        let status = layer.status(&row, as_of);
        let popularity = self.popularity(layer, &row);
        let typo_of = layer.typos.of_label(label, signals.kind).cloned();
        Some(Profile { status, dqs, explanation, signals, drop, earlier, popularity, typo_of })
    }

    /// Returns the latest drop of a name, if it has one, and its earlier drops, newest first.
    pub fn history(&self, name: &DomainName, as_of: AsOf) -> (Option<Lifecycle>, Vec<EarlierDrop>) {
        let Some((layer, ordinal, row)) = self.find_row(name) else { return (None, Vec::new()) };
        let drop = row.drop.map(|drop| layer.lifecycle(row.tld, &drop, as_of));
        (drop, layer.drop_history.before_latest(ordinal).collect())
    }

    /// Returns the day of the newest drop after which a name was registered again: what was known before it is about
    /// an earlier registration.
    pub fn last_returned(&self, name: &DomainName) -> Option<Day> {
        let (layer, ordinal, row) = self.find_row(name)?;
        let latest = row.drop.filter(|drop| drop.registered_again).map(|drop| drop.date);
        latest.or_else(|| layer.drop_history.before_latest(ordinal).next().map(|it| it.date))
    }

    /// Returns the names with the label of `name` in other TLDs, of which `best` has up to `limit`.
    pub fn siblings(&self, name: &DomainName, as_of: AsOf, limit: usize) -> Siblings {
        let layer = self.layer_of(name.label());
        let range = layer.names.label_range(name.label());
        let mut read = NameBuf::default();
        let mut found = Vec::with_capacity(range.len());
        for ordinal in range {
            layer.names.read(ordinal, &mut read);
            if read.as_str() != name.as_str() {
                let place = tld_place(&read.as_str()[name.label().len() + 1..]);
                found.push((place, layer.row(ordinal, read.tld()), ordinal));
            }
        }
        let has = |status: &[Status]| {
            let rows = found.iter().map(|(_, row, _)| layer.status(row, as_of));
            rows.filter(|it| status.contains(it)).count() as u32
        };
        let leaving = has(&[Status::Redemption, Status::PendingDelete]);
        let (total, registered) = (found.len() as u32, leaving + has(&[Status::Registered]));
        found.sort_by_key(|(place, row, ordinal)| (*place, std::cmp::Reverse(row.dqs), *ordinal));
        let sibling = |(_, row, ordinal): (u8, NameRow, u32)| {
            let mut read = NameBuf::default();
            layer.names.read(ordinal, &mut read);
            Sibling {
                name: read.as_str().to_owned(),
                dqs: row.dqs,
                status: layer.status(&row, as_of),
                drop: row.drop.map(|drop| layer.lifecycle(row.tld, &drop, as_of)),
            }
        };
        let best = found.into_iter().take(limit).map(sibling).collect();
        Siblings { best, total, registered, leaving }
    }
}

/// Returns the rank of a TLD among the TLDs of one label: com, net, org, countries, others.
fn tld_place(tld: &str) -> u8 {
    match tld {
        "com" => 0,
        "net" => 1,
        "org" => 2,
        country if country.rsplit('.').next().is_some_and(|last| last.len() == 2) => 3,
        _ => 4,
    }
}
