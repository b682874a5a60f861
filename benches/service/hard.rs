//! Queries that are hard on purpose: wide ranges that hardly any name passes, and texts that occur in
//! no name.

use crate::common::rng::Rng;
use crate::market::Market;
use crate::queries::{List, Query, View};
use crate::scan::Scan;
use dropdex::vocab::stage::Stage;

/// Pairs of common syllables to try for a text that no name contains.
const TRIES: usize = 200;
const SYLLABLES: [&str; 12] =
    ["ing", "ter", "ent", "est", "ion", "the", "man", "car", "art", "per", "lin", "son"];

/// A query that is hard on purpose.
pub struct Hard {
    /// The reason why it is hard, with the same text for every corpus.
    pub name: &'static str,
    pub query: Query,
}

/// All hard queries.
pub fn queries(scan: Scan<'_>, seed: u64) -> Vec<Hard> {
    let mut all = searches(scan.market);
    all.extend(drops(scan, seed));
    all
}

fn searches(market: &Market) -> Vec<Hard> {
    let wide = widest_start(market).to_string();
    let start = || Query { q: Some(wide.clone()), ..Query::plain(List::Search, 20) };
    let rare: Vec<String> = market.rarest_tld(|_| true).map(str::to_owned).into_iter().collect();
    let pending = Some(Stage::PendingDelete);
    vec![
        Hard { name: "search, the widest letter", query: start() },
        Hard { name: "search, it in the rarest TLD", query: Query { tlds: rare, ..start() } },
        Hard {
            name: "search, it with min_dqs 100",
            query: Query { min_dqs: Some(100), ..start() },
        },
        Hard {
            name: "search, it, pending-delete, max_len 4",
            query: Query { stage: pending, max_len: Some(4), ..start() },
        },
        Hard {
            name: "search, it, the deepest page",
            query: Query { limit: 100, offset: 10_000, ..start() },
        },
    ]
}

fn drops(scan: Scan<'_>, seed: u64) -> Vec<Hard> {
    let page = || Query::plain(List::Drops, 100);
    let rare = scan.market.rarest_tld(|row| {
        let stage = scan.market.dropped(row).and_then(|drop| scan.stage(&drop));
        stage.is_some_and(|stage| stage != Stage::Released)
    });
    let (rare, q) = (rare.map(str::to_owned).into_iter().collect(), Some("e".to_owned()));
    let released = Some(Stage::Released);
    let mut all = vec![
        Hard { name: "drops in the rarest TLD", query: Query { tlds: rare, ..page() } },
        Hard { name: "drops, min_dqs 100", query: Query { min_dqs: Some(100), ..page() } },
        Hard { name: "drops with `e`, offset 5,000", query: Query { q, offset: 5_000, ..page() } },
        Hard {
            name: "drops, view all, released, max_len 3",
            query: Query { stage: released, view: Some(View::All), max_len: Some(3), ..page() },
        },
    ];
    if let Some(text) = absent_text(scan, seed) {
        let query = Query { q: Some(text), ..page() };
        all.push(Hard { name: "drops with a text that no name holds", query });
    }
    all
}

/// Returns the character that most names start with.
fn widest_start(market: &Market) -> char {
    let mut found = [0_usize; 256];
    for at in 0..market.len() {
        found[usize::from(market.text(at).as_bytes()[0])] += 1;
    }
    let most = (0..=u8::MAX).max_by_key(|&byte| found[usize::from(byte)]);
    char::from(most.unwrap_or(b'a'))
}

/// Returns a text that consists of common parts and occurs in no dropped name, although each part
/// occurs in many.
fn absent_text(scan: Scan<'_>, seed: u64) -> Option<String> {
    let mut rng = Rng::at(seed, 0);
    (0..TRIES).find_map(|_| {
        let parts: Vec<&str> = (0..3).filter_map(|_| rng.pick(&SYLLABLES).copied()).collect();
        let q = Some(parts.concat());
        let query = Query { q, view: Some(View::All), ..Query::plain(List::Drops, 1) };
        (scan.answer(&query).total == 0).then_some(query.q)?
    })
}
