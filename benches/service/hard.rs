//! Queries that are hard on purpose: wide ranges that hardly anything passes, and needles that
//! are not there.

use crate::common::rng::Rng;
use crate::market::Market;
use crate::queries::{List, Query, View};
use crate::scan::Scan;
use dropdex::vocab::stage::Stage;

/// Pairs of common syllables tried for a text that no name holds.
const TRIES: usize = 200;
const SYLLABLES: [&str; 12] =
    ["ing", "ter", "ent", "est", "ion", "the", "man", "car", "art", "per", "lin", "son"];

/// Hard queries with what is hard about them.
pub fn queries(scan: Scan<'_>, seed: u64) -> Vec<(String, Query)> {
    let mut all = searches(scan.market);
    all.extend(drops(scan, seed));
    all
}

fn searches(market: &Market) -> Vec<(String, Query)> {
    let wide = widest_start(market);
    let start = || Query { q: Some(wide.to_string()), ..Query::plain(List::Search, 20) };
    let rare: Vec<String> = market.rarest_tld(|_| true).map(str::to_owned).into_iter().collect();
    let rarest = rare.first().cloned().unwrap_or_default();
    vec![
        (format!("search `{wide}`, the widest prefix"), start()),
        (format!("search `{wide}` in the rarest TLD, .{rarest}"), Query { tlds: rare, ..start() }),
        (format!("search `{wide}`, min_dqs 100"), Query { min_dqs: Some(100), ..start() }),
        (
            format!("search `{wide}`, pending-delete, max_len 4"),
            Query { stage: Some(Stage::PendingDelete), max_len: Some(4), ..start() },
        ),
        (
            format!("search `{wide}`, the deepest page"),
            Query { limit: 100, offset: 10_000, ..start() },
        ),
    ]
}

fn drops(scan: Scan<'_>, seed: u64) -> Vec<(String, Query)> {
    let page = || Query::plain(List::Drops, 100);
    let moment = scan.moment;
    let active = |stage: Option<Stage>| stage.is_some_and(|stage| stage != Stage::Released);
    let rare = scan.market.rarest_tld(|row| {
        active(row.drop.and_then(|drop| drop.stage(moment.today, moment.catch_days)))
    });
    let rare: Vec<String> = rare.map(str::to_owned).into_iter().collect();
    let rarest = rare.first().cloned().unwrap_or_default();
    let mut all = vec![
        (format!("drops in the rarest TLD, .{rarest}"), Query { tlds: rare, ..page() }),
        ("drops, min_dqs 100".to_owned(), Query { min_dqs: Some(100), ..page() }),
        (
            "drops with `e`, offset 5,000".to_owned(),
            Query { q: Some("e".to_owned()), offset: 5_000, ..page() },
        ),
        (
            "drops, view all, released, max_len 3".to_owned(),
            Query {
                stage: Some(Stage::Released),
                view: Some(View::All),
                max_len: Some(3),
                ..page()
            },
        ),
    ];
    if let Some(text) = absent_text(scan, seed) {
        let name = format!("drops with `{text}`, which no name holds");
        all.push((name, Query { q: Some(text), ..page() }));
    }
    all
}

/// The character that most names start with.
fn widest_start(market: &Market) -> char {
    let mut found = [0_usize; 256];
    for at in 0..market.len() {
        found[usize::from(market.text(at).as_bytes()[0])] += 1;
    }
    let most = (0..=u8::MAX).max_by_key(|&byte| found[usize::from(byte)]);
    char::from(most.unwrap_or(b'a'))
}

/// A text made of common parts that no dropped name holds: every part of it is in many.
fn absent_text(scan: Scan<'_>, seed: u64) -> Option<String> {
    let mut rng = Rng::at(seed, 0);
    (0..TRIES).find_map(|_| {
        let parts: Vec<&str> = (0..3).filter_map(|_| rng.pick(&SYLLABLES).copied()).collect();
        let q = Some(parts.concat());
        let query = Query { q, view: Some(View::All), ..Query::plain(List::Drops, 1) };
        (scan.answer(&query).total == 0).then_some(query.q)?
    })
}
