//! Compares responses of the index with those of a scan, because timings of wrong responses are
//! worthless.

use std::collections::HashSet;
use std::fmt::{Debug, Display};

use anyhow::ensure;
use dropdex::index::Index;
use dropdex::vocab::limits::SEARCH_TOTAL_MAX;
use dropdex::vocab::name::DomainName;
use dropdex::vocab::stage::Stage;
use rayon::prelude::*;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::answer::{Ask, answer};
use crate::queries::{List, Query};
use crate::scan::Scan;

/// The part of a search page that a scan can recompute.
#[derive(Debug, PartialEq, Eq, Deserialize)]
struct Found {
    total: usize,
    capped: bool,
    results: Vec<FoundRow>,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct FoundRow {
    domain: String,
    tld: String,
    length: u8,
    current_status: String,
    latest_drop: Option<LatestDrop>,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
struct LatestDrop {
    date: String,
    dqs: u8,
}

/// The part of a page of drops that a scan can recompute.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    available_tlds: Vec<String>,
    drops: Vec<ListedRow>,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
struct ListedRow {
    name: String,
    tld: String,
    length: u8,
    dqs: u8,
}

/// The part of a dossier that follows from the lists.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Known {
    length: u8,
    current_status: String,
    drop_predicted_at: Option<String>,
    latest_drop: Option<LatestDrop>,
}

/// Matches among which completions are sought; more than the suffixes of eight labels.
const COMPLETED_OF: u32 = 20_000;

/// The names of a page, in order.
pub type Names = Vec<String>;

/// Compares responses of the index with a scan, row by row, and returns the pages of the scan.
///
/// # Errors
///
/// The first query whose responses differ, with both.
pub fn lists(index: &Index, scan: Scan<'_>, queries: &[Query]) -> anyhow::Result<Vec<Names>> {
    let pages = queries.par_iter().map(|query| {
        let ask = query.ask()?;
        Ok(match query.list {
            List::Suggest => return Ok(completed(scan, query)),
            List::Search => {
                let page = same(index, scan, &ask, query, found(scan, query))?;
                page.results.into_iter().map(|row| row.domain).collect()
            }
            List::Drops => {
                let page = same(index, scan, &ask, query, listed(scan, query))?;
                page.drops.into_iter().map(|row| row.name).collect()
            }
        })
    });
    pages.collect()
}

/// Returns the names that complete a text: two with the label, then the best one of each other label. The
/// index may add names with an edit, if these are few.
fn completed(scan: Scan<'_>, query: &Query) -> Names {
    let text = query.q.as_deref().unwrap_or_default();
    let all = found(scan, &Query { limit: COMPLETED_OF, ..query.clone() });
    let mut labels = HashSet::new();
    let mut whole = 0;
    let mut names: Names = all.results.into_iter().map(|row| row.domain).collect();
    names.retain(|name| {
        let label = name.split('.').next().unwrap_or_default();
        whole += u32::from(label == text);
        if label == text {
            whole <= 2
        } else {
            text.contains('.') || labels.insert(label.to_owned())
        }
    });
    names.truncate(query.limit as usize);
    names
}

/// Compares dossiers with the content of the lists.
///
/// # Errors
///
/// The first name whose dossier differs, with both.
pub fn dossiers(index: &Index, scan: Scan<'_>, names: &[DomainName]) -> anyhow::Result<()> {
    for name in names {
        let known = scan.place(name).map(|at| known(scan, at));
        same(index, scan, &Ask::Dossier(name.clone()), name, known)?;
    }
    Ok(())
}

/// Returns `known`, the response of a scan, if the index gives the same one to `ask`; `what` names it.
fn same<T>(
    index: &Index,
    scan: Scan<'_>,
    ask: &Ask,
    what: &impl Display,
    known: T,
) -> anyhow::Result<T>
where
    T: DeserializeOwned + PartialEq + Debug,
{
    let mut body = Vec::new();
    answer(index, ask, scan.as_of, &mut body)?;
    let returned: T = serde_json::from_slice(&body)?;
    ensure!(returned == known, "{what}: the index returns\n{returned:?}\na scan finds\n{known:?}");
    Ok(known)
}

fn found(scan: Scan<'_>, query: &Query) -> Found {
    let (market, answer) = (scan.market, scan.answer(query));
    let row = |at: usize| {
        let row = market.row(at);
        let latest_drop = market
            .dropped(row)
            .map(|drop| LatestDrop { date: drop.date.to_string(), dqs: row.dqs });
        FoundRow {
            domain: market.text(at).to_owned(),
            tld: market.tld(at).to_owned(),
            length: row.length,
            current_status: scan.status(row).to_owned(),
            latest_drop,
        }
    };
    let most = SEARCH_TOTAL_MAX as usize;
    Found {
        total: answer.total.min(most),
        capped: answer.total > most,
        results: answer.page.into_iter().map(row).collect(),
    }
}

fn listed(scan: Scan<'_>, query: &Query) -> Listed {
    let (market, answer) = (scan.market, scan.answer(query));
    let row = |at: usize| ListedRow {
        name: market.text(at).to_owned(),
        tld: market.tld(at).to_owned(),
        length: market.row(at).length,
        dqs: market.row(at).dqs,
    };
    let tlds = market.tlds().iter().zip(&answer.tlds);
    Listed {
        available_tlds: tlds.filter(|(_, has)| **has).map(|(tld, _)| tld.clone()).collect(),
        drops: answer.page.into_iter().map(row).collect(),
    }
}

fn known(scan: Scan<'_>, at: usize) -> Known {
    let row = scan.market.row(at);
    let drop = scan.market.dropped(row);
    let stage = drop.and_then(|drop| scan.stage(&drop));
    let active = drop.filter(|_| stage.is_some_and(|stage| stage != Stage::Released));
    let held = matches!(stage, Some(Stage::Redemption | Stage::PendingDelete));
    Known {
        length: row.length,
        current_status: scan.status(row).to_owned(),
        drop_predicted_at: drop.filter(|_| held).map(|drop| drop.release.to_string()),
        latest_drop: active.map(|drop| LatestDrop { date: drop.date.to_string(), dqs: row.dqs }),
    }
}
