//! Pages of the drops list in orders other than rank order, and positions of rows that stay valid
//! in later generations.
//!
//! If the total is known, the values of the key are visited one after the other, and the docs of each value
//! in rank order, until the page is full. Otherwise, or if that takes too long, the docs that pass the
//! filter are collected as a bitmap, and the page consists of the best of these docs by the column of the
//! key.
//!
//! Most keys have bitmaps by bit ([`crate::columns::slices`]), which narrow the matches to a few
//! before keys are compared. To sort by name, docs are visited in the stored name order until the
//! page is full, or are sorted if there are few. Stored permutations would cost four bytes per name
//! and key.

use std::cmp::Ordering;
use std::ops::{Range, RangeInclusive};

use crate::columns::checks::raw_range;
use crate::columns::day_column::DayColumn;
use crate::columns::drops_by_rank::{DayOf, Part, PartValue};
use crate::columns::properties::Property;
use crate::columns::rank_key::order_key;
use crate::columns::slices::{Slices, Spread, ValueSet, docs_of, ones};
use crate::error::QueryError;
use crate::filter::{AsOf, DropFilter, RowPosition, Sort, SortKey, View, stage_code};
use crate::query::index::{Generation, Index, Layer, LayerDay};
use crate::vocab::budget;
use crate::vocab::dqs::Dqs;
use crate::vocab::fact::FactColumnId;
use crate::vocab::popularity::ListRank;
use crate::vocab::stage::Stage;
use crate::vocab::time::UnixMs;

/// Maximum number of matches whose keys are compared one by one. For so few matches, reducing their number
/// by bitmaps first would take longer.
const FEW: u32 = if cfg!(debug_assertions) { 40 } else { 20_000 };
/// Cost of comparing a name with the others, measured in bitmap lookups.
const NAME_LOOKS: u64 = 32;
/// Number of lists whose names are visited one after the other.
const LISTS_TRIED: usize = 4;
/// Number of additional docs that are kept beyond the page before the worst are dropped.
const SPARE: usize = 1_000;
/// Takes a doc and the value by which it is sorted.
type Visit<'a> = dyn FnMut(u32, u64) + 'a;
/// Value of a name on no popularity list, which is above every rank.
const NO_RANK: u64 = ListRank::MAX as u64 + 1;
/// Words between two checks of the time budget.
const WORDS_PER_LOOK: usize = 1 << 12;
/// Maximum number of words, and maximum share of all words, that are walked for docs of single values: up to these
/// limits, a bitmap of all docs takes longer.
const WORDS_WALKED: usize = if cfg!(debug_assertions) { 1 << 8 } else { 1 << 12 };
const WALKED_PART: usize = 8;

/// Column of a sort key with few values, each of which is a bitmap of docs. Values sort like keys.
struct KeyColumn<'a> {
    slices: &'a Slices,
    /// If the values are periods of days.
    days: Option<(DayOf, &'a DayColumn)>,
    /// Difference between the key of a doc and its number in the column.
    plus: u16,
}

impl KeyColumn<'_> {
    /// Returns the value of docs with a key.
    fn value_of(&self, key: u64) -> u8 {
        let number = u16::try_from(key).unwrap_or(u16::MAX).saturating_sub(self.plus);
        self.days.map_or_else(|| self.slices.value_of(number), |(_, days)| days.period(number))
    }

    /// Returns the numbers of docs with a value.
    fn numbers_of(&self, value: u8) -> RangeInclusive<u16> {
        self.days.map_or_else(|| self.slices.numbers_of(value), |(_, days)| days.days_of(value))
    }

    /// Returns true if all docs with a value have the same key.
    fn is_exact(&self, value: u8) -> bool {
        let numbers = self.numbers_of(value);
        numbers.start() == numbers.end()
    }
}

/// The docs with one value of a sort key.
pub(crate) struct ValuePart<'a> {
    keys: RangeInclusive<u64>,
    /// See [`Part`].
    docs: Range<u32>,
    value: Option<PartValue<'a>>,
    count: u32,
    /// Number of words to visit for all of these docs.
    words: usize,
}

impl ValuePart<'_> {
    /// Returns true if all docs have the same key.
    fn is_exact(&self) -> bool {
        self.keys.start() == self.keys.end()
    }
}

/// How to fill a page value by value.
pub(crate) struct ValueWalk<'a> {
    parts: Vec<ValuePart<'a>>,
    /// Words that are expected to be visited.
    pub(crate) words: usize,
}

impl Layer {
    /// Returns up to `take` of the `total` docs in `matches`, in the order of `filter`, from its
    /// position and offset on.
    pub(crate) fn sorted_docs(
        &self,
        filter: &DropFilter,
        mut matches: Vec<u64>,
        total: u32,
        take: usize,
    ) -> Vec<u32> {
        let skip = filter.offset as usize;
        let wanted = take.saturating_add(skip);
        let mut docs = match filter.sort.key {
            SortKey::Name => self.by_name(filter, &matches, total, wanted),
            SortKey::Rank => {
                let ranks = self.drops_by_rank.popularity().all();
                let ranks = ranks.map(|(doc, best)| (doc, best.get().into()));
                let each = |visit: &mut Visit<'_>| ranks.for_each(|(doc, rank)| visit(doc, rank));
                self.by_few(filter, &mut matches, wanted, each, NO_RANK)
            }
            SortKey::Fact => {
                let each = |visit: &mut Visit<'_>| self.each_fact(filter.sort.fact, visit);
                let unknown = fact_value(None, filter.sort);
                self.by_few(filter, &mut matches, wanted, each, unknown)
            }
            SortKey::SuffixRank | SortKey::ExpectedTaken => self.by_key(filter, &matches, wanted),
            _ if total <= FEW => self.by_key(filter, &matches, wanted),
            SortKey::Dqs => self.by_score(filter, &matches, wanted),
            SortKey::Listed => self.by_list(filter, &mut matches, wanted),
            SortKey::Release | SortKey::Dropped | SortKey::Length | SortKey::Tlds => {
                if let Some(column) = self.key_column(filter.sort.key) {
                    self.narrow(filter, &column, &mut matches, wanted);
                }
                self.by_key(filter, &matches, wanted)
            }
        };
        docs.drain(..skip.min(docs.len()));
        docs
    }

    /// Computes the result of [`Layer::sorted_docs`] without a bitmap of the docs; `None` if that
    /// is not faster.
    pub(crate) fn docs_by_value(
        &self,
        filter: &DropFilter,
        day: &LayerDay,
        total: u32,
        take: usize,
    ) -> Result<Option<Vec<u32>>, QueryError> {
        let Some(ValueWalk { parts, words }) = self.walk_by_value(filter, day, total, take) else {
            return Ok(None);
        };
        let skip = filter.offset as usize;
        let up_to = take.saturating_add(skip);
        let after = filter.after.as_ref().map(|it| (it.value, self.first_after(it)));
        // Matches may be rarer among the first values than among all.
        let mut words = 2 * words + WORDS_WALKED;
        let mut docs = Vec::new();
        for part in parts {
            if !part.is_exact() {
                return Ok(None);
            }
            let mut range = part.docs;
            if let Some((_, doc)) = after.filter(|(key, _)| part.keys.contains(key)) {
                range.start = range.start.max(doc);
            }
            let part = Part { docs: range, value: part.value, up_to, words };
            let beside = self.beside();
            let left = self.drops_by_rank.append_part(filter, &day.stages, beside, part, &mut docs);
            match left.map_err(|source| self.query_error(source))? {
                Some(left) => words = left,
                None => return Ok(None),
            }
            if docs.len() >= up_to {
                break;
            }
        }
        docs.drain(..skip.min(docs.len()));
        Ok(Some(docs))
    }

    /// Returns the walk that finds a page of the `total` docs that pass `filter`, value by value of its
    /// sort key; `None` if that is not faster than a bitmap of all of them.
    pub(crate) fn walk_by_value(
        &self,
        filter: &DropFilter,
        day: &LayerDay,
        total: u32,
        take: usize,
    ) -> Option<ValueWalk<'_>> {
        let up_to = take.saturating_add(filter.offset as usize);
        if total <= FEW || up_to >= total as usize {
            return None;
        }
        let mut parts = self.value_parts(filter.sort, &possible_numbers(filter, day.as_of))?;
        let docs: u64 = parts.iter().map(|part| u64::from(part.count)).sum();
        if let Some(after) = &filter.after {
            let is_before = |keys: &RangeInclusive<u64>| match filter.sort.descending {
                true => after.value < *keys.start(),
                false => after.value > *keys.end(),
            };
            parts.retain(|part| !is_before(&part.keys));
        }
        let most = (self.drops_by_rank.len() as usize / 64 / WALKED_PART).max(WORDS_WALKED);
        // Assumes that each value has the same share of matches.
        let (mut words, mut wanted) = (0, up_to as u64);
        for part in &parts {
            if !part.is_exact() {
                return None;
            }
            let matches = u64::from(part.count) * u64::from(total) / docs.max(1);
            if matches >= wanted {
                words += (part.words as u64 * wanted / matches.max(1)) as usize;
                break;
            }
            words += part.words;
            wanted -= matches;
        }
        (words <= most).then_some(ValueWalk { parts, words })
    }

    /// Returns the docs of each value of a sort key, in its order, if they may have one of `possible` as
    /// their number in its column; `None` for a key without few values.
    fn value_parts(
        &self,
        sort: Sort,
        possible: &RangeInclusive<u16>,
    ) -> Option<Vec<ValuePart<'_>>> {
        let drops = &self.drops_by_rank;
        let mut parts: Vec<ValuePart<'_>> = match self.key_column(sort.key) {
            None if sort.key == SortKey::Dqs => {
                let part = |points: u8| {
                    let docs = drops.docs_with(Dqs::clamped(points.into()));
                    let (count, key) = (docs.len() as u32, u64::from(points));
                    let words = docs.len().div_ceil(64);
                    ValuePart { keys: key..=key, docs, value: None, count, words }
                };
                (Dqs::MIN.points()..=Dqs::MAX.points()).map(part).collect()
            }
            column => {
                let column = column?;
                let plus = |number: u16| u64::from(number) + u64::from(column.plus);
                let part = |value: u8, words, numbers: &RangeInclusive<u16>, day, count| {
                    let value = Some(PartValue { column: column.slices, value, day });
                    let keys = plus(*numbers.start())..=plus(*numbers.end());
                    ValuePart { keys, docs: 0..drops.len(), value, count, words }
                };
                let mut parts = Vec::new();
                for value in 0..=Slices::VALUE_MAX {
                    let numbers = column.numbers_of(value);
                    if numbers.start() > possible.end() || possible.start() > numbers.end() {
                        continue;
                    }
                    let Spread { docs, words } = column.slices.spread(value);
                    match column.days.filter(|_| docs > 0 && !column.is_exact(value)) {
                        None => parts.push(part(value, words, &numbers, None, docs)),
                        Some((of, days)) => parts.extend(
                            days.days_in(&numbers)
                                .iter()
                                .filter(|(day, _)| possible.contains(day))
                                .map(|&(day, count)| {
                                    part(value, words, &(day..=day), Some((of, day)), count)
                                }),
                        ),
                    }
                }
                parts
            }
        };
        parts.retain(|part| part.count > 0);
        if sort.descending {
            parts.reverse();
        }
        Some(parts)
    }

    /// Returns the column of a key whose values are bitmaps.
    fn key_column(&self, key: SortKey) -> Option<KeyColumn<'_>> {
        let drops = &self.drops_by_rank;
        let (dropped, release) = drops.day_columns();
        let property = |property, plus| {
            let slices = drops.properties().column(property);
            KeyColumn { slices, days: None, plus }
        };
        let days = |of, days| {
            Some(KeyColumn { slices: DayColumn::periods(days), days: Some((of, days)), plus: 0 })
        };
        match key {
            SortKey::Release => days(DayOf::Release, release),
            SortKey::Dropped => days(DayOf::Drop, dropped),
            SortKey::Tlds => Some(property(Property::OtherTlds, 1)),
            SortKey::Length => Some(property(Property::Length, 0)),
            SortKey::Dqs
            | SortKey::Name
            | SortKey::Listed
            | SortKey::Rank
            | SortKey::SuffixRank
            | SortKey::ExpectedTaken
            | SortKey::Fact => None,
        }
    }

    /// Clears the bits of docs that are not on the page, as far as the bitmaps of the key tell.
    fn narrow(&self, filter: &DropFilter, key: &KeyColumn<'_>, matches: &mut [u64], wanted: usize) {
        let descending = filter.sort.descending;
        let column = key.slices;
        let docs_with = |value: u8, matches: &[u64]| {
            let mut same = matches.to_vec();
            column.keep(&column.test(ValueSet::of(|other| other == value)), 0, &mut same);
            same
        };
        let mut best = wanted;
        if let Some(position) = &filter.after {
            let after = key.value_of(position.value);
            let is_later = |value| if descending { value <= after } else { value >= after };
            column.keep(&column.test(ValueSet::of(is_later)), 0, matches);
            let same = docs_with(after, matches);
            if key.is_exact(after) {
                let first = self.first_after(position);
                docs_of(0, &same, |doc| {
                    matches[doc as usize / 64] &= !(u64::from(doc < first) << (doc % 64));
                });
            } else {
                // Some of the docs are before the page.
                best += ones(&same) as usize;
            }
        }
        let best = u32::try_from(best).unwrap_or(u32::MAX);
        let last = column.keep_best(descending, best, matches);
        if let Some(last) = last.filter(|&last| key.is_exact(last)) {
            let (mut left, same) = (best, docs_with(last, matches));
            for (word, same) in matches.iter_mut().zip(same) {
                if left == 0 {
                    *word &= !same;
                }
                left = left.saturating_sub(same.count_ones());
            }
        }
    }

    /// Sorts by score, lowest first. Docs with the same score are adjacent.
    fn by_score(&self, filter: &DropFilter, matches: &[u64], wanted: usize) -> Vec<u32> {
        let after = filter.after.as_ref().map(|after| (after.value, self.first_after(after)));
        let mut docs = Vec::new();
        for points in Dqs::MIN.points()..=Dqs::MAX.points() {
            let score = u64::from(points);
            let mut range = self.drops_by_rank.docs_with(Dqs::clamped(points.into()));
            match after {
                Some((value, _)) if score < value => continue,
                Some((value, first)) if score == value => range.start = range.start.max(first),
                _ => {}
            }
            if docs.len() >= wanted || budget::spent() {
                break;
            }
            let words = range.start as usize / 64..(range.end as usize).div_ceil(64);
            docs_of(words.start, matches.get(words).unwrap_or_default(), |doc| {
                if range.contains(&doc) {
                    docs.push(doc);
                }
            });
        }
        docs.truncate(wanted);
        docs
    }

    /// Sorts by observation of the first list: first the names of the lists that come first in the
    /// order, one list after the other, then the others by comparison.
    fn by_list(&self, filter: &DropFilter, matches: &mut [u64], wanted: usize) -> Vec<u32> {
        let lists = self.drops_by_rank.first_batches();
        let mut instants: Vec<UnixMs> = (1..=lists.newest()).map(|it| lists.observed(it)).collect();
        instants.sort_unstable();
        instants.dedup();
        if filter.sort.descending {
            instants.reverse();
        }
        let after = filter.after.as_ref();
        if let Some(after) = after {
            let is_before = |at: &UnixMs| match filter.sort.descending {
                true => at.get() > after.value,
                false => at.get() < after.value,
            };
            instants.drain(..instants.partition_point(is_before));
        }
        let mut docs = Vec::new();
        for instant in instants.into_iter().take(LISTS_TRIED) {
            let first = match after {
                Some(after) if after.value == instant.get() => self.first_after(after),
                _ => 0,
            };
            let mut part = matches.to_vec();
            lists.keep(&lists.observed_at(instant), 0, &mut part);
            matches.iter_mut().zip(&part).for_each(|(word, part)| *word &= !part);
            docs_of(0, &part, |doc| {
                if doc >= first && docs.len() < wanted {
                    docs.push(doc);
                }
            });
            if docs.len() == wanted {
                return docs;
            }
        }
        docs.extend(self.by_key(filter, matches, wanted - docs.len()));
        docs
    }

    /// Sorts by the values of some docs, each of which `each` visits. The others have the value `none`, and are in rank
    /// order. Only the first ones are held, since a fact may be that of every name.
    fn by_few(
        &self,
        filter: &DropFilter,
        matches: &mut [u64],
        wanted: usize,
        each: impl FnOnce(&mut Visit<'_>),
        none: u64,
    ) -> Vec<u32> {
        let key = |value: u64| if filter.sort.descending { !value } else { value };
        let after = filter.after.as_ref().map(|it| (key(it.value), self.first_after(it)));
        let is_after = |found: (u64, u32)| after.is_none_or(|after| found >= after);
        let mut ranked: Vec<(u64, u32)> = Vec::new();
        let mut worst = (u64::MAX, u32::MAX);
        let trim_at = wanted.saturating_mul(2).saturating_add(SPARE);
        each(&mut |doc, value| {
            // Names that were registered again follow those of the list.
            let Some(word) = matches.get_mut(doc as usize / 64) else { return };
            let found = (key(value), doc);
            if *word >> (doc % 64) & 1 == 1 && found < worst && is_after(found) {
                ranked.push(found);
                if ranked.len() >= trim_at && wanted > 0 {
                    worst = *ranked.select_nth_unstable(wanted - 1).1;
                    ranked.truncate(wanted);
                }
            }
            *word &= !(1 << (doc % 64));
        });
        ranked.sort_unstable();
        let others_first = ranked.first().is_none_or(|(first, _)| key(none) < *first);
        let ranked = ranked.into_iter().map(|(_, doc)| doc);
        let mut others = Vec::new();
        if !others_first && ranked.len() >= wanted {
            return ranked.take(wanted).collect();
        }
        for (look, words) in matches.chunks(WORDS_PER_LOOK).enumerate() {
            if others.len() >= wanted || budget::spent() {
                break;
            }
            docs_of(look * WORDS_PER_LOOK, words, |doc| {
                if is_after((key(none), doc)) {
                    others.push(doc);
                }
            });
        }
        match others_first {
            true => others.into_iter().chain(ranked).take(wanted).collect(),
            false => ranked.chain(others).take(wanted).collect(),
        }
    }

    fn by_key(&self, filter: &DropFilter, matches: &[u64], wanted: usize) -> Vec<u32> {
        let Sort { descending, .. } = filter.sort;
        let directed = |value: u64| if descending { !value } else { value };
        let after =
            filter.after.as_ref().map(|after| (directed(after.value), self.first_after(after)));
        let mut best: Vec<(u64, u32)> = Vec::new();
        let mut worst = (u64::MAX, u32::MAX);
        let trim_at = wanted.saturating_mul(2).saturating_add(SPARE);
        for (look, words) in matches.chunks(WORDS_PER_LOOK).enumerate() {
            if budget::spent() {
                break;
            }
            docs_of(look * WORDS_PER_LOOK, words, |doc| {
                let found = (directed(self.sort_value(filter.sort, doc)), doc);
                if found < worst && after.is_none_or(|after| found >= after) {
                    best.push(found);
                    if best.len() >= trim_at && wanted > 0 {
                        worst = *best.select_nth_unstable(wanted - 1).1;
                        best.truncate(wanted);
                    }
                }
            });
        }
        best.sort_unstable();
        best.truncate(wanted);
        best.into_iter().map(|(_, doc)| doc).collect()
    }

    fn by_name(&self, filter: &DropFilter, matches: &[u64], total: u32, wanted: usize) -> Vec<u32> {
        let descending = filter.sort.descending;
        let directed = |order: Ordering| if descending { order.reverse() } else { order };
        let places = self.drops_by_name.docs();
        let looks = places.len() as u64 * wanted as u64;
        if u64::from(total) * u64::from(total) * NAME_LOOKS <= looks {
            let after = filter.after.as_ref().map(|after| after.name.as_str());
            let is_after = |doc: u32| {
                after.is_none_or(|after| directed(self.compare_name(doc, after)).is_gt())
            };
            let mut docs: Vec<(u64, u32)> = Vec::with_capacity(total as usize);
            docs_of(0, matches, |doc| {
                if is_after(doc) {
                    docs.push((self.name_start(doc), doc));
                }
            });
            docs.sort_unstable_by(|one, other| {
                let order = one.0.cmp(&other.0);
                directed(order.then_with(|| self.name_bytes(one.1).cmp(self.name_bytes(other.1))))
            });
            docs.truncate(wanted);
            return docs.into_iter().map(|(_, doc)| doc).collect();
        }
        let holds = |doc: &u32| {
            let word = matches.get(*doc as usize / 64);
            word.is_some_and(|word| word >> (doc % 64) & 1 == 1)
        };
        // In both directions of the order, the rows before the position come first.
        let doc = |place| places.get(place);
        if descending {
            let end = filter.after.as_ref().map_or(places.len(), |after| {
                places.partition_point(|doc| self.compare_name(doc, &after.name).is_lt())
            });
            (0..end).rev().map(doc).filter(holds).take(wanted).collect()
        } else {
            let start = filter.after.as_ref().map_or(0, |after| {
                places.partition_point(|doc| self.compare_name(doc, &after.name).is_le())
            });
            (start..places.len()).map(doc).filter(holds).take(wanted).collect()
        }
    }
}

impl Index {
    /// Returns the position of a row of the drops list.
    pub fn position_of(&self, sort: Sort, place: u32) -> RowPosition {
        let (layer, doc) = self.doc_at(place);
        layer.position_of(sort, doc)
    }

    /// Compares two places as rows of the drops list in an order.
    pub(crate) fn compare_places(&self, sort: Sort, one: u32, other: u32) -> Ordering {
        let directed = |order: Ordering| if sort.descending { order.reverse() } else { order };
        let ((a, one), (b, other)) = (self.doc_at(one), self.doc_at(other));
        let by_name = || a.name_bytes(one).cmp(b.name_bytes(other));
        let by_rank = || a.rank_place(one).cmp(&b.rank_place(other)).then_with(by_name);
        match sort.key {
            SortKey::Name => directed(by_name()),
            _ if sort == Sort::default() => by_rank(),
            _ => {
                let values = (a.sort_value(sort, one), b.sort_value(sort, other));
                directed(values.0.cmp(&values.1)).then_with(by_rank)
            }
        }
    }
}

/// Returns the numbers in the column of the sort key that docs that pass a filter may have.
fn possible_numbers(filter: &DropFilter, as_of: AsOf) -> RangeInclusive<u16> {
    let common = &filter.common;
    let today = as_of.today.raw();
    let tomorrow = today.saturating_add(1);
    match filter.sort.key {
        SortKey::Length => common.min_len.into()..=common.max_len.into(),
        SortKey::Tlds => common.min_tlds..=common.max_tlds,
        SortKey::Dropped if filter.view == View::Today => today..=today,
        SortKey::Dropped => raw_range(common.drop.dropped).unwrap_or(0..=u16::MAX),
        SortKey::Release => {
            let mask = filter.view.code_mask();
            let is_in = |stage: Stage| mask & stage_code(stage) != 0;
            let mut days = raw_range(common.drop.release.days()).unwrap_or(0..=u16::MAX);
            if filter.view != View::Today {
                let waits = is_in(Stage::Redemption) || is_in(Stage::PendingDelete);
                let (first_caught, last) = (
                    tomorrow.saturating_sub(as_of.catch_days),
                    if waits { u16::MAX } else { today },
                );
                let first = match (is_in(Stage::Released), is_in(Stage::Catchable)) {
                    (true, _) => 0,
                    (false, true) => first_caught,
                    (false, false) => tomorrow,
                };
                days = first.max(*days.start())..=last.min(*days.end());
            }
            days
        }
        SortKey::Dqs
        | SortKey::Name
        | SortKey::Listed
        | SortKey::Rank
        | SortKey::SuffixRank
        | SortKey::ExpectedTaken
        | SortKey::Fact => 0..=u16::MAX,
    }
}

impl Layer {
    pub(crate) fn sort_value(&self, sort: Sort, doc: u32) -> u64 {
        let drops = &self.drops_by_rank;
        match sort.key {
            SortKey::Dqs => drops.dqs(doc).points().into(),
            SortKey::Release => drops.release(doc).into(),
            SortKey::Dropped => drops.drop_date(doc).into(),
            SortKey::Length => drops.length(doc).into(),
            SortKey::Name => 0,
            SortKey::Tlds => u64::from(drops.other_tlds(doc)) + 1,
            SortKey::Listed => self.listed_at(doc).get(),
            SortKey::Rank => drops.popularity().best(doc).map_or(NO_RANK, |best| best.get().into()),
            SortKey::SuffixRank => {
                self.suffix_ranks().of(doc).map_or(0, |rank| rank.tenths().into())
            }
            SortKey::ExpectedTaken => {
                self.expected_taken().of(doc).map_or(0, |it| u64::from(it.percent()) + 1)
            }
            SortKey::Fact => {
                let code = sort.fact.and_then(|id| self.fact_code(id, doc));
                fact_value(code, sort)
            }
        }
    }

    /// Returns the position of a doc of the drops list.
    pub(super) fn position_of(&self, sort: Sort, doc: u32) -> RowPosition {
        RowPosition {
            value: self.sort_value(sort, doc),
            key: self.order_key(doc),
            name: self.name_of(doc),
        }
    }
}

/// Returns the value by which facts are sorted: in the order of their numbers, and an unknown one last.
fn fact_value(code: Option<i64>, sort: Sort) -> u64 {
    match code {
        Some(code) => (code.cast_unsigned() ^ 1 << 63).clamp(1, u64::MAX - 1),
        None if sort.descending => 0,
        None => u64::MAX,
    }
}

impl Generation {
    /// Returns the number of a fact of a doc.
    fn fact_code(&self, id: FactColumnId, doc: u32) -> Option<i64> {
        self.facts.get(id.edition)?.code(id.column, doc)
    }

    /// Calls `visit` with the docs that have a fact, and the value by which they are sorted.
    fn each_fact(&self, id: Option<FactColumnId>, visit: &mut Visit<'_>) {
        let Some((id, table)) = id.and_then(|id| Some((id, self.facts.get(id.edition)?))) else {
            return;
        };
        table.each_known(id.column, |doc, code| {
            visit(doc, fact_value(Some(code), Sort::default()));
        });
    }

    /// Returns the first doc of the drops list that is after a position in rank order.
    pub(crate) fn first_after(&self, position: &RowPosition) -> u32 {
        let (mut low, mut high) = (0, self.drops_by_rank.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let order = self.order_key(middle).cmp(&position.key);
            if order.then_with(|| self.compare_name(middle, &position.name)).is_gt() {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }

    /// Returns a number that sorts docs by rank order, ignoring names.
    fn rank_place(&self, doc: u32) -> u64 {
        // Names that were registered again follow those on the list.
        if doc < self.drops_by_rank.len() { self.order_key(doc) } else { u64::MAX }
    }

    fn order_key(&self, doc: u32) -> u64 {
        let drops = &self.drops_by_rank;
        order_key(drops.key(doc), drops.rank(doc))
    }

    pub(crate) fn name_of(&self, doc: u32) -> String {
        let tld = self.tlds.name(self.drops_by_rank.tld(doc));
        format!("{}.{tld}", &*self.records.label(doc))
    }

    fn compare_name(&self, doc: u32, name: &str) -> Ordering {
        self.name_bytes(doc).cmp(name.bytes())
    }

    fn name_bytes(&self, doc: u32) -> impl Iterator<Item = u8> {
        let tld = self.tlds.name(self.drops_by_rank.tld(doc));
        self.records.label(doc).into_bytes().chain([b'.']).chain(tld.bytes())
    }

    /// Returns the first bytes of a name as a number that sorts like these bytes.
    fn name_start(&self, doc: u32) -> u64 {
        let label = self.records.label(doc);
        if let Some(start) = label.as_bytes().first_chunk() {
            return u64::from_be_bytes(*start);
        }
        let mut start = [0; 8];
        start.iter_mut().zip(self.name_bytes(doc)).for_each(|(to, byte)| *to = byte);
        u64::from_be_bytes(start)
    }
}
