//! Expected shares of names that are registered again within a week (`data/docs/outcomes.md`): a [`Model`] for
//! each suffix whose lists show enough outcomes, fitted whenever an index is loaded, and a column of its results.

use std::ops::Range;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::columns::expected_taken::ExpectedColumn;
use crate::columns::properties::Property;
use crate::query::expectation_model::{Count, Counts, Expectation, Model, Models, Predictors};
use crate::query::index::{Index, Layer};
use crate::query::outcomes::{WINDOW_DAYS, pieces};
use crate::vocab::day::Day;
use crate::vocab::expected_taken::ExpectedTaken;
use crate::vocab::name::DomainName;
use crate::vocab::outcome::{Completeness, Evidence, Released, Verdict};

/// The last days of releases, on which models are tested.
const TEST_DAYS: i32 = 91;

/// Counts by TLD number of the index.
type Tally = FxHashMap<(u16, Completeness, Predictors), Counts>;

/// Counts the drops of a layer.
struct Walk<'a> {
    layer: &'a Layer,
    /// Numbers of the index, by those of the layer.
    tlds: &'a [u16],
    /// By TLD number of the layer.
    evidence: Vec<Evidence<'a>>,
    /// First and last release that counts.
    releases: (Day, Day),
}

impl Walk<'_> {
    fn count(&self, tally: &mut Tally, doc: u32, drop: &Released, earlier: u8) {
        let (from, to) = self.releases;
        if !(from..=to).contains(&drop.on) {
            return;
        }
        let tld = usize::from(self.layer.drops_by_rank.tld(doc));
        let verdict = self.evidence[tld].verdict(drop, ExpectedTaken::HORIZON);
        let Verdict::Known(shown, taken) = verdict else { return };
        let counts = tally.entry((self.tlds[tld], shown, self.layer.predictors(doc, earlier)));
        let counts = counts.or_default();
        let part =
            if drop.on > to.plus(-TEST_DAYS) { &mut counts.last } else { &mut counts.earlier };
        part.add(Count { names: 1, taken: taken.into() });
    }

    /// Counts the latest drops of some docs.
    fn latest(&self, docs: Range<u32>) -> Tally {
        let mut tally = Tally::default();
        for doc in docs.filter(|&doc| self.layer.shows_doc(doc)) {
            let earlier = self.layer.drops_by_rank.drops(doc).saturating_sub(1);
            self.count(&mut tally, doc, &self.layer.latest_drop(doc), earlier);
        }
        tally
    }

    /// Counts the drops before the latest of each name.
    fn earlier(&self) -> Tally {
        let mut tally = Tally::default();
        for (ordinal, count, drop) in self.layer.earlier_drops() {
            self.count(&mut tally, self.layer.latest_doc(ordinal), &drop, count.saturating_sub(1));
        }
        tally
    }
}

fn merged(mut one: Tally, other: Tally) -> Tally {
    other.into_iter().for_each(|(key, counts)| one.entry(key).or_default().add(counts));
    one
}

impl Layer {
    fn predictors(&self, doc: u32, earlier: u8) -> Predictors {
        let drops = &self.drops_by_rank;
        let length = drops.properties().column(Property::Length).value(doc);
        Predictors::new(drops.dqs(doc), length, earlier, drops.other_tlds(doc))
    }

    /// Returns the predictors of the latest drop of a doc.
    fn latest_predictors(&self, doc: u32) -> Predictors {
        self.predictors(doc, self.drops_by_rank.drops(doc).saturating_sub(1))
    }
}

impl Index {
    /// Fits the models to the outcomes that lists show up to the day of the newest list, so that they are the
    /// same whenever the index is loaded.
    pub(super) fn fit_models(&self) -> Models {
        let newest = self.manifest().newest_observed_at.map(Day::nearest);
        let seen = &self.manifest().seen;
        let Some(as_of) = newest.filter(|_| !seen.complete.is_empty() || !seen.partial.is_empty())
        else {
            return Models::default();
        };
        let to = as_of.plus(-ExpectedTaken::HORIZON.days());
        let releases = (to.plus(1 - WINDOW_DAYS), to);
        let mut tally = Tally::default();
        for (at, layer) in self.layers().iter().enumerate() {
            let (tlds, evidence) = (self.tlds().of_layer(at), self.evidence_of(layer, as_of));
            let walk = Walk { layer, tlds, evidence, releases };
            let latest = pieces(layer.drops_by_rank.dropped()).map(|docs| walk.latest(docs));
            let (latest, earlier) =
                rayon::join(|| latest.reduce(Tally::default, merged), || walk.earlier());
            tally = merged(merged(tally, latest), earlier);
        }
        let mut counts: Vec<_> = tally.into_iter().collect();
        counts.sort_unstable_by_key(|(key, _)| *key);
        let of_tlds: Vec<_> = counts.chunk_by(|one, next| one.0.0 == next.0.0).collect();
        let fitted = of_tlds.into_par_iter().filter_map(|counts| {
            // The most complete lists first; counts of several are never added up.
            let by_lists = counts.chunk_by(|one, next| one.0.1 == next.0.1);
            let model = by_lists.into_iter().find_map(|counts| {
                let drops: Vec<_> = counts.iter().map(|(key, counts)| (key.2, *counts)).collect();
                Model::fit(counts[0].0.1, releases, to.plus(1 - TEST_DAYS), &drops)
            });
            Some((counts[0].0.0, model?))
        });
        Models::new(self.tlds().len(), fitted.collect())
    }

    /// Returns the expectations of the dropped names of each layer.
    pub(super) fn expected_columns(&self, models: &Models) -> Vec<ExpectedColumn> {
        let of_layer = |(at, layer): (usize, &Layer)| {
            if models.is_empty() {
                return ExpectedColumn::default();
            }
            let tlds = self.tlds().of_layer(at);
            let expected = |doc| {
                let model = models.of(tlds[usize::from(layer.drops_by_rank.tld(doc))])?;
                Some(ExpectedTaken::of_share(model.share(layer.latest_predictors(doc))))
            };
            let of_docs =
                pieces(layer.drops_by_rank.dropped()).flat_map_iter(|docs| docs.map(expected));
            ExpectedColumn::new(of_docs.collect())
        };
        self.layers().iter().enumerate().map(of_layer).collect()
    }

    /// Returns the model of a suffix.
    pub fn model_of(&self, tld: &str) -> Option<&Model> {
        self.models.of(self.tlds().find(tld)?)
    }

    /// Returns every model, with its suffix.
    pub fn models(&self) -> impl Iterator<Item = (&str, &Model)> {
        let tlds = self.tlds();
        tlds.sorted().iter().filter_map(|&tld| Some((tlds.name(tld), self.models.of(tld)?)))
    }

    /// Returns the expectation of the latest drop of a name; `None` for a name that never dropped, and
    /// for a suffix without a model.
    pub fn expectation_of(&self, name: &DomainName) -> Option<(Expectation, &Model)> {
        let (layer, _, row) = self.find_row(name)?;
        let model = self.model_of(name.tld())?;
        Some((model.expects(layer.latest_predictors(row.drop?.doc)), model))
    }
}
