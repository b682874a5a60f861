//! Draws names of a day of releases for the random sample (`data/docs/outcomes.md`).

use std::collections::{BTreeMap, BinaryHeap};

use crate::query::index::{Index, Layer};
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::name::DomainName;
use crate::vocab::sample::NAMES_A_DAY;

/// The names with the smallest hashes under a key, up to [`NAMES_A_DAY`]. Without the key, which is drawn at
/// random for each day, the hash of a name cannot be influenced.
struct Picker<'a> {
    seed: &'a [u8; 32],
    /// The largest hash first.
    kept: BinaryHeap<([u8; 32], String, Dqs)>,
}

impl<'a> Picker<'a> {
    fn new(seed: &'a [u8; 32]) -> Picker<'a> {
        Picker { seed, kept: BinaryHeap::with_capacity(NAMES_A_DAY + 1) }
    }

    fn offer(&mut self, name: String, dqs: Dqs) {
        let hash = *blake3::keyed_hash(self.seed, name.as_bytes()).as_bytes();
        let is_small = self.kept.peek().is_none_or(|(largest, ..)| hash < *largest);
        if self.kept.len() < NAMES_A_DAY || is_small {
            self.kept.push((hash, name, dqs));
        }
        if self.kept.len() > NAMES_A_DAY {
            self.kept.pop();
        }
    }

    /// Returns the names, the smallest hash first.
    fn picked(self) -> Vec<(DomainName, Dqs)> {
        let kept = self.kept.into_sorted_vec().into_iter();
        kept.filter_map(|(_, name, dqs)| Some((DomainName::parse(&name).ok()?, dqs))).collect()
    }
}

impl Index {
    /// Draws up to [`NAMES_A_DAY`] names of each wanted suffix among those whose latest drop was released on
    /// `on`.
    pub fn draw(
        &self,
        on: Day,
        seed: &[u8; 32],
        is_wanted: impl Fn(&str) -> bool,
    ) -> BTreeMap<String, Vec<(DomainName, Dqs)>> {
        let mut pickers = BTreeMap::<String, Picker<'_>>::new();
        for layer in self.layers() {
            let wanted: Vec<bool> =
                layer.tlds.names().iter().map(|tld| is_wanted(tld.as_str())).collect();
            for doc in layer.released_on(on).filter(|&doc| layer.shows_doc(doc)) {
                let tld = layer.drops_by_rank.tld(doc);
                if wanted[usize::from(tld)] {
                    let picker = pickers.entry(layer.tlds.name(tld).to_owned());
                    let picker = picker.or_insert_with(|| Picker::new(seed));
                    picker.offer(layer.name_of(doc), layer.drops_by_rank.dqs(doc));
                }
            }
        }
        pickers.into_iter().map(|(suffix, picker)| (suffix, picker.picked())).collect()
    }

    /// Returns true if lists ever showed all names of a suffix.
    pub fn has_complete_lists(&self, suffix: &str) -> bool {
        let complete = &self.manifest().seen.complete;
        complete.binary_search_by(|seen| seen.suffix.as_str().cmp(suffix)).is_ok()
    }
}

impl Layer {
    /// Returns the docs whose latest drop was released on a day.
    fn released_on(&self, on: Day) -> impl Iterator<Item = u32> {
        let (drops, raw) = (&self.drops_by_rank, on.raw());
        let has_any = !drops.day_columns().1.days_in(&(raw..=raw)).is_empty();
        let docs = if has_any { 0..drops.dropped() } else { 0..0 };
        docs.filter(move |&doc| drops.release(doc) == raw)
    }
}

#[cfg(test)]
mod tests {
    use rayon::prelude::*;

    use super::*;
    use crate::vocab::outcome::Horizon;
    use crate::vocab::sample::{HORIZONS, SampleAnswer, SampleTable};

    /// Names released on each of the simulated days.
    const MARKET: usize = 2 * NAMES_A_DAY;
    const DAYS: i32 = 8;
    /// Chances of a registration within a day, a week and a month.
    const CHANCES: [f64; 3] = [0.12, 0.18, 0.22];
    /// The part of the names about which a registry never answers.
    const SILENT: f64 = 0.05;
    /// Simulated samples.
    const RUNS: u64 = 1_000;

    fn picked(seed: u8, names: impl Iterator<Item = usize>) -> Vec<String> {
        let seed = [seed; 32];
        let mut picker = Picker::new(&seed);
        names.for_each(|at| picker.offer(format!("name-{at}.com"), Dqs::MAX));
        picker.picked().into_iter().map(|(name, _)| name.as_str().to_owned()).collect()
    }

    #[test]
    fn a_draw_depends_on_the_names_and_the_key_alone() {
        let first = picked(1, 0..600);
        assert_eq!(first.len(), NAMES_A_DAY);
        assert_eq!(picked(1, (0..600).rev()), first, "in any order");
        let other = picked(2, 0..600);
        let shared = other.iter().filter(|name| first.contains(name)).count();
        assert!(shared < 20, "{shared} of 60 names, where 6 are expected");
        assert_eq!(picked(1, 0..9).len(), 9);
        // Each name that someone adds takes the place of at most one other.
        let more = picked(1, 0..601);
        assert!(first.iter().filter(|name| !more.contains(name)).count() <= 1);
    }

    /// A name of the simulated market.
    struct Traded {
        /// The day of its registration, counted from the release.
        taken: Option<u8>,
        is_silent: bool,
    }

    impl Traded {
        fn new(rng: &mut fastrand::Rng) -> Traded {
            let chance = rng.f64();
            let taken = [1, 7, 30].into_iter().zip(CHANCES).find(|(_, upto)| chance < *upto);
            Traded { taken: taken.map(|(day, _)| day), is_silent: rng.f64() < SILENT }
        }

        /// The answers after all horizons, asked as the worker asks.
        fn answer(&self) -> SampleAnswer {
            let mut known = SampleAnswer::None;
            for age in 0..40u8 {
                if known.days_left(age.into()).is_some() && !self.is_silent {
                    let taken = self.taken.filter(|&day| day < age);
                    known =
                        known.then(taken.map_or(SampleAnswer::Free(age - 1), SampleAnswer::Taken));
                }
            }
            known
        }
    }

    /// Returns the number of simulated samples whose interval has the true share, by horizon. `picks` returns the
    /// names of a day that are asked about.
    fn covering(picks: impl Fn(&mut fastrand::Rng, &[Traded]) -> Vec<usize> + Sync) -> [u64; 3] {
        let release = Day::MIN.plus(1_000);
        let covers = |run| {
            let mut rng = fastrand::Rng::with_seed(run);
            let mut table = SampleTable::default();
            for day in 0..DAYS {
                let market: Vec<Traded> = (0..MARKET).map(|_| Traded::new(&mut rng)).collect();
                for at in picks(&mut rng, &market) {
                    let answer = market[at].answer();
                    table.add(release.plus(day), Dqs::MAX, answer, release.plus(100));
                }
            }
            std::array::from_fn(|at| {
                let count = table.all()[at];
                assert_eq!(count.names, (NAMES_A_DAY as i32 * DAYS) as u64);
                let share = count.share().expect("names");
                assert!(!share.is_range, "{count:?}");
                u64::from((share.share.low..=share.share.high).contains(&CHANCES[at]))
            })
        };
        let plus = |one: [u64; 3], other: [u64; 3]| std::array::from_fn(|at| one[at] + other[at]);
        (0..RUNS).into_par_iter().map(covers).reduce(|| [0; 3], plus)
    }

    #[test]
    fn intervals_of_a_random_sample_cover_the_truth_as_often_as_they_say() {
        assert_eq!(HORIZONS.map(Horizon::days), [1, 7, 30]);
        let at_random = covering(|rng, market| {
            let seed = std::array::from_fn(|_| rng.u8(..));
            let mut picker = Picker::new(&seed);
            (0..market.len()).for_each(|at| picker.offer(format!("a{at}.com"), Dqs::MAX));
            let at = |(name, _): (DomainName, Dqs)| name.label()[1..].parse().expect("a number");
            picker.picked().into_iter().map(at).collect()
        });
        let wanted = RUNS * 93 / 100..=RUNS * 97 / 100;
        assert!(at_random.iter().all(|covering| wanted.contains(covering)), "{at_random:?}");
        // People watch names that others want as well.
        let watched = covering(|rng, market| {
            let mut names: Vec<usize> = (0..market.len()).collect();
            let demand = |at: &usize| if market[*at].taken.is_some() { 2.0 } else { 1.0 };
            names.sort_by_cached_key(|at| (rng.f64() / demand(at) * 1e9) as u64);
            names.truncate(NAMES_A_DAY);
            names
        });
        assert!(watched.iter().all(|covering| !wanted.contains(covering)), "{watched:?}");
    }
}
