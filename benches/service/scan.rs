//! Answers by a plain scan over all names, written from decisions.md §2 and §3, and the
//! comparison of the index with them: what is fast and wrong is not worth a figure.

use std::cmp::Reverse;

use anyhow::ensure;
use dropdex::index::filter::Moment;
use dropdex::index::{Index, Status};
use dropdex::vocab::day::Day;
use dropdex::vocab::limits::SEARCH_TOTAL_MAX;
use dropdex::vocab::name::DomainName;
use dropdex::vocab::stage::Stage;
use rayon::prelude::*;

use crate::market::{Market, Row};
use crate::queries::{List, Query, View};

/// What a query should find.
pub struct Answer {
    /// Matches in all.
    pub total: usize,
    /// The places of the rows of the page, in order.
    pub page: Vec<usize>,
}

/// One row as answers show it, whatever they are made of.
#[derive(Debug, PartialEq, Eq)]
struct Shown {
    name: String,
    tld: String,
    length: u8,
    status: Status,
    drop: Option<(Day, u8)>,
}

/// Scans a market at one moment.
#[derive(Clone, Copy)]
pub struct Scan<'a> {
    pub market: &'a Market,
    pub moment: Moment,
}

impl<'a> Scan<'a> {
    /// The answer to `query`.
    pub fn answer(&self, query: &Query) -> Answer {
        let mut found = match query.list {
            List::Search => self.starting_with(query.q.as_deref().unwrap_or_default()),
            List::Drops => (0..self.market.len()).collect(),
        };
        found.retain(|&at| self.passes(at, query));
        let equals = |at| query.list == List::Search && self.equals(at, query);
        found.sort_by_cached_key(|&at| {
            let row = self.market.row(at);
            (!equals(at), Reverse(row.dqs), row.length, at)
        });
        let total = found.len();
        let page = found.into_iter().skip(query.offset as usize).take(query.limit as usize);
        Answer { total, page: page.collect() }
    }

    /// The canonical names on the page.
    pub fn names(&self, answer: &Answer) -> Vec<&'a str> {
        answer.page.iter().map(|&at| self.market.text(at)).collect()
    }

    fn starting_with(&self, prefix: &str) -> Vec<usize> {
        let market = self.market;
        let mut found: Vec<usize> =
            (0..market.len()).filter(|&at| market.text(at).starts_with(prefix)).collect();
        let aliases = market.unicode_forms().filter(|(_, form)| form.starts_with(prefix));
        found.extend(aliases.map(|(at, _)| at));
        found.sort_unstable();
        found.dedup();
        found
    }

    fn passes(&self, at: usize, query: &Query) -> bool {
        let (market, row) = (self.market, self.market.row(at));
        let in_list = match query.list {
            List::Search if query.stage.is_none() && query.view != Some(View::Today) => true,
            _ => self.is_listed(&row, query),
        };
        in_list
            && (query.tlds.is_empty() || query.tlds.iter().any(|tld| tld == market.tld(at)))
            && query.min_dqs.is_none_or(|points| row.dqs >= points)
            && query.max_len.is_none_or(|chars| row.length <= chars)
            && (query.list == List::Search || self.contains(at, query))
    }

    fn contains(&self, at: usize, query: &Query) -> bool {
        query.q.as_deref().is_none_or(|part| {
            let unicode = self.market.unicode(at);
            self.market.text(at).contains(part) || unicode.is_some_and(|form| form.contains(part))
        })
    }

    fn is_listed(&self, row: &Row, query: &Query) -> bool {
        let Moment { today, catch_days } = self.moment;
        let Some(drop) = row.drop else { return false };
        let Some(stage) = drop.stage(today, catch_days) else { return false };
        match (query.stage, query.view) {
            (Some(asked), _) => stage == asked,
            (None, Some(View::Today)) => drop.date == today,
            (None, Some(View::All)) => true,
            (None, None) => stage != Stage::Released,
        }
    }

    /// The TLDs of the view or stage of `query`, whatever its other filters.
    fn tlds_listed(&self, query: &Query) -> Vec<&str> {
        let mut listed = vec![false; self.market.tlds().len()];
        for row in self.market.rows() {
            listed[usize::from(row.tld)] |= self.is_listed(row, query);
        }
        let tlds = self.market.tlds().iter().zip(listed);
        tlds.filter(|(_, listed)| *listed).map(|(tld, _)| tld.as_str()).collect()
    }

    fn equals(&self, at: usize, query: &Query) -> bool {
        let Some(q) = query.q.as_deref() else { return false };
        let equal =
            |name: &str| name == q || name.split_once('.').is_some_and(|(label, _)| label == q);
        equal(self.market.text(at)) || self.market.unicode(at).is_some_and(equal)
    }

    fn shown(&self, at: usize) -> Shown {
        let (market, row) = (self.market, self.market.row(at));
        Shown {
            name: market.text(at).to_owned(),
            tld: market.tld(at).to_owned(),
            length: row.length,
            status: self.status(&row),
            drop: row.drop.map(|drop| (drop.date, row.dqs)),
        }
    }

    fn status(&self, row: &Row) -> Status {
        let Moment { today, catch_days } = self.moment;
        match row.drop.map(|drop| drop.stage(today, catch_days)) {
            None if row.registered => Status::Registered,
            None => Status::Unknown,
            Some(None) => Status::Registered,
            Some(Some(Stage::Redemption)) => Status::Redemption,
            Some(Some(Stage::PendingDelete)) => Status::PendingDelete,
            Some(Some(Stage::Catchable | Stage::Released)) => Status::Available,
        }
    }

    fn place(&self, name: &DomainName) -> Option<usize> {
        let (mut low, mut high) = (0, self.market.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.market.text(middle) < name.as_str() { low = middle + 1 } else { high = middle }
        }
        (low < self.market.len() && self.market.text(low) == name.as_str()).then_some(low)
    }
}

/// Compares what the index answers with a scan, row by row.
///
/// # Errors
/// The first query whose answers differ, with both.
pub fn check_lists(index: &Index, scan: Scan<'_>, queries: &[Query]) -> anyhow::Result<()> {
    queries.par_iter().try_for_each(|query| match query.list {
        List::Search => check_search(index, scan, query),
        List::Drops => check_drops(index, scan, query),
    })
}

fn check_search(index: &Index, scan: Scan<'_>, query: &Query) -> anyhow::Result<()> {
    let page = index.search(&query.search_filter()?, scan.moment);
    let answer = scan.answer(query);
    let rows: Vec<Shown> = page
        .rows
        .into_iter()
        .map(|row| Shown {
            name: row.domain,
            tld: row.tld,
            length: row.length,
            status: row.current_status,
            drop: row.latest_drop.map(|drop| (drop.date, drop.dqs.points())),
        })
        .collect();
    let expected: Vec<Shown> = answer.page.iter().map(|&at| scan.shown(at)).collect();
    ensure!(rows == expected, "{query} gives\n{rows:?}\na scan gives\n{expected:?}");
    let total = answer.total.min(SEARCH_TOTAL_MAX as usize);
    let capped = answer.total > SEARCH_TOTAL_MAX as usize;
    ensure!(
        (page.total as usize, page.capped) == (total, capped),
        "{query} counts {} (capped: {}), a scan counts {}",
        page.total,
        page.capped,
        answer.total
    );
    Ok(())
}

fn check_drops(index: &Index, scan: Scan<'_>, query: &Query) -> anyhow::Result<()> {
    let page = index.drops(&query.drop_filter()?, scan.moment)?;
    let tlds = scan.tlds_listed(query);
    ensure!(
        page.available_tlds == tlds,
        "{query} has the TLDs\n{:?}\na scan has\n{tlds:?}",
        page.available_tlds
    );
    let answer = scan.answer(query);
    let rows: Vec<(String, String, u8, u8)> = page
        .rows
        .into_iter()
        .map(|row| (row.name.to_string(), row.tld, row.length, row.dqs.points()))
        .collect();
    let expected: Vec<(String, String, u8, u8)> = answer
        .page
        .iter()
        .map(|&at| {
            let row = scan.market.row(at);
            (scan.market.text(at).to_owned(), scan.market.tld(at).to_owned(), row.length, row.dqs)
        })
        .collect();
    ensure!(rows == expected, "{query} gives\n{rows:?}\na scan gives\n{expected:?}");
    Ok(())
}

/// Compares dossiers with what lists said.
///
/// # Errors
/// The first name whose dossier is another, with both.
pub fn check_dossiers(index: &Index, scan: Scan<'_>, names: &[DomainName]) -> anyhow::Result<()> {
    let Moment { today, catch_days } = scan.moment;
    for name in names {
        let told = index.dossier(name, scan.moment).map(|dossier| {
            let drop = dossier.latest_drop.map(|drop| (drop.date, drop.dqs.points()));
            (dossier.length, dossier.status, dossier.drop_predicted_at, drop)
        });
        let known = scan.place(name).map(|at| {
            let row = scan.market.row(at);
            let stage = row.drop.and_then(|drop| drop.stage(today, catch_days));
            let active = row.drop.filter(|_| stage.is_some_and(|stage| stage != Stage::Released));
            let held = matches!(stage, Some(Stage::Redemption | Stage::PendingDelete));
            let predicted = row.drop.filter(|_| held).map(|drop| drop.release);
            let drop = active.map(|drop| (drop.date, row.dqs));
            (row.length, scan.status(&row), predicted, drop)
        });
        ensure!(told == known, "the dossier of {name} says\n{told:?}\nlists say\n{known:?}");
    }
    Ok(())
}
