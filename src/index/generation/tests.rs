//! Compares indexes that lists extended with indexes built completely from the same lists.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Bound;
use std::path::{Path, PathBuf};

use chrono::DateTime;
use tantivy::collector::sort_key::SortByStaticFastValue;
use tantivy::collector::{Count, DocSetCollector, TopDocs};
use tantivy::query::{AllQuery, BooleanQuery, Query, RangeQuery, TermQuery};
use tantivy::schema::IndexRecordOption;
use tantivy::{Order, Term};

use crate::columns::drop_segment::DropField;
use crate::columns::fixtures::TestTables;
use crate::columns::slices::{docs_of, ones};
use crate::corpus::batch::{self, Batch, BatchMeta, Entry, StoredObservation};
use crate::corpus::ranked::RankedList;
use crate::facts::Value;
use crate::facts::store::{Edition, Licence, SourceMeta, SourceWriter, StoredColumn};
use crate::feeds::Sighting;
use crate::filter::{
    AsOf, Counting, DropFilter, Facet, Filter, RuleQuery, SearchFilter, Sort, SortKey, StageSet,
    SuggestFilter, View,
};
use crate::generation::base::{Base, ExtendRule, NoDelta, WholeBecause};
use crate::generation::build::{BuildSettings, Keep, rebuild, rollback, update};
use crate::generation::open::{self, open_current, reopen_current};
use crate::query::index::{Contains, Index, Layer, LayerDay};
use crate::query::totals::Total;
use crate::rules::DueRule;
use crate::scorer::{Scorer, Scratch};
use crate::storage::manifest::{self, GenerationId, Manifest};
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::fact::{EditionId, FactCodes, FactColumnId, FactType, KeyKind};
use crate::vocab::name::{DomainName, to_unicode};
use crate::vocab::stage::Stage;
use crate::vocab::suffix_rank::SuffixRank;
use crate::vocab::watermark::Watermark;
use dropdex_query::facts::{FactCondition, FactTest};
use dropdex_query::filter::{Adult, DayRange, Digits, LabelFilter, ReleaseRange};
use dropdex_query::matcher::Matcher;
use dropdex_query::text::{NamePrefix, Substring};

/// Days are around this one.
const TODAY: u16 = 1_000;
const KEEP: u16 = 3;
const ALWAYS: ExtendRule = ExtendRule { from: 1, percent: 100 };
const NO_RANKED: &[RankedList] = &[];

fn day(raw: u16) -> Day {
    Day::from_raw(raw).expect("a day")
}

fn settings() -> BuildSettings {
    let keep = Keep::new(KEEP).expect("in range");
    BuildSettings { keep, extend: ALWAYS, ..BuildSettings::default() }
}

/// Lists in a folder, and the indexes built from them.
struct Lists {
    folder: tempfile::TempDir,
    batches: Vec<Batch>,
}

impl Lists {
    fn new() -> Lists {
        Lists { folder: tempfile::tempdir().expect("a folder"), batches: Vec::new() }
    }

    fn index(&self) -> PathBuf {
        self.folder.path().join("index")
    }

    fn add(&mut self, rows: &[(DomainName, StoredObservation)]) {
        let number = self.batches.len() as u16 + 1;
        let path = self.folder.path().join(number.to_string());
        let mut writer = batch::create(&path).expect("a new file");
        let mut scratch = Scratch::default();
        for (name, record) in rows {
            let mut features = Vec::new();
            let base = Scorer::shared().base_with_features(name, &mut scratch, &mut features);
            let dropped = matches!(record.sighting, Sighting::Dropped { .. });
            let entry = Entry {
                name: name.as_str().as_bytes(),
                label_len: name.label_len(),
                length: name.length(),
                base,
                features: if dropped { &features } else { &[] },
                record: *record,
            };
            writer.push(&entry, None).expect("written");
        }
        let at = day(TODAY - 60 + 4 * number).start();
        let (_, names) = writer.counts();
        let scorer_version = crate::scorer::SCORER_VERSION;
        let meta = BatchMeta {
            ingested_at: at,
            observed_at: at,
            names,
            scorer_version,
            ..BatchMeta::default()
        };
        writer.finish(&meta).expect("finished");
        self.batches.push(Batch::open(&path).expect("opens"));
    }

    /// Adds a list of some of `names`, each with a chance of one in `share`.
    fn add_some(&mut self, made: &mut TestTables, names: &[DomainName], share: usize) {
        let mut rows = Vec::new();
        for name in names {
            if made.below(share) > 0 {
                continue;
            }
            let observed_at = made.below(5) as i64;
            let sighting = match made.below(12) {
                0 => Sighting::Known { registered: made.below(2) == 0 },
                1 => Sighting::Registered { on: day(TODAY - 20 + made.below(20) as u16) },
                _ => Sighting::Dropped {
                    date: day(TODAY - [0, 0, 3, 30, 31, 36, 40, 44, 70, 90][made.below(10)]),
                    release: (made.below(3) == 0)
                        .then(|| day(TODAY + 5 - made.below(20) as u16).into()),
                    registered_again: made.below(9) == 0,
                },
            };
            rows.push((
                name.clone(),
                StoredObservation { sighting, first_seen: None, observed_at },
            ));
        }
        self.add(&rows);
    }

    /// Adds a list of some of `names` that dropped today.
    fn add_todays(&mut self, made: &mut TestTables, names: &[DomainName], share: usize) {
        let names = names.iter().filter(|_| made.below(share) == 0);
        let date = day(TODAY);
        let sighting = Sighting::Dropped { date, release: None, registered_again: false };
        let record = StoredObservation { sighting, first_seen: None, observed_at: 9 };
        let rows: Vec<_> = names.map(|name| (name.clone(), record)).collect();
        self.add(&rows);
    }

    fn rebuild(&self) -> Manifest {
        rebuild(&self.index(), &self.batches, NO_RANKED, settings(), DateTime::UNIX_EPOCH)
            .expect("built")
    }

    fn update(&self) -> Manifest {
        update(&self.index(), &self.batches, NO_RANKED, settings(), DateTime::UNIX_EPOCH)
            .expect("built")
    }

    /// Returns the index of the same lists, built completely in another folder.
    fn whole(&self) -> Index {
        let folder = tempfile::tempdir().expect("a folder");
        rebuild(folder.path(), &self.batches, NO_RANKED, settings(), DateTime::UNIX_EPOCH)
            .expect("built");
        open_current(folder.path()).expect("opens").index
    }

    fn current(&self) -> Index {
        open_current(&self.index()).expect("opens").index
    }

    fn generations(&self) -> Vec<u64> {
        let generations = manifest::generations(&self.index()).expect("read");
        generations.iter().map(|generation| generation.0).collect()
    }
}

fn names(made: &mut TestTables, count: usize) -> Vec<DomainName> {
    let mut names: BTreeSet<DomainName> = (0..count).filter_map(|_| made.name()).collect();
    // Labels are not in order among names: `a-b.com` is before `a.com`.
    let hyphened = names
        .iter()
        .step_by(10)
        .filter_map(|name| DomainName::parse(&format!("{}-b.{}", name.label(), name.tld())).ok());
    names.extend(hyphened.collect::<Vec<_>>());
    names.into_iter().collect()
}

/// Returns names that no index holds.
fn prohibited() -> impl Iterator<Item = DomainName> {
    let names = ["com", "de", "co.uk", "pl"].map(|tld| format!("kidsporn.{tld}"));
    names.into_iter().map(|name| DomainName::parse(&name).expect("a name"))
}

fn sort(made: &mut TestTables) -> Sort {
    let key = SortKey::ALL[made.below(SortKey::ALL.len())];
    let fact = Some(FactColumnId { edition: EditionId(1), column: made.below(2) as u8 });
    let fact = fact.filter(|_| key == SortKey::Fact);
    Sort { descending: made.below(2) == 0, fact, ..Sort::natural(key) }
}

/// Returns an edition of facts about some of `names` and some others, by name or label.
fn edition(made: &mut TestTables, names: &[DomainName], key: KeyKind, share: usize) -> Edition {
    let mut rows = BTreeMap::new();
    for name in names {
        if made.below(share) > 0 {
            continue;
        }
        let key = if key == KeyKind::Domain { name.as_str() } else { name.label() };
        let number = (made.below(4) > 0).then(|| Value::Int(made.below(50) as i64 - 10));
        let word = (made.below(2) > 0).then(|| Value::Enum(["a", "b"][made.below(2)].to_owned()));
        rows.insert(key.to_owned(), [number, word]);
        rows.insert(format!("{key}x"), [None, Some(Value::Enum("c".to_owned()))]);
    }
    let columns =
        vec![StoredColumn::new("number", FactType::Int), StoredColumn::new("word", FactType::Enum)];
    let meta = SourceMeta {
        id: "acme".to_owned(),
        title: "Acme".to_owned(),
        key,
        as_of: day(TODAY),
        licence: Licence::Own,
        attribution: None,
        columns,
    };
    let mut writer = SourceWriter::new(Vec::new(), meta).expect("in memory");
    for (key, values) in &rows {
        writer.push(key, None, values).expect("in order");
    }
    Edition::of_bytes(writer.finish().expect("in memory").into()).expect("sound")
}

/// Returns a condition on a fact of one of two editions.
fn fact(made: &mut TestTables) -> FactCondition {
    let id =
        FactColumnId { edition: EditionId(1 + made.below(2) as u64), column: made.below(2) as u8 };
    let mut number = || made.below(60) as i64 - 15;
    let codes = match number().rem_euclid(4) {
        0 => FactCodes::Known,
        1 => FactCodes::Unknown,
        2 => FactCodes::Range(number(), number()),
        _ => FactCodes::OneOf(vec![0, 1, 7]),
    };
    let name = "acme.number".parse().expect("a name");
    FactCondition { name, test: FactTest::Known, resolved: Some((id, codes)) }
}

/// Runs queries against two indexes and checks that their results are the same.
struct Pair<'a> {
    extended: &'a Index,
    whole: &'a Index,
    names: &'a [DomainName],
    asked: usize,
    /// Number of results that were not empty.
    full: usize,
    /// Orders of pages of layers that were found without a bitmap of all docs.
    by_value: Vec<SortKey>,
}

impl Pair<'_> {
    fn same(&mut self, what: &str, ask: impl Fn(&Index) -> Vec<String>) {
        let (found, expected) = (ask(self.extended), ask(self.whole));
        assert_eq!(found, expected, "{what}");
        self.asked += 1;
        self.full += usize::from(!found.is_empty());
    }

    fn text(&self, made: &mut TestTables, from_start: bool) -> String {
        let name = &self.names[made.below(self.names.len())];
        let chars: Vec<char> = match made.below(2) {
            0 => to_unicode(name.as_str()).chars().collect(),
            _ => name.as_str().chars().collect(),
        };
        let start = if from_start { 0 } else { made.below(chars.len()) };
        let end = chars.len().min(start + 1 + made.below(5));
        chars[start..end].iter().collect()
    }

    fn filter(&self, made: &mut TestTables) -> Filter {
        let mut filter = Filter::default();
        if made.below(3) == 0 {
            filter.min_dqs = Dqs::clamped(made.below(60) as i32);
        }
        if made.below(3) == 0 {
            filter.max_len = 1 + made.below(20) as u8;
        }
        if made.below(3) == 0 {
            let tlds = ["com", "co.uk", "xn--p1ai", "nosuch", "museum", "de", "se"];
            filter.tlds =
                (0..=made.below(3)).map(|_| tlds[made.below(tlds.len())].into()).collect();
        }
        if made.below(6) == 0 {
            filter.not_tlds = vec!["com".into(), "io".into()];
        }
        if made.below(6) == 0 {
            (filter.min_tlds, filter.max_tlds) = (1, 3);
        }
        if made.below(6) == 0 {
            filter.drop.dropped.from = Some(day(TODAY - 45 + made.below(40) as u16));
        }
        if made.below(8) == 0 {
            filter.drop.min_drops = 2;
        }
        if made.below(6) == 0 {
            filter.drop.max_suffix_rank = Some(SuffixRank::best(1 + made.below(40) as u32));
        }
        if made.below(3) == 0 {
            filter.adult = Adult::Include;
        }
        if made.below(8) == 0 {
            // Names that came after a list, or up to it.
            let batch = Some(1 + made.below(6) as u64);
            let bound = match batch {
                Some(4) => &mut filter.drop.through_batch,
                _ => &mut filter.drop.after_batch,
            };
            *bound = batch;
        }
        if made.below(6) == 0 {
            filter.label.digits = Some(Digits::None);
        }
        if made.below(4) == 0 {
            filter.drop.facts = (0..=made.below(2)).map(|_| fact(made)).collect();
        }
        if made.below(5) == 0 {
            filter.label.contains.extend(Substring::parse(&self.text(made, false)).ok());
        }
        if made.below(5) == 0 {
            filter.label.starts.extend(Substring::parse(&self.text(made, true)).ok());
        }
        filter
    }

    fn drop_filter(&self, made: &mut TestTables) -> DropFilter {
        DropFilter {
            common: if made.below(3) == 0 { Filter::default() } else { self.filter(made) },
            view: view(made),
            contains: (made.below(4) == 0)
                .then(|| Substring::parse(&self.text(made, false)).ok())
                .flatten(),
            sort: if made.below(3) == 0 { Sort::default() } else { sort(made) },
            sort_fact: None,
            after: None,
            limit: [1, 7, 50, 1_000][made.below(4)],
            offset: [0, 0, 3, 200][made.below(4)],
        }
    }

    fn drops(&mut self, made: &mut TestTables, as_of: AsOf) {
        let mut filter = self.drop_filter(made);
        // Compares pages by cursor; each index reads its own cursors.
        let mut after = [None, None];
        for page in 0..4 {
            let what = format!("{filter:?} page {page} on {}", as_of.today);
            let [ours, theirs] = [self.extended, self.whole].map(|index| {
                let of = usize::from(std::ptr::eq(index, self.whole));
                let filter = DropFilter { after: after[of].clone(), ..filter.clone() };
                self.by_value.extend(by_value(index, &filter, as_of));
                let found = index.drops(&filter, as_of, Counting::Estimate).expect("readable");
                let mut rows = Vec::new();
                found.for_each_placed(|row, lifecycle| rows.push(format!("{row:?} {lifecycle:?}")));
                let tlds = found.cached_tlds(|tlds| tlds.collect::<Vec<_>>().join(" "));
                let facts = format!("{} {:?} {tlds}", found.date, found.total);
                (rows, facts, found.next)
            });
            assert_eq!(ours, theirs, "{what}");
            self.asked += 1;
            self.full += usize::from(!ours.0.is_empty());
            filter.offset = 0;
            after = [theirs.2, ours.2];
            if after[0].is_none() {
                break;
            }
        }
        filter.after = None;
        self.same(&format!("counts of {filter:?}"), |index| {
            let count = index.count_drops(&filter, as_of).expect("readable");
            let facets = index.facets(&filter, &Facet::ALL, as_of, Counting::Estimate);
            let exported = index.exported_places(&filter, as_of).expect("readable");
            let mut rows = vec![format!("{count} {facets:?}")];
            index.shape_drops(&exported, as_of, |place, row| {
                rows.push(format!("{row:?} {}", index.is_exported(place)));
            });
            rows
        });
    }

    fn searches(&mut self, made: &mut TestTables, as_of: AsOf) {
        let prefix = NamePrefix::parse(&self.text(made, true)).ok();
        let common = if made.below(2) == 0 { Filter::default() } else { self.filter(made) };
        let prefix = prefix.filter(|_| made.below(8) > 0 || !common.scans_names());
        let filter = SearchFilter {
            prefix,
            common,
            view: (made.below(2) == 0).then(|| view(made)),
            limit: [1, 10, 100][made.below(3)],
            offset: [0, 0, 2, 90][made.below(4)],
        };
        if filter.prefix.is_none() && !filter.common.scans_names() {
            return;
        }
        self.same(&format!("{filter:?} on {}", as_of.today), |index| {
            let page = index.search(&filter, as_of);
            let mut rows = Vec::new();
            page.for_each_placed(|row, dqs, lifecycle| {
                rows.push(format!("{row:?} {dqs} {lifecycle:?}"));
            });
            rows.insert(0, format!("{} {}", page.total, page.capped));
            rows
        });
        let prefix = filter.prefix.clone().filter(|_| made.below(16) == 0);
        let Some(prefix) = prefix else { return };
        let asked = SuggestFilter {
            prefix,
            common: Filter {
                tlds: filter.common.tlds.clone(),
                min_dqs: filter.common.min_dqs,
                max_len: filter.common.max_len,
                ..Filter::default()
            },
            view: filter.view.filter(|view| matches!(view, View::Active | View::Today)),
            all_suffixes: made.below(2) == 0,
            limit: filter.limit.min(20),
        };
        self.same(&format!("suggestions for {asked:?} on {}", as_of.today), |index| {
            let mut rows = Vec::new();
            index.suggest(&asked, as_of, |row| {
                rows.push(format!("{} {} {:?}", row.domain, row.dqs, row.stage));
            });
            rows
        });
    }

    fn names(&mut self, as_of: AsOf) {
        for name in self.names.iter().step_by(self.names.len() / 100 + 1) {
            let other = DomainName::parse(&format!("q{}", name.as_str()));
            for name in [Some(name.clone()), other.ok()].into_iter().flatten() {
                self.same(name.as_str(), |index| {
                    let (dossier, profile) =
                        (index.dossier(&name, as_of), index.profile(&name, as_of));
                    vec![
                        format!("{dossier:?} {profile:?} {:?}", index.facts(&name, as_of)),
                        format!("{:?} {:?}", index.explanation(&name), index.holds(&name)),
                        format!("{:?} {:?}", index.appraise(&name), index.history(&name, as_of)),
                        format!("{:?}", index.siblings(&name, as_of, 5)),
                        format!("{:?}", index.family(name.label(), as_of)),
                        format!("{:?}", index.label_variants(name.label())),
                    ]
                });
            }
        }
        self.same("places of names", |index| {
            let mut rows = Vec::new();
            index.shape_drops(&index.places_of(self.names), as_of, |_, row| {
                rows.push(format!("{row:?}"));
            });
            rows
        });
    }

    fn overview(&mut self, as_of: AsOf) {
        self.same("overview", |index| {
            let overview = index.overview(as_of);
            let mut facts = vec![format!("{:?}", overview.days())];
            facts.push(overview.day_tlds().collect::<Vec<_>>().join(" "));
            for view in View::EVERY {
                let tlds: Vec<_> = overview.tlds(view).collect();
                facts.push(format!(
                    "{} {tlds:?} {:?}",
                    overview.total(view),
                    overview.scores(view)
                ));
            }
            let mut tlds: Vec<_> = overview.all_tlds().map(|tld| format!("{tld:?}")).collect();
            tlds.sort();
            facts.extend(tlds);
            overview.for_each_best(|band, row, at| facts.push(format!("{band} {row:?} {at:?}")));
            facts
        });
        self.same("lists", |index| index.lists().iter().map(|list| format!("{list:?}")).collect());
        self.same("manifest", |index| {
            let manifest = index.manifest().clone();
            let tlds: BTreeSet<&String> = manifest.tlds.iter().collect();
            let Manifest { names, dropped, drops, batches, corpus, coverage, .. } = &manifest;
            vec![
                format!("{names} {dropped} {drops} {batches} {corpus} {coverage:?} {tlds:?}"),
                format!("{:?} {:?}", manifest.drop_dates, manifest.newest_observed_at),
            ]
        });
    }

    fn rules(&mut self, made: &mut TestTables, as_of: AsOf) {
        let rules: Vec<DueRule> = (0..12)
            .map(|_| {
                let stages = [Stage::ALL[made.below(4)], Stage::ALL[made.below(4)]];
                let contains = (made.below(3) == 0)
                    .then(|| Substring::parse(&self.text(made, false)).ok())
                    .flatten();
                DueRule {
                    query: RuleQuery {
                        common: self.filter(made),
                        contains,
                        stages: StageSet::from_stages(&stages[..made.below(3)]),
                    },
                    created: day(TODAY - made.below(50) as u16),
                    base: Watermark {
                        batch: made.below(8) as u64,
                        day: day(TODAY - made.below(20) as u16),
                    },
                    releases_then: ReleaseRange::default(),
                }
            })
            .collect();
        for best in [0, 3, usize::MAX] {
            self.same("matches of rules", |index| {
                let found = index.matches(&rules, best, as_of);
                let listed = |&place: &u32| format!("{:?}", index.listed_drop(place, as_of));
                found
                    .iter()
                    .flat_map(|found| {
                        let best = found.best.iter().map(listed);
                        best.chain([found.total.to_string()])
                    })
                    .collect()
            });
        }
        for rule in &rules {
            self.same("preview of a rule", |index| {
                let preview = index.preview(&rule.query, as_of).expect("readable");
                let mut rows =
                    vec![format!("{} {:?} {:?}", preview.today, preview.per_day, preview.latest)];
                preview.for_each_sample(|row| rows.push(format!("{row:?}")));
                rows
            });
            self.same("names that pass a filter", |index| {
                let tests = [None, Some(View::Active)]
                    .map(|view| index.name_test(&rule.query.common, view, as_of));
                let names = self.names.iter().map(DomainName::as_str);
                names
                    .filter(|name| tests.iter().any(|test| test.passes(name)))
                    .map(|name| format!("{name} {}", tests[1].passes(name)))
                    .collect()
            });
        }
    }

    fn changes(&mut self, before: &[&Index], as_of: AsOf) {
        for before in before {
            let since = before.manifest().batches;
            for since in [since, since - 1] {
                self.same("changes of lists", |index| {
                    let changes = index.changes_of_lists(Some(before), since, as_of);
                    described(index, &changes, as_of)
                });
            }
        }
        self.same("changes of lists alone", |index| {
            described(index, &index.changes_of_lists(None, 2, as_of), as_of)
        });
        for after in 0..4 {
            self.same("changes of a day", |index| {
                let day = as_of.today.plus(after);
                described(index, &index.changes_of_day(day, 3 + after as u64), as_of)
            });
        }
    }
}

fn described(index: &Index, changes: &[crate::changes::DropChange], as_of: AsOf) -> Vec<String> {
    let described = changes.iter().map(|change| {
        let drop = index.listed_drop(change.place, as_of);
        format!("{drop:?} {:?} {:?} {:?}", change.kind, change.source, change.dqs_before)
    });
    described.collect()
}

fn view(made: &mut TestTables) -> View {
    match made.below(9) {
        7 => View::Stages(StageSet::from_stages(&[Stage::Redemption, Stage::Released])),
        8 => View::of_stages(&[Stage::PendingDelete, Stage::Catchable]).expect("stages"),
        at => View::EVERY[at],
    }
}

/// Compares pages that are found value by value with the sorted docs of each layer. Returns the order
/// once for each layer whose page is found in this way.
fn by_value(index: &Index, filter: &DropFilter, as_of: AsOf) -> Vec<SortKey> {
    let (day, take) = (index.day(as_of), filter.limit as usize + 1);
    let Sort { key, descending, .. } = filter.sort;
    let of_layer = |(layer, day): (&Layer, &LayerDay)| {
        if filter.sort == Sort::default() {
            return false;
        }
        let matches = layer.matching(filter, day).expect("readable");
        let total = ones(&matches);
        let found = layer.docs_by_value(filter, day, total, take).expect("readable");
        let Some(found) = found else { return false };
        let directed = |value: u64| if descending { !value } else { value };
        let mut sorted = Vec::new();
        docs_of(0, &matches, |doc| {
            sorted.push((directed(layer.sort_value(filter.sort, doc)), doc))
        });
        sorted.sort_unstable();
        if let Some(after) = &filter.after {
            let first = (directed(after.value), layer.first_after(after));
            sorted.retain(|&row| row >= first);
        }
        let page = sorted.iter().skip(filter.offset as usize).take(take).map(|&(_, doc)| doc);
        assert_eq!(found, page.collect::<Vec<u32>>(), "{filter:?} on {}", as_of.today);
        let of_all = layer.sorted_docs(filter, matches, total, take);
        assert_eq!(found, of_all, "{filter:?} on {}", as_of.today);
        true
    };
    index.layers_on(&day).filter(|&layer| of_layer(layer)).map(|_| key).collect()
}

/// Compares conditions and orders with the rows of an edition, name by name.
fn facts_are_those_of_a_scan(
    made: &mut TestTables,
    index: &Index,
    id: EditionId,
    edition: &Edition,
) {
    let as_of = AsOf { today: day(TODAY), catch_days: 5 };
    let all = DropFilter {
        common: Filter::open(),
        view: View::All,
        contains: None,
        sort: Sort::default(),
        sort_fact: None,
        after: None,
        limit: 100_000,
        offset: 0,
    };
    let names = |filter: &DropFilter| {
        let mut names = Vec::new();
        let page = index.drops(filter, as_of, Counting::None).expect("readable");
        page.for_each(|row| names.push(row.name.to_string()));
        names
    };
    let code = |name: &str, column: u8| {
        let name = DomainName::parse(name).expect("a name");
        let key = match edition.meta().key {
            KeyKind::Domain => name.as_str(),
            _ => name.label(),
        };
        edition.row(key.as_bytes()).expect("readable")?.codes[usize::from(column)]
    };
    let ranked = names(&all);
    let mut known = 0;
    for _ in 0..20 {
        let mut condition = fact(made);
        let (column, codes) = condition.resolved.take().expect("resolved");
        let column = FactColumnId { edition: id, ..column };
        condition.resolved = Some((column, codes.clone()));
        let mut filter = all.clone();
        filter.common.drop.facts = vec![condition];
        let passes = |name: &&String| codes.pass(code(name, column.column));
        let expected: Vec<String> = ranked.iter().filter(passes).cloned().collect();
        assert_eq!(names(&filter), expected, "{filter:?}");
        known += expected.len();
        let descending = made.below(2) == 0;
        filter.sort = Sort { descending, fact: Some(column), ..Sort::natural(SortKey::Fact) };
        let mut sorted = expected;
        sorted.sort_by_key(|name| match (code(name, column.column), descending) {
            (None, _) => i64::MAX,
            (Some(code), true) => -code,
            (Some(code), false) => code,
        });
        assert_eq!(names(&filter), sorted, "{filter:?}");
    }
    assert!(known > 0);
}

#[test]
fn an_extended_index_has_the_results_of_a_complete_one() {
    let mut by_value = Vec::new();
    for (seed, size) in [(1, 300), (2, 2_000), (3, 900)] {
        let mut made = TestTables::new(seed);
        let mut all: Vec<_> = names(&mut made, size).into_iter().chain(prohibited()).collect();
        all.sort();
        let (old, _) = all.split_at(all.len() * 9 / 10);
        let mut lists = Lists::new();
        for _ in 0..3 {
            lists.add_some(&mut made, old, 2);
        }
        assert_eq!(lists.rebuild().base(), None);
        let mut before = vec![lists.current()];
        // Lists with a few names, one name, no names and many names.
        for share in [25, 60, 1 << 30, 4] {
            lists.add_some(&mut made, &all, share);
            let manifest = lists.update();
            assert_eq!(manifest.base(), Some(GenerationId(1)), "seed {seed}");
            let extended = lists.current();
            assert_eq!(extended.manifest(), &manifest);
            assert_eq!(extended.layers().len(), 2);
            let whole = lists.whole();
            let mut pair = Pair {
                extended: &extended,
                whole: &whole,
                names: &all,
                asked: 0,
                full: 0,
                by_value: Vec::new(),
            };
            // Editions with few rows are joined in another way than those with many.
            let shares = if seed % 2 == 0 { [2, 40] } else { [40, 2] };
            let [by_name, by_label] = shares;
            let editions = [(KeyKind::Domain, by_name), (KeyKind::Label, by_label)]
                .map(|(key, share)| edition(&mut made, &all, key, share));
            for (id, edition) in (1..).map(EditionId).zip(&editions) {
                for index in [&extended, &whole] {
                    index.join_facts(id, edition).expect("readable");
                }
                facts_are_those_of_a_scan(&mut made, &whole, id, edition);
            }
            for (today, catch_days) in [(TODAY, 5), (TODAY - 31, 0), (TODAY + 40, 5)] {
                let as_of = AsOf { today: day(today), catch_days };
                for _ in 0..20 {
                    pair.drops(&mut made, as_of);
                    pair.searches(&mut made, as_of);
                }
                pair.overview(as_of);
                pair.rules(&mut made, as_of);
                let before: Vec<&Index> = before.iter().collect();
                pair.changes(&before, as_of);
            }
            pair.names(AsOf { today: day(TODAY), catch_days: 5 });
            assert!(pair.full * 3 > pair.asked, "{} of {}", pair.full, pair.asked);
            by_value.extend(pair.by_value);
            // The next generation shares its base with the current one.
            let reopened = reopen_current(&lists.index(), Some(&extended)).expect("opens").index;
            assert!(reopened.layer_like(&extended.layers()[0]).is_some());
            assert!(reopened.layer_like(&extended.layers()[1]).is_none());
            extended.retain_facts(|_| false);
            before.push(extended);
        }
    }
    for key in [SortKey::Dqs, SortKey::Release, SortKey::Dropped, SortKey::Length, SortKey::Tlds] {
        let pages = by_value.iter().filter(|&&of| of == key).count();
        assert!(pages >= 20, "{pages} pages in the order {key:?}");
    }
}

#[test]
fn totals_depend_on_the_filter_alone() {
    let mut made = TestTables::new(4);
    let all = names(&mut made, 9_000);
    let mut lists = Lists::new();
    lists.add_some(&mut made, &all, 1);
    lists.rebuild();
    let (index, other) = (lists.current(), lists.current());
    let (by_value, as_of) = (Vec::new(), AsOf { today: day(TODAY), catch_days: 5 });
    let pair = Pair { extended: &index, whole: &other, names: &all, asked: 0, full: 0, by_value };
    let (mut about, mut far) = (0, 0);
    for _ in 0..300 {
        let mut filter = DropFilter { limit: 1, offset: 0, ..pair.drop_filter(&mut made) };
        let ask = |index: &Index, filter: &DropFilter, counting| {
            let page = index.drops(filter, as_of, counting).expect("readable");
            let mut rows = Vec::new();
            page.for_each(|row| rows.push(row.name.to_owned()));
            (page.total, rows)
        };
        let estimate = index.estimate_drops(&filter, as_of).expect("readable");
        let truth = other.count_drops(&filter, as_of).expect("readable");
        let (_, rows) = ask(&other, &filter, Counting::None);
        let exact = (Some(Total::Exact(truth)), rows.clone());
        assert_eq!(ask(&index, &filter, Counting::Exact), exact, "{filter:?}");
        assert_eq!(ask(&index, &filter, Counting::None), (None, rows), "{filter:?}");
        // Neither the order nor earlier queries change it.
        for index in [&index, &other] {
            assert_eq!(ask(index, &filter, Counting::Estimate).0, Some(estimate), "{filter:?}");
            filter.sort = Sort::default();
            assert_eq!(ask(index, &filter, Counting::Estimate).0, Some(estimate), "{filter:?}");
            filter.sort = pair.drop_filter(&mut made).sort;
            assert_eq!(ask(index, &filter, Counting::Estimate).0, Some(estimate), "{filter:?}");
            assert_eq!(index.estimate_drops(&filter, as_of).expect("readable"), estimate);
        }
        match estimate {
            Total::Exact(total) => assert_eq!(total, truth, "{filter:?}"),
            Total::About(total) => {
                let near = 3.0 * (f64::from(truth) * 3.0).sqrt();
                far += u32::from(f64::from(total.abs_diff(truth)) > near);
                about += 1;
                filter.limit = 10_000;
                let (total, rows) = ask(&index, &filter, Counting::Estimate);
                assert_eq!((total, rows.len() as u32), (Some(Total::Exact(truth)), truth));
            }
        }
    }
    assert!(about > 30 && far * 50 <= about, "{far} of {about}");
}

#[test]
fn facets_of_a_long_list_are_estimated_unless_exact_ones_are_wanted() {
    let mut made = TestTables::new(5);
    let all = names(&mut made, 9_000);
    let mut lists = Lists::new();
    lists.add_some(&mut made, &all, 1);
    lists.rebuild();
    let (index, as_of) = (lists.current(), AsOf { today: day(TODAY), catch_days: 5 });
    let facets = |common: &Filter, counting| {
        let filter = DropFilter {
            common: common.clone(),
            view: View::All,
            contains: None,
            sort: Sort::default(),
            sort_fact: None,
            after: None,
            limit: 1,
            offset: 0,
        };
        let counted = index.facets(&filter, &Facet::ALL, as_of, counting).expect("readable");
        let sums = counted.values.iter().map(|of| of.iter().map(|it| it.count).sum());
        (sums.collect::<Vec<u32>>(), counted.are_exact)
    };
    let (open, short) = (Filter::default(), Filter { max_len: 9, ..Filter::default() });
    assert_eq!(facets(&open, Counting::Estimate), facets(&open, Counting::Exact));
    let ((about, is_exact), (sums, of_all)) =
        (facets(&short, Counting::Estimate), facets(&short, Counting::Exact));
    assert!(of_all && !is_exact);
    assert_eq!(facets(&short, Counting::Estimate), (about.clone(), false));
    assert_ne!(about, sums);
    for (about, sum) in about.into_iter().zip(sums) {
        assert!(about.abs_diff(sum) * 5 <= sum, "{about} is about {sum}");
    }
}

/// Three lists, an index of the first two, and a delta of the third on it.
fn small() -> Lists {
    let mut made = TestTables::new(9);
    let all = names(&mut made, 200);
    let mut lists = Lists::new();
    lists.add_some(&mut made, &all, 2);
    lists.add_some(&mut made, &all, 2);
    lists.rebuild();
    lists.add_todays(&mut made, &all, 20);
    assert_eq!(lists.update().base(), Some(GenerationId(1)));
    lists
}

#[test]
fn bases_are_kept_and_rollback_works_across_deltas() {
    let mut lists = small();
    let mut made = TestTables::new(10);
    let all = names(&mut made, 200);
    let mut add = |lists: &mut Lists| {
        lists.add_todays(&mut made, &all, 20);
        lists.update().base()
    };
    assert_eq!(lists.generations(), [1, 2]);
    // Three generations are kept, and the base.
    for expected in [vec![1, 2, 3], vec![1, 2, 3, 4], vec![1, 3, 4, 5]] {
        assert_eq!(add(&mut lists), Some(GenerationId(1)));
        assert_eq!(lists.generations(), expected);
    }
    assert_eq!(rollback(&lists.index()).expect("back").generation, GenerationId(4));
    assert_eq!(lists.current().layers().len(), 2);
    assert_eq!(rollback(&lists.index()).expect("back").generation, GenerationId(3));
    assert_eq!(rollback(&lists.index()).expect("back").generation, GenerationId(1));
    assert_eq!(lists.current().layers().len(), 1);
    assert!(rollback(&lists.index()).is_err());
    // The newer generations count as published, because they were in use until the rollback.
    // Without the record of a rollback, newer generations are leftovers of builds that were killed
    // before they became current.
    let newest = |index: &Path| manifest::published(index).expect("readable").pop();
    assert!(newest(&lists.index()) > Some(GenerationId(4)));
    manifest::set_current(&lists.index(), GenerationId(1)).expect("set");
    assert_eq!(newest(&lists.index()), Some(GenerationId(1)));
    // The generation that was rolled back is removed, and the next delta has all missing lists.
    assert_eq!(add(&mut lists), Some(GenerationId(1)));
    assert_eq!(lists.generations(), [1, 6]);
    assert_eq!(lists.current().manifest().names, lists.whole().manifest().names);
    // A complete index replaces both; the base is removed with the last delta on it.
    assert_eq!(lists.rebuild().base(), None);
    assert_eq!(lists.generations(), [1, 6, 7]);
    for expected in [vec![1, 6, 7, 8], vec![7, 8, 9], vec![7, 8, 9, 10]] {
        assert_eq!(add(&mut lists), Some(GenerationId(7)));
        assert_eq!(lists.generations(), expected);
    }
}

#[test]
fn a_damaged_delta_or_base_is_refused() {
    let lists = small();
    let index = lists.index();
    for generation in [GenerationId(2), GenerationId(1)] {
        let folder = manifest::folder_of(&index, generation);
        let manifest = Manifest::read(&folder).expect("readable");
        for name in manifest.files.keys().map(String::as_str).chain(["MANIFEST"]) {
            let path = folder.join(name);
            let whole = fs::read(&path).expect("readable");
            for at in [0, whole.len() / 2, whole.len().saturating_sub(1)] {
                let mut bytes = whole.clone();
                match bytes.get_mut(at) {
                    Some(byte) => *byte ^= 0x20,
                    None => bytes.push(0),
                }
                fs::write(&path, bytes).expect("writable");
                assert!(open::open(&index, GenerationId(2)).is_err(), "{generation} {name}");
                let opened = open_current(&index);
                match generation.0 {
                    // The base still covers its own lists.
                    2 => {
                        let opened = opened.expect("the base serves");
                        assert_eq!(opened.index.manifest().generation, GenerationId(1));
                        assert!(opened.fallback.is_some());
                    }
                    _ => assert!(opened.is_err(), "{name}"),
                }
            }
            fs::write(&path, whole).expect("writable");
        }
    }
    // A different complete generation with the same number is not the base that was extended.
    let (mut other, mut made) = (Lists::new(), TestTables::new(11));
    let all = names(&mut made, 200);
    other.add_some(&mut made, &all, 2);
    other.rebuild();
    let base = manifest::folder_of(&index, GenerationId(1));
    fs::rename(&base, index.join("aside")).expect("renamed");
    fs::rename(manifest::folder_of(&other.index(), GenerationId(1)), &base).expect("renamed");
    let refused = open::open(&index, GenerationId(2)).map(|_| ()).expect_err("another");
    assert!(refused.to_string().contains("is not the base of the delta"), "{refused}");
}

#[test]
fn an_index_is_extended_only_if_results_stay_the_same() {
    let mut lists = small();
    let reason =
        |lists: &Lists, rule| match Base::find(&lists.index(), &lists.batches, NO_RANKED, rule) {
            Ok(base) => Ok(base.batches),
            Err(NoDelta::Whole(reason)) => Err(reason),
            Err(NoDelta::Failed(err)) => panic!("{err}"),
        };
    assert_eq!(reason(&lists, ALWAYS), Ok(2));
    assert_eq!(reason(&lists, ExtendRule::NEVER), Err(WholeBecause::Small));
    let rule = ExtendRule { from: 1_000, ..ALWAYS };
    assert_eq!(reason(&lists, rule), Err(WholeBecause::Small));
    assert_eq!(reason(&lists, ExtendRule::default()), Err(WholeBecause::Small));
    let rule = ExtendRule { percent: 1, ..ALWAYS };
    assert_eq!(reason(&lists, rule), Err(WholeBecause::ManyNew));
    let third = lists.batches.pop().expect("three");
    assert_eq!(reason(&lists, ALWAYS), Err(WholeBecause::NothingNew));
    // The second batch is replaced by one that the index does not know.
    let second = lists.batches.pop().expect("two");
    lists.batches.push(third);
    assert_eq!(reason(&lists, ALWAYS), Err(WholeBecause::Corpus));
    lists.batches.push(second);
    assert_eq!(reason(&lists, ALWAYS), Err(WholeBecause::Corpus));
    lists.batches.truncate(1);
    assert_eq!(reason(&lists, ALWAYS), Err(WholeBecause::Corpus));
    let nowhere = Lists::new();
    assert_eq!(reason(&nowhere, ALWAYS), Err(WholeBecause::NoIndex));
}

#[test]
fn a_drop_date_is_removed_with_its_last_name() {
    let mut lists = Lists::new();
    let drop = |name: &str, date: u16| {
        let release = Some(day(TODAY).into());
        let sighting = Sighting::Dropped { date: day(date), release, registered_again: false };
        let name = DomainName::parse(name).expect("a name");
        (name, StoredObservation { sighting, first_seen: None, observed_at: 1 })
    };
    let (five, six, nine) = (TODAY - 5, TODAY - 6, TODAY - 9);
    lists.add(&[drop("abc.com", five), drop("abd.com", nine), drop("abe.com", nine)]);
    lists.rebuild();
    // A list of an earlier day has the same drops, so the drop date is that day.
    lists.add(&[drop("abc.com", six)]);
    assert_eq!(lists.update().base(), Some(GenerationId(1)));
    assert_eq!(lists.current().manifest().drop_dates, [day(nine), day(six)]);
    lists.add(&[drop("abd.com", nine - 1)]);
    assert_eq!(lists.update().base(), Some(GenerationId(1)));
    let dates = lists.current().manifest().drop_dates.clone();
    assert_eq!(dates, [day(nine - 1), day(nine), day(six)]);
    assert_eq!(dates, lists.whole().manifest().drop_dates);
}

/// A condition on text anywhere, taken from a label.
fn text_anywhere(made: &mut TestTables, label: &str) -> Filter {
    let form: Vec<char> = to_unicode(label).chars().collect();
    let start = made.below(form.len());
    let end = form.len().min(start + 1 + made.below(7));
    let text = |chars: &[char]| chars.iter().collect::<String>();
    let (part, tail) = (text(&form[start..end]), text(&form[start..]));
    let texts =
        |list: &[&String]| list.iter().filter_map(|text| Substring::parse(text).ok()).collect();
    let mut filter = Filter::open();
    let matcher = match made.below(7) {
        0 => {
            filter.label.contains = texts(&[&part, &made.text(4)][..1 + made.below(2)]);
            return filter;
        }
        1 => {
            filter.label.ends = texts(&[&tail, &made.text(2)][..1 + made.below(2)]);
            return filter;
        }
        2 => {
            filter.label.contains = texts(&[&part]);
            filter.label.ends = texts(&[&tail]);
            return filter;
        }
        3 => Matcher::pattern(&format!("*{part}{}", ["", "*", "L", "*?N"][made.below(4)])),
        4 => Matcher::pattern(["CVCV", "VC*", "LLL", "*N", "AA?A"][made.below(5)]),
        5 => {
            let (other, end) = (made.text(2), ["", "$", ".?$", "[a-z]"][made.below(4)]);
            Matcher::regex(&format!("({}|{other}){end}", part.replace('-', "\\-")))
        }
        _ => Matcher::like(&text(&form), 1 + made.below(2) as u8),
    };
    filter.with_matchers(matcher.into_iter().collect())
}

/// Searches without a prefix: with trigrams of all names, of a part of the names, and without
/// trigrams.
#[test]
fn text_anywhere_is_found_as_by_a_scan() {
    let is_full = std::env::var_os("DROPDEX_FULL").is_some();
    let (size, queries) = if is_full { (150_000, 2_000) } else { (2_000, 100) };
    let mut made = TestTables::new(91);
    let names = names(&mut made, size);
    let mut lists = Lists::new();
    lists.add_some(&mut made, &names, 1);
    let contains = |contains| BuildSettings { contains: Some(contains), ..settings() };
    let build = |lists: &Lists, extend: bool, with: Contains| {
        let build = if extend { update } else { rebuild };
        let now = DateTime::UNIX_EPOCH;
        build(&lists.index(), &lists.batches, NO_RANKED, contains(with), now).expect("built");
        lists.current()
    };
    let whole = build(&lists, false, Contains::All);
    lists.add_todays(&mut made, &names, 30);
    let over_all = build(&lists, true, Contains::All);
    let over_some = build(&lists, true, Contains::Drops);
    let without = build(&lists, false, Contains::Drops);
    assert_eq!([1, 2, 2, 1], [&whole, &over_all, &over_some, &without].map(|it| it.layers().len()));
    assert_eq!(over_all.contains(), Contains::All);
    assert_eq!(over_some.contains(), Contains::Drops);
    assert_eq!(without.contains(), Contains::Drops);
    let as_of = AsOf { today: day(TODAY), catch_days: 5 };
    let (mut answered, mut left_out) = (0, 0);
    for _ in 0..queries {
        let at = made.below(names.len());
        let common = text_anywhere(&mut made, names[at].label());
        let LabelFilter { contains, ends, matchers, .. } = &common.label;
        if !common.scans_names() {
            continue;
        }
        let passes = |name: &&DomainName| {
            let form = to_unicode(name.label());
            let any = |texts: &[Substring], holds: &dyn Fn(&str) -> bool| {
                texts.is_empty() || texts.iter().any(|text| holds(text.as_str()))
            };
            any(contains, &|text| form.contains(text))
                && any(ends, &|text| form.ends_with(text))
                && matchers.iter().all(|matcher| matcher.matches(name.label(), &form))
        };
        let expected: Vec<&str> = names.iter().filter(passes).map(DomainName::as_str).collect();
        answered += usize::from(!expected.is_empty());
        let filter = SearchFilter { prefix: None, common, view: None, limit: 10_000, offset: 0 };
        for index in [&whole, &over_all, &over_some, &without] {
            let page = index.search(&filter, as_of);
            let mut found = Vec::new();
            page.for_each(|row| found.push(row.domain.to_owned()));
            assert_eq!(page.total as usize, expected.len().min(10_000), "{filter:?}");
            found.sort_unstable();
            if page.capped {
                found.retain(|name| expected.binary_search(&name.as_str()).is_err());
                assert_eq!(found, [""; 0], "{filter:?}");
            } else {
                assert_eq!(found, expected, "{filter:?}");
            }
        }
        left_out += usize::from(expected.len() < names.len() / 2);
    }
    assert!(answered > queries / 2 && left_out > queries / 3, "{answered} {left_out}");
}

/// Adds a condition on a field to `filter`. Returns the values that pass.
fn add_range(made: &mut TestTables, of: &Layer, field: DropField, filter: &mut Filter) -> [u16; 2] {
    let drops = &of.drops_by_rank;
    let doc = made.below(drops.len() as usize) as u32;
    let mut near =
        |value: u16| [value - value.min(made.below(9) as u16), value + made.below(9) as u16];
    let days = |[from, to]: [u16; 2]| DayRange { from: Some(day(from)), to: Some(day(to)) };
    match field {
        DropField::Dqs => {
            let range = near(drops.dqs(doc).points().into());
            [filter.min_dqs, filter.max_dqs] = range.map(|points| Dqs::clamped(points.into()));
            range
        }
        DropField::Length => {
            let range = near(drops.length(doc).into());
            [filter.min_len, filter.max_len] = range.map(|length| length as u8);
            range
        }
        DropField::Tld => {
            filter.tlds = vec![of.tlds.name(drops.tld(doc)).into()];
            [drops.tld(doc); 2]
        }
        DropField::DropDay => {
            let range = near(drops.drop_date(doc));
            filter.drop.dropped = days(range);
            range
        }
        DropField::ReleaseDay => {
            let range = near(drops.release(doc));
            filter.drop.release = days(range).into();
            range
        }
        DropField::Rank => unreachable!("no filter has a condition on it"),
    }
}

/// Returns a trigram of a label that no TLD contains.
fn gram(made: &mut TestTables, layer: &Layer) -> Option<String> {
    let name = layer.name_of(made.below(layer.drops_by_rank.len() as usize) as u32);
    let name = if made.below(2) == 0 { to_unicode(&name) } else { name.into() };
    let label: Vec<char> = name.split('.').next()?.chars().collect();
    let grams: Vec<String> = label.windows(3).map(String::from_iter).collect();
    let gram = grams.get(made.below(grams.len().max(1)))?;
    let is_in = |tld: &String| tld.contains(gram) || to_unicode(tld).contains(gram);
    (!layer.tlds.names().iter().any(is_in)).then(|| gram.clone())
}

/// tantivy opens the folder, and its own searcher and collectors find and sort the same drops.
#[test]
fn tantivy_finds_and_sorts_the_same_drops() {
    let mut made = TestTables::new(29);
    let names = names(&mut made, 9_000);
    let mut lists = Lists::new();
    lists.add_some(&mut made, &names, 2);
    lists.add_some(&mut made, &names, 3);
    let manifest = lists.rebuild();
    let folder = manifest::folder_of(&lists.index(), manifest.generation).join("drops");
    let opened = tantivy::Index::open_in_dir(folder).expect("opens");
    let (schema, searcher) = (opened.schema(), opened.reader().expect("opens").searcher());
    assert_eq!(searcher.num_docs(), u64::from(manifest.drops));
    assert!(manifest.drops < manifest.dropped, "some were registered again");
    let index = lists.current();
    let layer = &index.layers()[0];
    let as_of = AsOf { today: day(TODAY), catch_days: 5 };
    let field = |field: DropField| schema.get_field(field.as_str()).expect("in the schema");
    let (mut found_some, mut by_gram) = (0, 0);
    for _ in 0..600 {
        let mut common = Filter::open();
        let mut queries: Vec<Box<dyn Query>> = vec![Box::new(AllQuery)];
        for of in DropField::ALL.into_iter().filter(|&field| field != DropField::Rank) {
            if made.below(4) == 0 {
                let range = add_range(&mut made, layer, of, &mut common);
                let [from, to] = range.map(|value| Term::from_field_u64(field(of), value.into()));
                let range = RangeQuery::new(Bound::Included(from), Bound::Included(to));
                queries.push(Box::new(range));
            }
        }
        let contains = if made.below(2) == 0 { gram(&mut made, layer) } else { None };
        if let Some(gram) = &contains {
            let term = Term::from_field_text(schema.get_field("gram").expect("a field"), gram);
            queries.push(Box::new(TermQuery::new(term, IndexRecordOption::Basic)));
        }
        let query = BooleanQuery::intersection(queries);
        let contains = contains.map(|gram| Substring::parse(&gram).expect("of a label"));
        let (limit, sort) = (1 + made.below(200) as u32, Sort::default());
        let filter = DropFilter {
            common,
            view: View::All,
            contains,
            sort,
            sort_fact: None,
            after: None,
            limit,
            offset: 0,
        };
        let docs = searcher.search(&query, &DocSetCollector).expect("readable");
        let mut docs: Vec<u32> = docs.into_iter().map(|address| address.doc_id).collect();
        docs.sort_unstable();
        let on_day = index.day(as_of);
        let (_, layer_day) = index.layers_on(&on_day).next().expect("one layer");
        let mut expected = Vec::new();
        let matching = layer.matching(&filter, layer_day).expect("readable");
        docs_of(0, &matching, |doc| expected.push(doc));
        assert_eq!(docs, expected, "{filter:?}");
        assert_eq!(searcher.search(&query, &Count).expect("readable"), docs.len(), "{filter:?}");
        found_some += usize::from(!docs.is_empty());
        by_gram += usize::from(!docs.is_empty() && filter.contains.is_some());
        for (key, of) in [
            (SortKey::Dqs, DropField::Dqs),
            (SortKey::Length, DropField::Length),
            (SortKey::Dropped, DropField::DropDay),
            (SortKey::Release, DropField::ReleaseDay),
        ] {
            let descending = made.below(2) == 0;
            let filter =
                DropFilter { sort: Sort { descending, ..Sort::natural(key) }, ..filter.clone() };
            let order = if descending { Order::Desc } else { Order::Asc };
            let top = TopDocs::with_limit(limit as usize);
            let top = top.order_by_fast_field::<u64>(of.as_str(), order);
            let top = searcher.search(&query, &top).expect("readable");
            let top: Vec<u32> = top.into_iter().map(|(_, address)| address.doc_id).collect();
            // The only layer's docs are the places.
            assert_eq!(top, index.drop_places(&filter, as_of).expect("readable"), "{filter:?}");
        }
        let by = |of: DropField| SortByStaticFastValue::<u64>::for_field(of.as_str());
        let by_rank = ((by(DropField::Dqs), Order::Desc), (by(DropField::Rank), Order::Desc));
        let best = TopDocs::with_limit(limit as usize).order_by(by_rank);
        let best = searcher.search(&query, &best).expect("readable").into_iter();
        let best: Vec<u32> = best.map(|(_, address)| address.doc_id).collect();
        assert_eq!(best, index.drop_places(&filter, as_of).expect("readable"), "{filter:?}");
    }
    assert!(found_some > 300 && by_gram > 50, "{found_some} {by_gram}");
}

/// Lists of years have more days than a column of days has periods.
#[test]
fn pages_by_day_are_those_of_comparisons() {
    let mut made = TestTables::new(31);
    let names = names(&mut made, 9_000);
    let mut lists = Lists::new();
    let rows: Vec<_> = names
        .into_iter()
        .map(|name| {
            let release =
                (made.below(2) == 0).then(|| day(TODAY + 60 - made.below(400) as u16).into());
            let date = day(TODAY - made.below(400) as u16);
            let sighting =
                Sighting::Dropped { date, release, registered_again: made.below(9) == 0 };
            (name, StoredObservation { sighting, first_seen: None, observed_at: 0 })
        })
        .collect();
    lists.add(&rows);
    lists.rebuild();
    let index = lists.current();
    let layer = &index.layers()[0];
    let as_of = AsOf { today: day(TODAY), catch_days: 5 };
    let on_day = index.day(as_of);
    let (_, layer_day) = index.layers_on(&on_day).next().expect("one layer");
    let mut walked = 0;
    for _ in 0..600 {
        let key = [SortKey::Release, SortKey::Dropped][made.below(2)];
        let sort = Sort { descending: made.below(2) == 0, ..Sort::natural(key) };
        let common = Filter { max_len: [63, 9][made.below(2)], ..Filter::open() };
        let view = [View::All, View::Active][made.below(2)];
        let (limit, offset) =
            (1 + made.below(60) as u32, [0, made.below(300)][made.below(2)] as u32);
        let mut filter = DropFilter {
            common,
            view,
            contains: None,
            sort,
            sort_fact: None,
            after: None,
            limit,
            offset,
        };
        if made.below(2) == 0 {
            let page = index.drops(&filter, as_of, Counting::Exact).expect("readable");
            (filter.after, filter.offset) = (page.next, 0);
        }
        let matches = layer.matching(&filter, layer_day).expect("readable");
        let (total, take) = (ones(&matches), limit as usize);
        let docs = layer.docs_by_value(&filter, layer_day, total, take).expect("readable");
        let Some(docs) = docs else { continue };
        assert_eq!(docs, layer.sorted_docs(&filter, matches, total, take), "{filter:?}");
        walked += 1;
    }
    assert!(walked > 100, "{walked}");
}
