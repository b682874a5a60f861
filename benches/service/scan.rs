//! Answers by a plain scan over all names, written from data/docs/api.md: what the index's are
//! compared with. Takes no memory that grows with the corpus.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use dropdex::index::filter::AsOf;
use dropdex::vocab::name::DomainName;
use dropdex::vocab::stage::Stage;
use regex::Regex;

use crate::market::{Column, Dropped, Market, Row};
use crate::queries::{List, Query, SortBy, View};

/// Expected result of a query.
pub struct Answer {
    /// Matches in all.
    pub total: usize,
    /// The places of the rows of the page, in order.
    pub page: Vec<usize>,
    /// For a query for drops: the TLDs that occur in the view or stage, regardless of the other
    /// filters.
    pub tlds: Vec<bool>,
}

/// The order of answers: whole matches first, then by the key of the sort, the score, the unrounded
/// score of drops, length and name.
type Rank = (bool, i64, Reverse<(u8, u16)>, u8, usize);

/// Scans a market at one moment.
#[derive(Clone, Copy)]
pub struct Scan<'a> {
    pub market: &'a Market,
    pub as_of: AsOf,
}

impl<'a> Scan<'a> {
    /// The answer to `query`.
    pub fn answer(&self, query: &Query) -> Answer {
        let wanted = (query.offset + query.limit) as usize;
        let mut tlds = vec![false; self.market.tlds().len()];
        let asked: Vec<bool> =
            self.market.tlds().iter().map(|tld| query.tlds.contains(tld)).collect();
        let regex = query.text.as_ref().filter(|text| text.parameter != "like");
        let regex = regex.map(|text| Regex::new(&text.regex).expect("made by the bench"));
        let of_list =
            query.list == List::Drops || query.stage.is_some() || query.view == Some(View::Today);
        // The worst of the best on top.
        let mut best: BinaryHeap<Rank> = BinaryHeap::with_capacity(wanted + 1);
        let mut total = 0;
        for (at, row) in self.market.rows().iter().enumerate() {
            let tld = usize::from(row.tld);
            let listed = of_list && self.is_listed(row, query);
            tlds[tld] |= listed;
            let passes = listed == of_list
                && (query.tlds.is_empty() || asked[tld])
                && query.min_dqs.is_none_or(|points| row.dqs >= points)
                && query.max_len.is_none_or(|chars| row.length <= chars)
                && self.has_text(at, query)
                && self.meets(at, query)
                && regex.as_ref().is_none_or(|regex| regex.is_match(self.market.label(at)))
                && self.is_like(at, query);
            if passes {
                total += 1;
                let whole = query.list != List::Drops && self.equals(at, query);
                let facts = self.market.facts(at).filter(|_| query.list == List::Drops);
                let unrounded = facts.map_or(0, |facts| facts.rank);
                let key = self.key(at, query);
                let rank = (!whole, key, Reverse((row.dqs, unrounded)), row.length, at);
                if best.len() < wanted || best.peek().is_some_and(|worst| rank < *worst) {
                    best.push(rank);
                    if best.len() > wanted {
                        best.pop();
                    }
                }
            }
        }
        let page = best.into_sorted_vec().into_iter().skip(query.offset as usize);
        Answer { total, page: page.map(|(.., at)| at).collect(), tlds }
    }

    /// The canonical names on the page.
    pub fn names(&self, answer: &Answer) -> Vec<&'a str> {
        answer.page.iter().map(|&at| self.market.text(at)).collect()
    }

    /// The word for the status of a name (data/docs/api.md, Drops and stages).
    pub fn status(&self, row: &Row) -> &'static str {
        match self.market.dropped(row).map(|drop| self.stage(&drop)) {
            None if row.registered => "registered",
            None => "unknown",
            Some(None) => "registered",
            Some(Some(Stage::Redemption)) => "redemption",
            Some(Some(Stage::PendingDelete)) => "pending-delete",
            Some(Some(Stage::Catchable | Stage::Released)) => "available",
        }
    }

    /// The stage at the moment of the scan.
    pub fn stage(&self, drop: &Dropped) -> Option<Stage> {
        drop.stage(self.as_of.today, self.as_of.catch_days)
    }

    /// Position of `name`, by binary search.
    pub fn place(&self, name: &DomainName) -> Option<usize> {
        let (mut low, mut high) = (0, self.market.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.market.text(middle) < name.as_str() { low = middle + 1 } else { high = middle }
        }
        (low < self.market.len() && self.market.text(low) == name.as_str()).then_some(low)
    }

    fn has_text(&self, at: usize, query: &Query) -> bool {
        let Some(q) = query.q.as_deref() else { return true };
        let has = |text: &str| match query.list {
            List::Search | List::Suggest => text.starts_with(q),
            List::Drops => text.contains(q),
        };
        has(self.market.text(at)) || self.market.unicode(at).is_some_and(has)
    }

    /// Whether the conditions on columns hold.
    fn meets(&self, at: usize, query: &Query) -> bool {
        if query.conditions.is_empty() {
            return true;
        }
        let Some(facts) = self.market.facts(at) else { return false };
        query.conditions.iter().all(|it| it.passes(facts.values[it.column as usize]))
    }

    fn is_like(&self, at: usize, query: &Query) -> bool {
        let like = query.text.as_ref().filter(|text| text.parameter == "like");
        like.is_none_or(|like| strsim::osa_distance(&like.value, self.market.label(at)) <= 1)
    }

    /// The key of the sort as a number that sorts like results.
    fn key(&self, at: usize, query: &Query) -> i64 {
        let Some((by, is_down)) = query.sort else { return 0 };
        let of = |column: Column| {
            self.market.facts(at).map_or(0, |facts| facts.values[column as usize].into())
        };
        let value: i64 = match by {
            SortBy::Dqs => self.market.row(at).dqs.into(),
            SortBy::Release => of(Column::Release),
            SortBy::DropDate => of(Column::DropDate),
            SortBy::Length => of(Column::Length),
            SortBy::OtherTlds => of(Column::OtherTlds),
            SortBy::Name => at as i64,
        };
        if is_down { -value } else { value }
    }

    fn is_listed(&self, row: &Row, query: &Query) -> bool {
        let Some(drop) = self.market.dropped(row) else { return false };
        let Some(stage) = self.stage(&drop) else { return false };
        match (query.stage, query.view) {
            (Some(asked), _) => stage == asked,
            (None, Some(View::Today)) => drop.date == self.as_of.today,
            (None, Some(View::All)) => true,
            (None, None) => stage != Stage::Released,
        }
    }

    fn equals(&self, at: usize, query: &Query) -> bool {
        let Some(q) = query.q.as_deref() else { return false };
        let equal =
            |name: &str| name == q || name.split_once('.').is_some_and(|(label, _)| label == q);
        equal(self.market.text(at)) || self.market.unicode(at).is_some_and(equal)
    }
}
