//! The popularity lists as a source of facts: a rank by list, of which the index has the best alone.

use std::iter::Peekable;

use crate::corpus::ranked::{RankedEntry, RankedList};
use crate::facts::Value;
use crate::facts::published::{FactsFolder, KeepError};
use crate::facts::store::{Edition, Licence, SourceMeta, SourceWriter, StoreError, StoredColumn};
use crate::vocab::fact::{Direction, FactType, KeyKind, Unit};

const SOURCE: &str = "popularity";

/// Keeps the ranks of these lists, unless the edition in use is made of them.
///
/// # Errors
/// The edition cannot be written.
pub fn keep(folder: &FactsFolder, lists: &[RankedList]) -> Result<(), KeepError> {
    let Some(as_of) = lists.iter().map(|list| list.meta().edition.day).max() else {
        return Ok(());
    };
    let named = |list: &RankedList| {
        let edition = &list.meta().edition;
        let id = edition.id.as_ref().map(|id| format!(" {}", id.as_str())).unwrap_or_default();
        format!("{}{id} of {}", edition.list.title(), edition.day)
    };
    let attribution =
        format!("Popularity: {}", lists.iter().map(named).collect::<Vec<_>>().join(", "));
    let in_use = Edition::open(&folder.edition(SOURCE)).ok();
    if in_use.is_some_and(|it| it.meta().attribution.as_ref() == Some(&attribution)) {
        return Ok(());
    }
    let column = |list: &RankedList| StoredColumn {
        unit: Some(Unit::Rank),
        direction: Some(Direction::Less),
        ..StoredColumn::new(list.meta().edition.list.as_str(), FactType::Int)
    };
    let meta = SourceMeta {
        id: SOURCE.to_owned(),
        title: "Popularity lists".to_owned(),
        key: KeyKind::Domain,
        as_of,
        licence: Licence::Open,
        attribution: Some(attribution),
        columns: lists.iter().map(column).collect(),
    };
    let mut writer = SourceWriter::new(Vec::new(), meta)?;
    let mut rest: Vec<Peekable<_>> =
        lists.iter().map(|list| list.entries_from(b"").peekable()).collect();
    while let Some(name) = rest.iter_mut().filter_map(|it| Some(it.peek()?.name)).min() {
        let rank = |entry: RankedEntry<'_>| Value::Int(entry.rank.get().into());
        let ranks = rest.iter_mut().map(|it| it.next_if(|entry| entry.name == name).map(rank));
        let ranks: Vec<_> = ranks.collect();
        let days = lists.iter().zip(&ranks).filter(|(_, rank)| rank.is_some());
        let oldest = days.map(|(list, _)| list.meta().edition.day).min();
        let name = str::from_utf8(name).map_err(|_| StoreError::Damaged("a ranked name"))?;
        writer.push(name, oldest, &ranks)?;
    }
    folder.put(SOURCE, &writer.finish()?)
}
