//! Random queries, each as sent and as parsed.

use std::collections::BTreeSet;

use dropdex::query::conditions::CONDITIONS;
use dropdex::vocab::day::Day;
use dropdex::vocab::name::DomainName;
use icu_normalizer::DecomposingNormalizerBorrowed;
use regex::RegexBuilder;

use super::corpus::{some_upper_case, spelling};
use super::model::{
    DropsQuery, FACETS, Filter, HOUSE_KINDS, LANGUAGES, MEMBERS, Model, Name, SORTS, SearchQuery,
};
use crate::common::http::{escape, with_query};
use crate::common::rng::Rng;

/// A query with its request.
pub struct Ask<Q> {
    pub target: String,
    pub query: Q,
}

const STAGES: [&str; 4] = ["redemption", "pending-delete", "catchable", "released"];
const VIEWS: [&str; 3] = ["active", "today", "all"];

/// The parameters of a request under construction.
type Parameters = Vec<(&'static str, String)>;

/// Draws a query to `GET /api/v1/drops`.
pub fn drops(rng: &mut Rng, model: &Model) -> Ask<DropsQuery> {
    ask_drops(rng, model, "/api/v1/drops", 1_000)
}

/// Draws a query to `GET /api/export/drops`.
pub fn export(rng: &mut Rng, model: &Model) -> Ask<DropsQuery> {
    ask_drops(rng, model, "/api/export/drops", 10_000)
}

fn ask_drops(rng: &mut Rng, model: &Model, path: &str, limit_max: usize) -> Ask<DropsQuery> {
    let mut sent = Parameters::new();
    let filter = filter(rng, model, &mut sent);
    let needle = rng.chance(45).then(|| needle(rng, model));
    if let Some(needle) = &needle {
        sent.push(("q", respelled(rng, needle)));
    }
    let needle = needle.map(without_root);
    let limit = limit(rng, limit_max, &mut sent);
    let offset = offset(rng, model.names().len(), &mut sent);
    let (sort, order) = sort(rng, &mut sent);
    let mut query =
        DropsQuery { filter, needle, sort, order, limit, offset, ..DropsQuery::default() };
    if limit_max == 1_000 {
        query.fields = rng.chance(15).then(|| members(rng));
        if let Some(fields) = &query.fields {
            sent.push(("fields", fields.join(",")));
        }
        query.facets = FACETS.into_iter().filter(|_| rng.chance(8)).collect();
        if !query.facets.is_empty() {
            sent.push(("facets", query.facets.join(",")));
        }
        query.total = rng.maybe(70, |rng| *rng.pick(&["exact", "exact", "estimate", "none"]));
        sent.extend(query.total.map(|total| ("total", total.to_owned())));
    }
    Ask { target: target(rng, path, sent), query }
}

/// Draws a query of the NDJSON export, with the members of its lines.
pub fn lines(rng: &mut Rng, model: &Model) -> (Ask<DropsQuery>, Vec<&'static str>) {
    let mut sent = Parameters::new();
    let filter = filter(rng, model, &mut sent);
    let (sort, order) = sort(rng, &mut sent);
    let members = members(rng);
    sent.push(("format", "ndjson".into()));
    sent.push(("columns", members.join(",")));
    let query = DropsQuery { filter, sort, order, ..DropsQuery::default() };
    (Ask { target: target(rng, "/api/export/drops", sent), query }, members)
}

/// Draws a query of the CSV export, with its columns.
pub fn columns(rng: &mut Rng, model: &Model) -> (Ask<DropsQuery>, Vec<&'static str>) {
    let (mut sent, members) = (Parameters::new(), members(rng));
    let filter = filter(rng, model, &mut sent);
    let (sort, order) = sort(rng, &mut sent);
    let (limit, offset) = (limit(rng, 10_000, &mut sent), offset(rng, 60, &mut sent));
    sent.push(("columns", members.join(",")));
    let query = DropsQuery { filter, sort, order, limit, offset, ..DropsQuery::default() };
    (Ask { target: target(rng, "/api/export/drops", sent), query }, members)
}

/// Draws a query that is read to its end, page by page.
pub fn pages(rng: &mut Rng, model: &Model) -> Ask<DropsQuery> {
    let mut sent = Parameters::new();
    let filter = filter(rng, model, &mut sent);
    let (sort, order) = sort(rng, &mut sent);
    rng.shuffle(&mut sent);
    let query = DropsQuery { filter, sort, order, ..DropsQuery::default() };
    Ask { target: with_query("/api/v1/drops", &sent), query }
}

fn sort(rng: &mut Rng, sent: &mut Parameters) -> (Option<&'static str>, Option<&'static str>) {
    let sort = rng.chance(60).then(|| *rng.pick(&SORTS));
    let order = rng.chance(30).then(|| *rng.pick(&["asc", "desc"]));
    sent.extend(sort.map(|sort| ("sort", sort.to_owned())));
    sent.extend(order.map(|order| ("order", order.to_owned())));
    (sort, order)
}

/// Draws some members of a row, in any order.
fn members(rng: &mut Rng) -> Vec<&'static str> {
    let mut members: Vec<&str> = MEMBERS.into_iter().filter(|_| rng.chance(40)).collect();
    members.push(MEMBERS[rng.below(MEMBERS.len())]);
    members.sort_unstable();
    members.dedup();
    rng.shuffle(&mut members);
    members
}

/// Draws a query to `GET /api/v1/search`.
pub fn search(rng: &mut Rng, model: &Model) -> Ask<SearchQuery> {
    let mut sent = Parameters::new();
    if rng.chance(10) {
        return search_texts(rng, model);
    }
    let prefix = prefix(rng, model);
    let mut q = respelled(rng, &prefix);
    if rng.chance(10) {
        q = format!(" {q}\t ");
    }
    sent.push(("q", q.clone()));
    // Half of the queries are unfiltered, because the order and the totals of plain prefixes matter
    // most.
    let filter = if rng.chance(50) { Filter::default() } else { filter(rng, model, &mut sent) };
    let limit = limit(rng, 100, &mut sent);
    let offset = offset(rng, 60, &mut sent);
    let query = SearchQuery { sent: q, prefix: without_root(prefix), filter, limit, offset };
    Ask { target: target(rng, "/api/v1/search", sent), query }
}

/// Draws a search without a prefix.
fn search_texts(rng: &mut Rng, model: &Model) -> Ask<SearchQuery> {
    let mut sent = Parameters::new();
    let mut filter = if rng.chance(50) { Filter::default() } else { filter(rng, model, &mut sent) };
    let Filter { contains, starts, ends, pattern, regex, like, .. } = &filter;
    let has_shape = pattern.is_some() || regex.is_some() || like.is_some();
    if !has_shape && contains.is_empty() && starts.is_empty() && ends.is_empty() {
        let kind = rng.below(4);
        shape(rng, model, kind, &mut filter, &mut sent);
        if filter.pattern.is_none() && filter.regex.is_none() && filter.like.is_none() {
            filter.ends = texts(rng, model, "ends", &mut sent);
        }
    }
    let limit = limit(rng, 100, &mut sent);
    let query = SearchQuery { filter, limit, ..SearchQuery::default() };
    Ask { target: target(rng, "/api/v1/search", sent), query }
}

/// Draws a request for a dossier, with its canonical name.
pub fn domain(rng: &mut Rng, model: &Model) -> Ask<String> {
    let known = rng.pick(model.names());
    let text = if rng.chance(85) {
        known.ascii.clone()
    } else {
        // The other texts are near misses, mostly names that were never observed.
        format!("{}{}.{}", known.label, rng.pick(&["q", "-9", "7x"]), rng.pick(&["com", "de"]))
    };
    let Ok(name) = DomainName::parse(&text) else {
        return domain(rng, model);
    };
    let mut spelled = spelling(rng, &name);
    if rng.chance(10) {
        spelled = format!(" {spelled} ");
    }
    let target = format!("/api/v1/domain/{}", escape(&spelled));
    Ask { target, query: name.to_string() }
}

fn filter(rng: &mut Rng, model: &Model, sent: &mut Parameters) -> Filter {
    let mut filter = Filter::default();
    if rng.chance(35) {
        let tlds = tlds(rng, model);
        sent.push((
            "tld",
            tlds.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>().join(","),
        ));
        filter.tlds = Some(tlds.into_iter().filter_map(|(_, tld)| tld).collect());
    }
    if rng.chance(35) {
        // Scores of names of the corpus are used, so that queries hit the bounds exactly.
        let near = rng.pick(model.names()).dqs + rng.below(2) as u64;
        let least = if rng.chance(80) { near.min(100) } else { rng.below(101) as u64 };
        sent.push(("min_dqs", least.to_string()));
        filter.min_dqs = Some(least);
    }
    if rng.chance(35) {
        let most = if rng.chance(85) { rng.between(1, 14) } else { rng.between(15, 63) };
        sent.push(("max_len", most.to_string()));
        filter.max_len = Some(most as usize);
    }
    if rng.chance(35) {
        filter.stages = STAGES.into_iter().filter(|_| rng.chance(30)).collect();
        if filter.stages.is_empty() {
            filter.stages.push(*rng.pick(&STAGES));
        }
        sent.push(("stage", filter.stages.join(",")));
    }
    if rng.chance(30) {
        filter.adult = rng.chance(80);
        sent.push(("adult", if filter.adult { "include" } else { "exclude" }.into()));
    }
    for _ in 0..rng.below(3) {
        more(rng, model, &mut filter, sent);
    }
    if rng.chance(45) {
        let view = *rng.pick(&VIEWS);
        sent.push(("view", view.into()));
        filter.view = Some(view);
    }
    filter
}

/// Sends the bounds of a range of releases as days or as instants.
fn releases(
    rng: &mut Rng,
    (from, to): (Option<Day>, Option<Day>),
    sent: &mut Parameters,
) -> (Option<i64>, Option<i64>) {
    let is_one_day = from == to;
    let mut bound = |name, day: Option<Day>, end: i64| {
        let day = day?;
        // The hours at which registries release names, and others. The range of a day is not crossed.
        let hour = *rng.pick(if end == 0 { &[0, 3, 4, 18] } else { &[18, 19, 20, 23] });
        let second = if is_one_day { 0 } else { rng.between(-1, 1).max(-hour) };
        let at = day.start().timestamp() + i64::from(hour * 3_600 + second);
        let text = match rng.below(4) {
            0 | 1 => {
                sent.push((name, day.to_string()));
                return Some(day.plus(end as i32).start().timestamp());
            }
            2 if second == 0 => super::corpus::timestamp(at).replace(":00Z", "Z"),
            2 => super::corpus::timestamp(at),
            _ => super::corpus::timestamp(at + 5_400).replace('Z', "+01:30"),
        };
        sent.push((name, text));
        Some(at + end)
    };
    (bound("release_from", from, 0), bound("release_to", to, 1))
}

/// Adds one condition, unless it is already set.
fn more(rng: &mut Rng, model: &Model, filter: &mut Filter, sent: &mut Parameters) {
    let name = rng.pick(model.names());
    let latest = name.latest();
    let has = |sent: &Parameters, parameter: &str| sent.iter().any(|(sent, _)| *sent == parameter);
    let kind = rng.below(31);
    let texts_of = |rng: &mut Rng, parameter, sent: &mut Parameters| {
        if has(sent, parameter) { None } else { Some(texts(rng, model, parameter, sent)) }
    };
    match kind {
        0 => filter.contains.extend(texts_of(rng, "contains", sent).into_iter().flatten()),
        1 => filter.starts.extend(texts_of(rng, "starts", sent).into_iter().flatten()),
        2 => filter.ends.extend(texts_of(rng, "ends", sent).into_iter().flatten()),
        3 => filter.not_contains.extend(texts_of(rng, "not_contains", sent).into_iter().flatten()),
        4 => filter.not_starts.extend(texts_of(rng, "not_starts", sent).into_iter().flatten()),
        5 => filter.not_ends.extend(texts_of(rng, "not_ends", sent).into_iter().flatten()),
        6 if filter.digits.is_none() => {
            let wanted = *rng.pick(&["none", "some", "only"]);
            filter.digits = Some(wanted);
            sent.push(("digits", wanted.into()));
        }
        7 if filter.hyphens.is_none() => {
            let wanted = *rng.pick(&["none", "some"]);
            filter.hyphens = Some(wanted);
            sent.push(("hyphens", wanted.into()));
        }
        8 if filter.idn.is_none() => {
            let wanted = *rng.pick(&["none", "only"]);
            filter.idn = Some(wanted);
            sent.push(("idn", wanted.into()));
        }
        9 if filter.not_tlds.is_empty() => {
            filter.not_tlds.insert(name.tld.clone());
            sent.push(("not_tld", tld_spelling(rng, &name.tld)));
        }
        10 if filter.max_dqs.is_none() => {
            let most = name.dqs.max(filter.min_dqs.unwrap_or(0));
            filter.max_dqs = Some(most);
            sent.push(("max_dqs", most.to_string()));
        }
        11 if filter.min_len.is_none() => {
            let least = name.length.min(filter.max_len.unwrap_or(63));
            filter.min_len = Some(least);
            sent.push(("min_len", least.to_string()));
        }
        12 if filter.min_tlds.is_none() => {
            let (least, width) = (rng.below(3), rng.below(3));
            filter.min_tlds = Some(least);
            sent.push(("min_tlds", least.to_string()));
            if rng.chance(60) {
                filter.max_tlds = Some(least + width);
                sent.push(("max_tlds", (least + width).to_string()));
            }
        }
        13 if filter.min_drops.is_none() => {
            let least = 1 + rng.below(3);
            filter.min_drops = Some(least);
            sent.push(("min_drops", least.to_string()));
        }
        14 if (filter.dropped, filter.release) == ((None, None), (None, None)) => {
            let Some(latest) = latest else { return };
            let is_release = rng.chance(60);
            let near = if is_release { latest.release } else { latest.date };
            let width = if rng.chance(20) { 2 } else { 30 };
            let range = (near.plus(-(rng.below(width) as i32)), near.plus(rng.below(width) as i32));
            let open = rng.below(4);
            let bounds = ((open != 0).then_some(range.0), (open != 1).then_some(range.1));
            if is_release {
                filter.release = releases(rng, bounds, sent);
                return;
            }
            sent.extend(bounds.0.map(|day| ("dropped_from", day.to_string())));
            sent.extend(bounds.1.map(|day| ("dropped_to", day.to_string())));
            filter.dropped = bounds;
        }
        15 if filter.listed_since.is_none() => {
            let Some(since) = name.listed_at() else { return };
            let since = since + rng.below(2) as i64;
            filter.listed_since = Some(since);
            sent.push(("listed_since", super::corpus::timestamp(since)));
        }
        16 if filter.kinds.is_empty() => {
            let kinds = std::iter::repeat_with(|| known(rng, model, "kind")).take(2).flatten();
            filter.kinds = kinds.collect();
            sent.push(("kind", filter.kinds.join(",")));
        }
        17 if filter.languages.is_empty() => {
            let codes = std::iter::repeat_with(|| known(rng, model, "language")).take(4).flatten();
            filter.languages = codes.collect();
            if filter.languages.is_empty() {
                filter.languages.push((*rng.pick(&LANGUAGES)).to_owned());
            }
            sent.push(("language", filter.languages.join(",")));
        }
        18 if !filter.uncapped => {
            filter.uncapped = true;
            sent.push(("caps", "none".into()));
        }
        26 if filter.typo.is_none() => {
            let typo = if rng.chance(80) { "none" } else { "only" };
            filter.typo = Some(typo);
            sent.push(("typo", typo.into()));
        }
        19 | 20 if (filter.min_words, filter.max_words) == (None, None) => {
            let (least, width) = (rng.below(3) as u64, rng.below(2) as u64);
            let open = rng.below(4);
            if open != 0 {
                filter.min_words = Some(least);
                sent.push(("min_words", least.to_string()));
            }
            if open != 1 {
                filter.max_words = Some(least + width);
                sent.push(("max_words", (least + width).to_string()));
            }
        }
        24 if filter.max_rank.is_none() => {
            // Uses the rank of a name, so that queries hit the bound exactly.
            let ranked = model.names().iter().filter_map(Name::best_rank).collect::<Vec<_>>();
            let most = (*rng.pick(&ranked) - rng.below(2) as u64).max(1);
            filter.max_rank = Some(most);
            sent.push(("max_rank", most.to_string()));
        }
        25 if filter.max_suffix_rank.is_none() => {
            let width = if rng.chance(50) { 10 } else { 100 };
            let most = 1 + rng.below(width);
            filter.max_suffix_rank = Some(most);
            sent.push(("max_suffix_rank", most.to_string()));
        }
        // No name passes, so few queries have it.
        27 if filter.expected_taken.is_none() && rng.chance(50) => {
            let least = rng.below(101);
            filter.expected_taken = Some(least);
            sent.push(("expected_taken", least.to_string()));
        }
        28 if filter.rank.is_none() => {
            let near = super::model::rank_of(&name.ascii).unwrap_or(7);
            let (from, to) = (near - rng.below(80) as i64, near + rng.below(80) as i64);
            let open = rng.below(4);
            let (from, to) = ((open != 0).then_some(from), (open != 1).then_some(to));
            filter.rank = Some((from, to));
            let text = |bound: Option<i64>| bound.map(|it| it.to_string()).unwrap_or_default();
            sent.push(("fact.acme.rank", format!("{}..{}", text(from), text(to))));
        }
        29 if filter.house.is_empty() => {
            filter.house = HOUSE_KINDS.into_iter().filter(|_| rng.chance(50)).collect();
            if !filter.house.is_empty() {
                sent.push(("fact", format!("house.kind:{}", filter.house.join("|"))));
            }
        }
        30 if filter.has_house.is_none() => {
            let has = rng.chance(60);
            filter.has_house = Some(has);
            sent.push(("has", if has { "house.kind" } else { "!house.kind" }.into()));
        }
        21..24 => shape(rng, model, kind - 20, filter, sent),
        _ => {}
    }
}

/// Returns a signal of some name, if it is text.
fn known(rng: &mut Rng, model: &Model, signal: &str) -> Option<String> {
    rng.pick(model.names()).signals[signal].as_str().map(str::to_owned)
}

/// Adds a condition that some name meets: a pattern (1), a regular expression (2) or a similar
/// label (3).
fn shape(rng: &mut Rng, model: &Model, kind: usize, filter: &mut Filter, sent: &mut Parameters) {
    let chars = idn_or_any(rng, model);
    let label: Vec<char> = chars.into_iter().take_while(|&char| char != '.').collect();
    match kind {
        1 if filter.pattern.is_none() => {
            let pattern = pattern(rng, &label);
            sent.push(("pattern", pattern.clone()));
            filter.pattern = Some(pattern);
        }
        2 if filter.regex.is_none() => {
            let regex = regex(rng, &label);
            sent.push(("regex", regex.clone()));
            let mut meant = RegexBuilder::new(&regex.replace(r"\d", "[0-9]"));
            let compiled = meant.case_insensitive(true).build();
            filter.regex = Some((regex, compiled.expect("a regular expression")));
        }
        3 if filter.like.is_none() && (3..=30).contains(&label.len()) => {
            let mut like = label;
            for _ in 0..rng.below(3) {
                let at = rng.below(like.len() - 1);
                match rng.below(4) {
                    0 => like.swap(at, at + 1),
                    1 if like.len() > 3 => drop(like.remove(at)),
                    2 if like.len() < 30 => like.insert(at, 'e'),
                    _ => like[at] = 'o',
                }
            }
            let like: String = like.into_iter().collect();
            let distance = rng.maybe(60, |rng| 1 + rng.below(2));
            sent.push(("like", some_upper_case(rng, &like)));
            sent.extend(distance.map(|distance| ("distance", distance.to_string())));
            filter.like = Some((like, distance.unwrap_or(1)));
        }
        _ => {}
    }
}

/// Draws a pattern that matches the label.
fn pattern(rng: &mut Rng, label: &[char]) -> String {
    let (mut pattern, mut stars) = (String::new(), 0);
    let is_a_label = label.starts_with(&['x', 'n', '-', '-']);
    for (at, &char) in label.iter().enumerate() {
        let is_vowel = "aeiouy".contains(char);
        let of_its_own = match char {
            'a'..='z' if is_vowel => 'V',
            'a'..='z' => 'C',
            '0'..='9' => 'N',
            '-' => '?',
            _ => 'L',
        };
        // The first symbol of a pattern decides which form it is compared with.
        let symbol = match rng.below(10) {
            _ if is_a_label && at < 4 => char,
            0..4 => char,
            4..7 => of_its_own,
            7 if char != '-' => 'A',
            8 if stars < 4 => '*',
            _ => '?',
        };
        // Characters of the label that follow a run of any characters may belong to the run.
        if symbol == '*' && pattern.ends_with('*') {
            continue;
        }
        stars += usize::from(symbol == '*');
        pattern.push(symbol);
    }
    pattern
}

/// Draws a regular expression that matches the label.
fn regex(rng: &mut Rng, label: &[char]) -> String {
    let is_a_label = label.starts_with(&['x', 'n', '-', '-']);
    let length = 1 + rng.below(label.len().min(6));
    let start = if rng.chance(40) || is_a_label { 0 } else { rng.below(label.len() - length + 1) };
    let mut regex = String::new();
    for (at, &char) in label[start..start + length].iter().enumerate() {
        let piece = match rng.below(12) {
            _ if is_a_label && at < 4 => char.to_string(),
            0 => ".".to_owned(),
            1 if char.is_ascii_lowercase() => "[a-z]".to_owned(),
            2 if char.is_ascii_digit() => r"\d".to_owned(),
            3 => format!("({char}|zq)"),
            4 => format!("{char}+"),
            5 => format!("{char}?{char}"),
            6 => format!("[^{char}]?{char}"),
            _ => char.to_string(),
        };
        regex.push_str(&piece);
    }
    if start == 0 && rng.chance(60) {
        regex.insert(0, '^');
    }
    if start + length == label.len() && rng.chance(60) {
        regex.push('$');
    }
    regex
}

/// Draws one or a few texts of labels, as a parameter and parsed.
fn texts(
    rng: &mut Rng,
    model: &Model,
    parameter: &'static str,
    sent: &mut Parameters,
) -> Vec<String> {
    let mut texts = Vec::new();
    for _ in 0..=rng.below(3) {
        let chars = idn_or_any(rng, model);
        let label: Vec<char> = chars.into_iter().take_while(|&char| char != '.').collect();
        let most = if rng.chance(70) { 3 } else { 20 };
        let length = 1 + rng.below(label.len().min(most));
        let start = match parameter {
            "starts" | "not_starts" => 0,
            "ends" | "not_ends" => label.len() - length,
            _ => rng.below(label.len() - length + 1),
        };
        texts.push(label[start..start + length].iter().collect::<String>());
    }
    let spelled = texts.iter().map(|text| {
        let text = some_upper_case(rng, text);
        if rng.chance(20) { format!("\"{text}\"") } else { text }
    });
    let spelled: Vec<String> = spelled.collect();
    sent.push((parameter, spelled.join(",")));
    texts
}

/// Draws items of a TLD filter, as sent and parsed (`None` for an empty one). At least one is not
/// empty, because it is unspecified whether `tld=,` filters at all.
fn tlds(rng: &mut Rng, model: &Model) -> Vec<(String, Option<String>)> {
    let mut items: Vec<(String, Option<String>)> = (0..rng.between(1, 4))
        .map(|_| {
            let tld = match rng.below(10) {
                0 => "zz",
                1 => "no.such.tld",
                _ => rng.pick(model.names()).tld.as_str(),
            };
            (tld_spelling(rng, tld), Some(tld.to_owned()))
        })
        .collect();
    if rng.chance(20) {
        items.push((rng.pick(&["", " "]).to_string(), None));
        rng.shuffle(&mut items);
    }
    items
}

fn tld_spelling(rng: &mut Rng, tld: &str) -> String {
    let unicode = match tld {
        "xn--p1ai" => "рф",
        "xn--55qx5d.cn" => "公司.cn",
        ascii => ascii,
    };
    let mut text = if rng.chance(40) { unicode.to_owned() } else { tld.to_owned() };
    if rng.chance(25) {
        text = some_upper_case(rng, &text);
    }
    if rng.chance(25) {
        text = format!(".{text}");
    }
    if rng.chance(25) {
        text = format!(" {text} ");
    }
    text
}

/// Returns either spelling of a name of the corpus, as characters.
fn some_spelling(rng: &mut Rng, name: &Name) -> Vec<char> {
    if rng.chance(50) { name.ascii.chars().collect() } else { name.unicode.chars().collect() }
}

/// Draws a part of a name, of 1, 2, 3 or more characters, from anywhere in the name; sometimes it is a
/// text that occurs in no name.
fn needle(rng: &mut Rng, model: &Model) -> String {
    if rng.chance(6) {
        return rng.pick(&["zqzqzq", "..", "юю", "-.", "ßß", "9q9"]).to_string();
    }
    let chars = idn_or_any(rng, model);
    let most = chars.len().min(63);
    let length = match rng.below(5) {
        0 => 1,
        1 => 2,
        2 | 3 => 3,
        _ => rng.between(4, 24) as usize,
    }
    .min(most);
    let start = rng.below(chars.len() - length + 1);
    chars[start..start + length].iter().collect()
}

/// Removes a trailing dot after a whole name, which is ignored; after anything else it is literal.
fn without_root(text: String) -> String {
    match DomainName::parse(&text) {
        Ok(_) => text.trim_end_matches('.').to_owned(),
        Err(_) => text,
    }
}

/// Returns a spelling of a name; IDNs are more frequent than by chance.
fn idn_or_any(rng: &mut Rng, model: &Model) -> Vec<char> {
    let mut name = rng.pick(model.names());
    if rng.chance(30) {
        while name.ascii == name.unicode {
            name = rng.pick(model.names());
        }
    }
    some_spelling(rng, name)
}

/// Draws the start of a name: of any length, the whole label, the label with the dot, or more;
/// sometimes a text that starts no name.
fn prefix(rng: &mut Rng, model: &Model) -> String {
    if rng.chance(5) {
        return rng
            .pick(&["zqzqzq", ".com", "xn--zzzz", "юю", "abc.c", "abc.zz", "a.", "x", "xn--"])
            .to_string();
    }
    let chars = idn_or_any(rng, model);
    let label = chars.iter().position(|&char| char == '.').expect("names have a dot");
    let length = match rng.below(8) {
        0 => 1,
        1 => 2,
        2 => 3,
        3 => label,
        4 => label + 1,
        5 => label + 2,
        6 => chars.len(),
        _ => 1 + rng.below(chars.len()),
    };
    let prefix: String = chars[..length.min(chars.len())].iter().collect();
    if length == chars.len() && rng.chance(15) { prefix + "." } else { prefix }
}

/// Respells the text in another case, in full-width letters or decomposed.
fn respelled(rng: &mut Rng, text: &str) -> String {
    match rng.below(20) {
        0..7 => some_upper_case(rng, text),
        7 => {
            text.chars().map(|char| if rng.chance(50) { full_width(char) } else { char }).collect()
        }
        8 | 9 => DecomposingNormalizerBorrowed::new_nfd().normalize(text).into_owned(),
        _ => text.to_owned(),
    }
}

fn full_width(char: char) -> char {
    let wide = u32::from(char) + 0xFEE0;
    if char.is_ascii_alphanumeric() { char::from_u32(wide).unwrap_or(char) } else { char }
}

fn limit(rng: &mut Rng, most: usize, sent: &mut Parameters) -> Option<usize> {
    let limit = match rng.below(10) {
        0..4 => return None,
        4 => 1,
        5 => most,
        6..8 => 1 + rng.below(most.min(30)),
        _ => 1 + rng.below(most),
    };
    sent.push(("limit", limit.to_string()));
    Some(limit)
}

/// Draws an offset within the first `near` rows, or sometimes beyond the last.
fn offset(rng: &mut Rng, near: usize, sent: &mut Parameters) -> Option<usize> {
    let offset = match rng.below(20) {
        0..11 => return None,
        11 => 0,
        12 => 10_000,
        13..16 => rng.below(near),
        _ => rng.below(20),
    };
    sent.push(("offset", offset.to_string()));
    Some(offset)
}

/// Builds the request: parameters in any order, with some empty ones among them.
fn target(rng: &mut Rng, path: &str, mut sent: Parameters) -> String {
    let conditions = CONDITIONS.iter().map(|condition| condition.parameter);
    for name in conditions.chain(["limit"]) {
        let absent = sent.iter().all(|(sent, _)| *sent != name);
        if absent && rng.chance(1) {
            sent.push((name, String::new()));
        }
    }
    rng.shuffle(&mut sent);
    with_query(path, &sent)
}

/// Returns every TLD of the corpus.
pub fn tlds_of(model: &Model) -> BTreeSet<&str> {
    model.names().iter().map(|name| name.tld.as_str()).collect()
}
