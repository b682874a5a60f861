//! Compares rules with a plain scan of random lists of random names.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use chrono::{DateTime, TimeDelta};

use super::*;
use crate::columns::fixtures::TestTables;
use crate::columns::idn::alias_of;
use crate::corpus::batch::{self, Batch, BatchMeta, Entry, StoredObservation};
use crate::feeds::Sighting;
use crate::generation::build::{BuildSettings, rebuild};
use crate::generation::open::open_current;
use crate::scorer::{Scorer, Scratch};
use crate::vocab::dqs::Dqs;
use crate::vocab::dropped_name::DroppedName;
use crate::vocab::name::to_unicode;
use crate::vocab::release_time::{Release, ReleaseTime, SecondOfDay};
use crate::vocab::stage::{Periods, Stage};
use crate::vocab::time::UnixMs;
use dropdex_query::filter::{Adult, Digits};
use dropdex_query::text::Substring;

/// Days are around this one.
const TODAY: u16 = 1_000;

/// A name on the drops list, as the lists report it.
#[derive(Clone, Debug)]
struct ExpectedDrop {
    name: DomainName,
    alias: Option<String>,
    dqs: Dqs,
    rank: u16,
    date: Day,
    release: Day,
    first_batch: u64,
    first_day: Day,
    is_adult: bool,
}

/// The state of a drop while lists are being read: time of observation, release, registered again,
/// first batch.
type Told = (i64, Option<Day>, bool, u64);

struct Corpus {
    index: Index,
    /// Names, best first.
    listed: Vec<ExpectedDrop>,
    batches: u64,
    /// Days of the lists.
    days: HashMap<u64, Day>,
    _folder: tempfile::TempDir,
}

fn day(raw: u16) -> Day {
    Day::from_raw(raw).expect("a day")
}

fn near(made: &mut TestTables, days: usize) -> Day {
    day(TODAY + 5 - made.below(days) as u16)
}

/// Creates a list of some of the names and adds its drops to `sent`.
fn list(
    made: &mut TestTables,
    names: &[DomainName],
    number: u64,
    told: &mut BTreeMap<DomainName, BTreeMap<Day, Told>>,
) -> Vec<(DomainName, StoredObservation)> {
    let mut rows = Vec::new();
    for name in names {
        if made.below(3) > 0 {
            continue;
        }
        let observed_at = made.below(5) as i64;
        if made.below(8) == 0 {
            let sighting = Sighting::Known { registered: made.below(2) == 0 };
            rows.push((
                name.clone(),
                StoredObservation { sighting, first_seen: None, observed_at },
            ));
            continue;
        }
        // Few days, so that several lists have the same drop.
        let date = day(TODAY - [0, 3, 30, 31, 36, 40, 44, 70, 90][made.below(9)]);
        let release = (made.below(3) == 0).then(|| near(made, 20));
        let registered_again = made.below(8) == 0;
        let sighting =
            Sighting::Dropped { date, release: release.map(Into::into), registered_again };
        rows.push((name.clone(), StoredObservation { sighting, first_seen: None, observed_at }));
        let drop = told.entry(name.clone()).or_default().entry(date);
        let now = (observed_at, release, registered_again, number);
        drop.and_modify(|told| {
            if told.0 <= observed_at {
                *told = (observed_at, release, registered_again, told.3);
            }
        })
        .or_insert(now);
    }
    rows
}

/// Returns the latest drop of a name. Records with later dates about the same release do not change
/// the drop date.
fn latest(name: &DomainName, drops: &BTreeMap<Day, Told>) -> (Day, Told) {
    let mut drops = drops.iter().map(|(date, told)| (*date, *told));
    let (mut date, mut told) = drops.next().expect("one");
    for (next_date, next) in drops {
        let expected = Periods::for_tld(name.tld()).effective_release(date, None);
        let is_same = match (told.1, next.1) {
            (None, None) => !told.2 && next_date <= expected,
            (Some(one), Some(other)) => (-1..=1).contains(&one.days_since(other)),
            (Some(release), None) => !told.2 && next_date <= release,
            (None, Some(release)) => !told.2 && (date..=expected.plus(1)).contains(&release),
        };
        if !is_same {
            (date, told) = (next_date, next);
            continue;
        }
        let (new, old) = if next.0 >= told.0 { (next, told) } else { (told, next) };
        told = (new.0, new.1.or(old.1), new.2, told.3.min(next.3));
    }
    (date, told)
}

fn write(path: &Path, rows: &[(DomainName, StoredObservation)], ingested: Day) -> Batch {
    let mut writer = batch::create(path).expect("a new file");
    let mut scratch = Scratch::default();
    for (name, record) in rows {
        let entry = Entry {
            name: name.as_str().as_bytes(),
            label_len: name.label_len(),
            length: name.length(),
            base: Scorer::shared().base(name, &mut scratch),
            features: &[],
            record: *record,
        };
        writer.push(&entry, None).expect("written");
    }
    let (observed_at, ingested_at) = (ingested.start(), ingested.start());
    let meta = BatchMeta { observed_at, ingested_at, ..BatchMeta::default() };
    writer.finish(&meta).expect("finished");
    Batch::open(path).expect("opens")
}

/// Returns the unrounded score of an indexed name.
fn rank(index: &Index, name: &DomainName) -> u16 {
    let (layer, _, row) = index.find_row(name).expect("it is there");
    row.drop.map_or(0, |drop| layer.drops_by_rank.rank(drop.doc))
}

fn corpus(made: &mut TestTables, names: usize, lists: u64) -> Corpus {
    let mut all: Vec<DomainName> = (0..names).filter_map(|_| made.name()).collect();
    all.sort();
    all.dedup();
    let folder = tempfile::tempdir().expect("a folder");
    let mut told = BTreeMap::new();
    let mut days = HashMap::new();
    let batches: Vec<Batch> = (1..=lists)
        .map(|number| {
            // Lists are mostly in order, but a clock may have been set back.
            let late = made.below(4) as u64;
            let ingested = day(TODAY - 60 + (number * 60 / lists) as u16 - late as u16);
            days.insert(number, ingested);
            let rows = list(made, &all, number, &mut told);
            write(&folder.path().join(number.to_string()), &rows, ingested)
        })
        .collect();
    rebuild(folder.path(), &batches, &[], BuildSettings::default(), DateTime::UNIX_EPOCH)
        .expect("built");
    let index = open_current(folder.path()).expect("opens").index;
    let as_of = AsOf { today: day(TODAY), catch_days: 5 };
    let (mut listed, mut scratch) = (Vec::new(), Scratch::default());
    for (name, drops) in told {
        let (date, (_, release, again, first_batch)) = latest(&name, &drops);
        if again {
            continue;
        }
        listed.push(ExpectedDrop {
            alias: alias_of(name.as_str()),
            dqs: index.facts(&name, as_of).expect("it is there").dqs,
            rank: rank(&index, &name),
            date,
            release: Periods::for_tld(name.tld()).effective_release(date, release),
            first_batch,
            first_day: days[&first_batch],
            is_adult: Scorer::shared().base(&name, &mut scratch).is_adult(),
            name,
        });
    }
    listed.sort_by(|left, right| {
        let key = |row: &ExpectedDrop| (std::cmp::Reverse((row.dqs, row.rank)), row.name.length());
        key(left).cmp(&key(right)).then_with(|| left.name.as_str().cmp(right.name.as_str()))
    });
    Corpus { index, listed, batches: lists, days, _folder: folder }
}

impl ExpectedDrop {
    fn stage(&self, on: Day, catch_days: u16) -> Stage {
        let pending = Periods::for_tld(self.name.tld()).pending_delete_days;
        Stage::on(on, self.release, pending, catch_days)
    }

    fn passes(&self, query: &RuleQuery) -> bool {
        let RuleQuery { common, contains, .. } = query;
        let holds = |text: &Substring| {
            self.name.as_str().contains(text.as_str())
                || self.alias.as_ref().is_some_and(|alias| alias.contains(text.as_str()))
        };
        let label = to_unicode(self.name.label());
        let LabelFilter { starts, not_ends, digits, .. } = &common.label;
        (common.min_dqs..=common.max_dqs).contains(&self.dqs)
            && (common.min_len..=common.max_len).contains(&self.name.length())
            && !common.not_tlds.iter().any(|tld| tld == self.name.tld())
            && self.is_released_in(common.drop.release)
            && digits.is_none_or(|_| !label.contains(|char: char| char.is_ascii_digit()))
            && (starts.is_empty() || starts.iter().any(|text| label.starts_with(text.as_str())))
            && !not_ends.iter().any(|text| label.ends_with(text.as_str()))
            && (common.adult == Adult::Include || !self.is_adult)
            && (common.tlds.is_empty() || common.tlds.iter().any(|tld| tld == self.name.tld()))
            && contains.as_ref().is_none_or(holds)
    }

    fn is_released_in(&self, ReleaseRange { from, to }: ReleaseRange) -> bool {
        let time = ReleaseTime::of(self.name.tld(), self.release.into());
        let instant = |day: Day, second: u32| day.start() + TimeDelta::seconds(second.into());
        let first = time.at.map_or(instant(self.release, 0), UnixMs::instant);
        let last = time.at.map_or(instant(self.release, 86_399), UnixMs::instant);
        let second = |bound: Release| bound.second().map(SecondOfDay::get);
        from.is_none_or(|it| last >= instant(it.day, second(it).unwrap_or(0)))
            && to.is_none_or(|it| first <= instant(it.day, second(it).unwrap_or(86_399)))
    }

    fn fires(&self, rule: &DueRule, as_of: AsOf) -> bool {
        let wanted =
            |stage: &Stage| rule.query.stages.bits() & StageSet::from_stages(&[*stage]).bits() != 0;
        let stage = |on| self.stage(on, as_of.catch_days);
        let now = stage(as_of.today);
        if !wanted(&now) || !self.passes(&rule.query) {
            return false;
        }
        let has_entered = rule.query.common.drop.release != rule.releases_then
            && !self.is_released_in(rule.releases_then);
        if self.first_batch > rule.base.batch || has_entered {
            return true;
        }
        let last = stage(rule.base.day);
        let first = stage(self.first_day.max(rule.created)).min(last);
        let seen = |stage: &Stage| (first..=last).contains(stage);
        now > last && !Stage::ALL.iter().any(|stage| wanted(stage) && seen(stage))
    }
}

/// Returns a text that is common in names or hardly ever occurs in them.
fn text(made: &mut TestTables, listed: &[ExpectedDrop]) -> Option<Substring> {
    if listed.is_empty() || made.below(3) == 0 {
        return Substring::parse(&made.text(2)).ok();
    }
    let row = &listed[made.below(listed.len())];
    let form = row.alias.as_deref().filter(|_| made.below(2) == 0);
    let chars: Vec<char> = form.unwrap_or(row.name.as_str()).chars().collect();
    let first = made.below(chars.len());
    let len = made.below((chars.len() - first).min(6)) + 1;
    Some(Substring::from_stored(chars[first..first + len].iter().collect()))
}

fn query(made: &mut TestTables, listed: &[ExpectedDrop]) -> RuleQuery {
    let mut common = Filter::default();
    if made.below(3) == 0 {
        common.min_dqs = Dqs::clamped(made.below(102) as i32);
    }
    if made.below(3) == 0 {
        common.max_len = 1 + made.below(20) as u8;
    }
    if made.below(2) == 0 {
        common.adult = Adult::Include;
    }
    if made.below(3) == 0 {
        let tlds = ["com", "co.uk", "com.br", "xn--p1ai", "nosuch", "museum", "de", "se"];
        common.tlds = (0..=made.below(4)).map(|_| tlds[made.below(tlds.len())].into()).collect();
    }
    if made.below(5) == 0 {
        (common.max_dqs, common.min_len) = (Dqs::clamped(made.below(102) as i32), 4);
    }
    if made.below(5) == 0 {
        common.not_tlds = vec!["com".into(), "museum".into()];
    }
    if made.below(5) == 0 {
        common.label.digits = Some(Digits::None);
    }
    if made.below(5) == 0 {
        let texts = ["a", "s", "mü"].map(|text| Substring::parse(text).expect("a text"));
        (common.label.starts, common.label.not_ends) = (texts.to_vec(), texts[..2].to_vec());
    }
    if made.below(4) == 0 {
        let from = near(made, 40);
        // Some hours before and after those at which names are released.
        let hours = [None, Some(3), Some(4), Some(18), Some(19), Some(20)];
        let days = [0, 20][made.below(2)];
        let mut bound = |day| {
            let hour: Option<u32> = hours[made.below(hours.len())];
            Some(Release::new(day, hour.and_then(|hour| SecondOfDay::new(hour * 3_600))))
        };
        common.drop.release = ReleaseRange { from: bound(from), to: bound(from.plus(days)) };
    }
    let contains = if made.below(2) == 0 { text(made, listed) } else { None };
    let bits = made.below(16);
    let asked: Vec<Stage> =
        (0..4).filter(|at| bits >> at & 1 == 1).map(|at| Stage::ALL[at]).collect();
    RuleQuery { common, contains, stages: StageSet::from_stages(&asked) }
}

impl Corpus {
    fn check(&self, rules: &[DueRule], best_max: usize, block_docs: usize, as_of: AsOf) -> u32 {
        let found = self.index.matches_by(block_docs, rules, best_max, as_of);
        assert_eq!(found.len(), rules.len());
        for (rule, found) in rules.iter().zip(&found) {
            let expected: Vec<&ExpectedDrop> =
                self.listed.iter().filter(|row| row.fires(rule, as_of)).collect();
            assert_eq!(found.total as usize, expected.len(), "{rule:?} at {as_of:?}");
            let told: Vec<DroppedName> =
                found.best.iter().map(|&doc| self.index.listed_drop(doc, as_of)).collect();
            let expected: Vec<DroppedName> =
                expected.iter().take(best_max).map(|row| row.told(as_of)).collect();
            assert_eq!(told, expected, "{rule:?} at {as_of:?}");
        }
        found.iter().map(|found| found.total).sum()
    }
}

impl ExpectedDrop {
    fn told(&self, as_of: AsOf) -> DroppedName {
        DroppedName {
            name: self.name.clone(),
            dqs: self.dqs,
            drop_date: self.date,
            release: self.release,
            release_second: None,
            stage: self.stage(as_of.today, as_of.catch_days),
        }
    }
}

/// The preview of a rule equals the result of a scan: for each day, the names that delivery would
/// have sent.
#[test]
fn previews_are_those_of_a_scan() {
    let mut sent = 0;
    for (seed, names, lists) in [(11, 0, 0), (12, 300, 2), (13, 3_000, 5)] {
        let mut made = TestTables::new(seed);
        let corpus = corpus(&mut made, names, lists);
        for _ in 0..60 {
            let query = query(&mut made, &corpus.listed);
            let as_of = AsOf { today: near(&mut made, 60), catch_days: 5 };
            // Half of the ranges move with the day.
            let range = query.common.drop.release;
            let moves = made.below(2) == 0;
            let releases = |on: Day| {
                let moved = |bound: Release| {
                    Release::new(bound.day.plus(on.days_since(as_of.today)), bound.second())
                };
                match moves {
                    true => ReleaseRange { from: range.from.map(moved), to: range.to.map(moved) },
                    false => range,
                }
            };
            let preview = corpus.index.preview_moving(&query, releases, as_of).expect("readable");
            let passing: Vec<&ExpectedDrop> =
                corpus.listed.iter().filter(|row| row.passes(&query)).collect();
            let now = |row: &&&ExpectedDrop| {
                query.stages.bits() & StageSet::from_stages(&[row.stage(as_of.today, 5)]).bits()
                    != 0
            };
            let mut samples = Vec::new();
            preview.for_each_sample(|row| samples.push(row.name.to_owned()));
            let best = passing.iter().filter(now).take(10);
            assert_eq!(samples, best.map(|row| row.name.as_str()).collect::<Vec<_>>());
            assert_eq!(preview.today as usize, passing.iter().filter(now).count(), "{query:?}");
            assert_eq!(preview.per_day, corpus.sent_per_day(&query, &releases, as_of), "{query:?}");
            sent += preview.per_day.iter().map(|(_, count)| count).sum::<u32>();
            // The newest list is matched as in delivery.
            let Some((date, latest)) = preview.latest else {
                assert_eq!(corpus.batches, 0);
                continue;
            };
            let day_of = |number: u64| corpus.days[&number].min(as_of.today);
            let before = corpus.batches - 1;
            let then = if before > 0 { day_of(before).min(date) } else { date };
            let mut due = query.clone();
            due.common.drop.release = releases(date);
            let rule = DueRule {
                query: due,
                created: Day::MIN,
                base: Watermark { batch: before, day: then },
                releases_then: releases(then),
            };
            let on = AsOf { today: date, ..as_of };
            let found = corpus.index.matches(&[rule], 1, on);
            assert_eq!((date, latest), (day_of(corpus.batches), found[0].total), "{query:?}");
        }
    }
    assert!(sent > 1_000, "{sent}");
}

impl Corpus {
    /// Returns the messages that a rule would have sent on each day on which lists arrived.
    fn sent_per_day(
        &self,
        query: &RuleQuery,
        releases: &dyn Fn(Day) -> ReleaseRange,
        as_of: AsOf,
    ) -> Vec<(Day, u32)> {
        let listed: BTreeSet<Day> = self.days.values().map(|&day| day.min(as_of.today)).collect();
        let Some(&first) = listed.first() else { return Vec::new() };
        let dates = self.index.manifest().drop_dates.iter().copied();
        let days: BTreeSet<Day> =
            dates.filter(|&date| date <= first).chain(listed.into_iter().skip(1)).collect();
        let days: Vec<Day> = days.into_iter().collect();
        assert!(days.len() <= 30, "{days:?}");
        let mut sent = Vec::new();
        for (at, &now) in days.iter().enumerate() {
            let then = if at == 0 { now.plus(-1) } else { days[at - 1] };
            let mut due = query.clone();
            due.common.drop.release = releases(now);
            let rule = DueRule {
                query: due,
                created: Day::MIN,
                base: Watermark { batch: 1, day: then },
                releases_then: releases(then),
            };
            let fires = |row: &&ExpectedDrop| {
                let observed = row.first_day.min(as_of.today);
                let known = if observed <= first { row.date } else { observed };
                let batch = if known > then { 2 } else { 1 };
                let row = ExpectedDrop { first_batch: batch, first_day: known, ..(*row).clone() };
                known <= now && row.fires(&rule, AsOf { today: now, ..as_of })
            };
            sent.push((now, self.listed.iter().filter(fires).count() as u32));
        }
        sent.reverse();
        sent
    }
}

#[test]
fn matches_are_those_of_a_scan() {
    let mut fired = 0;
    for (seed, names, lists) in
        [(1, 0, 0), (2, 1, 1), (3, 40, 1), (4, 300, 3), (5, 2_000, 12), (6, 2_500, 80)]
    {
        let mut made = TestTables::new(seed);
        let corpus = corpus(&mut made, names, lists);
        for turn in 0..6 {
            let catch_days = [5, 5, 0, 1][made.below(4)];
            let as_of = AsOf { today: near(&mut made, 12), catch_days };
            // Most rules share a watermark.
            let shared = base(&mut made, corpus.batches);
            let rules: Vec<DueRule> = (0..[0, 1, 60][turn % 3])
                .map(|_| {
                    let query = query(&mut made, &corpus.listed);
                    // A range that moves was different some days ago.
                    let (ReleaseRange { from, to }, days) =
                        (query.common.drop.release, made.below(9) as i32);
                    let moved =
                        |bound: Release| Release::new(bound.day.plus(-days), bound.second());
                    let earlier = |bound: Option<Release>| bound.map(moved);
                    DueRule {
                        releases_then: ReleaseRange { from: earlier(from), to: earlier(to) },
                        query,
                        created: near(&mut made, 70),
                        base: if made.below(4) == 0 {
                            base(&mut made, corpus.batches)
                        } else {
                            shared
                        },
                    }
                })
                .collect();
            let block_docs =
                [BLOCK_DOCS, 64, 100, 1][made.below(if names > 1_000 { 3 } else { 4 })];
            fired += corpus.check(&rules, [0, 3, 500][made.below(3)], block_docs, as_of);
        }
    }
    assert!(fired > 4_000, "too few names fired: {fired}");
}

fn base(made: &mut TestTables, batches: u64) -> Watermark {
    // Most rules were matched against all lists, and some against another list that existed before
    // a rollback.
    let most = batches as usize + 2;
    let batch = if made.below(2) == 0 { batches } else { made.below(most) as u64 };
    Watermark { batch, day: near(made, 30) }
}

/// Lists arrive and days pass, and each rule continues from its watermark: no name fires twice, and
/// every name fires that was in one of the rule's stages when a list arrived.
#[test]
fn a_name_fires_once_over_all_days() {
    let mut made = TestTables::new(7);
    let corpus = corpus(&mut made, 1_500, 1);
    let mut fired_in_all = 0;
    for _ in 0..40 {
        let query = query(&mut made, &corpus.listed);
        let created = near(&mut made, 5);
        let rule = |base| DueRule {
            query: query.clone(),
            created,
            base,
            releases_then: query.common.drop.release,
        };
        let before = Watermark { batch: 0, day: created };
        let (mut base, mut today) = (before, created);
        let (mut fired, mut in_stages) = (Vec::<u32>::new(), Vec::new());
        for _ in 0..12 {
            let as_of = AsOf { today, catch_days: 5 };
            let rules = [rule(base), rule(before)];
            let found = corpus.index.matches(&rules, usize::MAX, as_of);
            fired.extend(&found[0].best);
            in_stages.extend(&found[1].best);
            base = Watermark { batch: 1, day: today };
            today = today.plus(made.below(9) as i32);
        }
        fired.sort_unstable();
        assert!(fired.is_sorted_by(|left, right| left < right), "{query:?}");
        fired_in_all += fired.len();
        in_stages.sort_unstable();
        in_stages.dedup();
        let bits = query.stages.bits() >> query.stages.bits().trailing_zeros();
        if (bits + 1).is_power_of_two() {
            assert_eq!(fired, in_stages, "{query:?}");
        } else {
            // In a gap, a name that passed through some of the stages while no list arrived counts
            // as sent.
            assert!(fired.iter().all(|doc| in_stages.binary_search(doc).is_ok()), "{query:?}");
        }
    }
    assert!(fired_in_all > 1_000, "too few names fired: {fired_in_all}");
}
