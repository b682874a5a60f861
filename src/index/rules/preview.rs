//! Preview of an alert rule: how many names match today, and how many it would have sent on each of
//! the most recent days that have lists, by the conditions of delivery ([`Moved`]). A preview takes one
//! walk over the matches, up to the whole drops list.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use crate::error::QueryError;
use crate::filter::{AsOf, DropFilter, RuleQuery, Sort, View, stage_code_in};
use crate::query::index::{Generation, Index, Layer};
use crate::query::merge::merged;
use crate::query::rows::DropRow;
use crate::rules::news::Moved;
use crate::vocab::day::Day;
use crate::vocab::limits::{PREVIEW_DAYS, PREVIEW_SAMPLES};
use crate::vocab::release_time::Release;
use dropdex_query::filter::ReleaseRange;

/// Minimum number of docs per microsecond of a walk.
const DOCS_PER_US: u32 = 100;

/// The preview of a rule.
pub struct Preview<'a> {
    /// Number of names that match now and are in one of the stages of the rule.
    pub today: u32,
    /// The most recent [`PREVIEW_DAYS`] days that have lists, up to today, newest first, with the number of
    /// names that the rule would have sent on each.
    pub per_day: Vec<(Day, u32)>,
    /// The day of the newest list, and the number of names that the rule would have sent for it.
    pub latest: Option<(Day, u32)>,
    index: &'a Index,
    as_of: AsOf,
    /// Places of the best current matches.
    samples: Vec<u32>,
}

impl Preview<'_> {
    /// Calls `visit` with the best names that match now, best first, up to [`PREVIEW_SAMPLES`].
    pub fn for_each_sample(&self, mut visit: impl FnMut(&DropRow<'_>)) {
        self.index.shape_drops(&self.samples, self.as_of, |_, row| visit(row));
    }
}

/// A match of lists: its day (`now`), the day of the match before it (`then`), and the range of
/// releases on each.
#[derive(Clone, Copy)]
struct Match {
    then: Day,
    now: Day,
    releases_then: ReleaseRange,
    releases_now: ReleaseRange,
}

/// Facts that decide when a name fires.
struct Facts {
    /// With the second of its start if it is known and a range has an instant.
    release: Release,
    pending_days: u16,
    /// The day on which the name became known.
    known: Day,
}

/// The days on which lists were observed.
struct Lists {
    /// Matches, oldest first.
    matches: Vec<Match>,
    /// For each day, 1 plus the number of the match that reports the news of that day; 0 if there
    /// is none.
    by_day: Vec<u8>,
    /// For each day of release, the bits of the matches whose range some names of the day may enter.
    entered_by_release: Vec<u32>,
    /// The day of the first lists, which hold earlier drops.
    first: Day,
    catch_days: i32,
    /// Whether a range has an instant.
    reads_seconds: bool,
}

impl Match {
    /// The conditions of delivery, which decide whether the rule would have sent a name.
    fn fires(&self, facts: &Facts, is_new: bool, stages: u8, catch_days: i32) -> bool {
        let Release { day, .. } = facts.release;
        let release = day.raw();
        let is_in = |range: ReleaseRange| range.contains(day, || facts.release.second());
        let code = |day: Day| {
            let left = i32::from(release) - i32::from(day.raw());
            stage_code_in(left, facts.pending_days, catch_days)
        };
        let (then, now) = (code(self.then), code(self.now));
        if stages & now == 0 || !is_in(self.releases_now) {
            return false;
        }
        let known = code(facts.known.min(self.then));
        let moved = Moved { place: 0, release, pending_days: facts.pending_days, known, then, now };
        is_new
            || !is_in(self.releases_then)
            || then < now && moved.is_news(stages, Day::MIN, catch_days)
    }
}

impl Lists {
    fn new(index: &Index, releases: impl Fn(Day) -> ReleaseRange, as_of: AsOf) -> Lists {
        let observed = index.observed_days(as_of.today);
        let first = observed.first().copied().unwrap_or(as_of.today);
        // The first lists hold drops of many days. These drops are counted as if each day had had
        // its own list.
        let dropped = index.manifest().drop_dates.iter().copied().filter(|&date| date <= first);
        let later = observed.into_iter().filter(|&day| day > first);
        let days: Vec<Day> = dropped.chain(later).collect::<BTreeSet<_>>().into_iter().collect();
        let from = days.len().saturating_sub(PREVIEW_DAYS);
        let before = match from {
            0 => days.first().map(|day| day.plus(-1)),
            _ => days.get(from - 1).copied(),
        };
        let mut matches: Vec<Match> = Vec::new();
        let mut then = before.map(|day| (day, releases(day)));
        for &now in &days[from..] {
            let (before, releases_then) = then.expect("there is a day");
            let releases_now = releases(now);
            matches.push(Match { then: before, now, releases_then, releases_now });
            then = Some((now, releases_now));
        }
        let mut lists = Lists {
            by_day: vec![0; usize::from(u16::MAX) + 1],
            entered_by_release: Vec::new(),
            matches,
            first,
            catch_days: as_of.catch_days.into(),
            reads_seconds: releases(as_of.today).has_instant(),
        };
        for (at, found) in (1..).zip(&lists.matches) {
            lists.by_day[usize::from(found.then.raw()) + 1..=usize::from(found.now.raw())].fill(at);
        }
        if lists.matches.iter().any(|it| it.releases_now != it.releases_then) {
            let entered = |raw: u16| {
                let Some(day) = Day::from_raw(raw) else { return 0 };
                let enters = |it: &Match| {
                    it.releases_now.days().contains(day) && !it.releases_then.contains_all(day)
                };
                (0..)
                    .zip(&lists.matches)
                    .fold(0, |bits, (at, it)| bits | u32::from(enters(it)) << at)
            };
            lists.entered_by_release = (0..=u16::MAX).map(entered).collect();
        }
        lists
    }

    /// Returns the bits of the matches for which a name fires.
    fn fired(&self, facts: &Facts, stages: u8) -> u32 {
        let release = i32::from(facts.release.day.raw());
        // A name fires only on days on which it changes.
        let changes = [
            i32::from(facts.known.raw()),
            release - i32::from(facts.pending_days),
            release,
            release + self.catch_days,
        ];
        let number = |day: i32| {
            let number = usize::try_from(day).ok().and_then(|day| self.by_day.get(day));
            number.copied().filter(|&number| number > 0)
        };
        let entered = self.entered_by_release.get(usize::from(facts.release.day.raw()));
        let mut due = changes
            .into_iter()
            .filter_map(number)
            .fold(entered.copied().unwrap_or_default(), |bits, number| bits | 1 << (number - 1));
        let mut fired = 0;
        while due != 0 {
            let at = due.trailing_zeros();
            due &= due - 1;
            let found = self.matches[at as usize];
            let is_new = facts.known > found.then;
            if facts.known <= found.now && found.fires(facts, is_new, stages, self.catch_days) {
                fired |= 1 << at;
            }
        }
        fired
    }
}

impl Index {
    /// Previews a rule whose range of effective releases is the same on every day.
    ///
    /// # Errors
    /// [`QueryError`]; does not happen with verified files.
    pub fn preview(&self, query: &RuleQuery, as_of: AsOf) -> Result<Preview<'_>, QueryError> {
        self.preview_moving(query, |_| query.common.drop.release, as_of)
    }

    /// Previews a rule with these conditions. `releases` is the rule's range of effective releases
    /// on a day.
    ///
    /// # Errors
    /// [`QueryError`]; does not happen with verified files.
    pub fn preview_moving(
        &self,
        query: &RuleQuery,
        releases: impl Fn(Day) -> ReleaseRange,
        as_of: AsOf,
    ) -> Result<Preview<'_>, QueryError> {
        let day = self.day(as_of);
        let release_now = query.common.drop.release;
        let mut common = query.common.clone();
        // The range moves with the day, like stages.
        common.drop.release = ReleaseRange::default();
        let filter = DropFilter {
            common,
            view: View::All,
            contains: query.contains.clone(),
            sort: Sort::default(),
            sort_fact: None,
            after: None,
            limit: u32::MAX,
            offset: 0,
        };
        let stages = query.stages.bits();
        let lists = Lists::new(self, &releases, as_of);
        let newest = self.newest_match(&releases, as_of);
        let mut by_match = vec![0; lists.matches.len()];
        let (mut today, mut latest, mut samples) = (0, 0, Vec::new());
        for (layer, day) in self.layers_on(&day) {
            let mut best = Vec::new();
            let first_batches = layer.drops_by_rank.first_batches();
            layer.walk_drops(&filter, day, |doc| {
                let batch = first_batches.number(doc);
                let Some(facts) = layer.facts_of(doc, batch, &lists, as_of) else {
                    return ControlFlow::Continue(());
                };
                let mut fired = lists.fired(&facts, stages);
                while fired != 0 {
                    by_match[fired.trailing_zeros() as usize] += 1;
                    fired &= fired - 1;
                }
                let Release { day: release_day, .. } = facts.release;
                let second = || facts.release.second();
                if let Some((number, found)) = &newest {
                    // As in delivery, a name is known from the day of its ingestion.
                    let known = first_batches.day(batch).min(as_of.today);
                    let (facts, is_new) = (Facts { known, ..facts }, batch >= *number);
                    latest += u32::from(found.fires(&facts, is_new, stages, lists.catch_days));
                }
                if day.stages.code(doc) & stages != 0 && release_now.contains(release_day, second) {
                    today += 1;
                    if best.len() < PREVIEW_SAMPLES {
                        best.push(layer.place(doc));
                    }
                }
                ControlFlow::Continue(())
            })?;
            samples.push(best);
        }
        let samples = merged(samples, PREVIEW_SAMPLES, |&one, &other| {
            self.compare_places(filter.sort, one, other)
        });
        let per_day = lists.matches.iter().map(|found| found.now).zip(by_match).rev().collect();
        let latest = newest.map(|(_, found)| (found.now, latest));
        Ok(Preview { today, per_day, latest, index: self, as_of, samples })
    }

    /// Estimates the microseconds of a preview; see [`Index::search_cost_us`].
    pub fn preview_cost_us(&self, as_of: AsOf) -> u32 {
        self.day_cost_us(as_of) + PREVIEW_SAMPLES as u32 + self.manifest().drops / DOCS_PER_US
    }

    /// Returns the days up to `today` on which lists were observed, oldest first.
    fn observed_days(&self, today: Day) -> BTreeSet<Day> {
        let mut days = BTreeSet::new();
        for layer in self.layers() {
            let batches = 1..=layer.drops_by_rank.first_batches().newest();
            days.extend(batches.map(|number| observed_day(layer, number).min(today)));
        }
        days
    }

    /// Returns the number of the newest list, and its match, which follows the match of the
    /// previous list.
    fn newest_match(
        &self,
        releases: impl Fn(Day) -> ReleaseRange,
        as_of: AsOf,
    ) -> Option<(u32, Match)> {
        let newest_of = |layer: &&Layer| layer.drops_by_rank.first_batches().newest();
        let layer = self.layers().iter().max_by_key(newest_of)?;
        let number = newest_of(&layer);
        let day = |number: u32| layer.drops_by_rank.first_batches().day(number).min(as_of.today);
        let now = (number > 0).then(|| day(number))?;
        let then = if number > 1 { day(number - 1).min(now) } else { now };
        let (releases_then, releases_now) = (releases(then), releases(now));
        Some((number, Match { then, now, releases_then, releases_now }))
    }
}

impl Generation {
    /// Returns `None` for a doc without a release, which does not occur in verified files.
    fn facts_of(&self, doc: u32, batch: u32, lists: &Lists, as_of: AsOf) -> Option<Facts> {
        let listed = &self.drops_by_rank;
        let observed = observed_day(self, batch).min(as_of.today);
        let known = match observed <= lists.first {
            true => Day::from_raw(listed.drop_date(doc))?,
            false => observed,
        };
        let pending_days = self.tlds.pending_days(listed.tld(doc));
        let second = lists.reads_seconds.then(|| self.start_second(doc)).flatten();
        let release = Release::new(Day::from_raw(listed.release(doc))?, second);
        Some(Facts { release, pending_days, known })
    }
}

fn observed_day(layer: &Generation, batch: u32) -> Day {
    Day::nearest(layer.drops_by_rank.first_batches().observed(batch).instant())
}
