//! The names that rank after another name of their label. Without them, an order holds each label once,
//! by its best name.

use std::ops::{ControlFlow, Range};

use rayon::prelude::*;

use crate::columns::names::{NameBuf, Names};
use crate::columns::rank_table::{HiddenPlaces, RankTable};
use crate::columns::slices::set_doc;

/// Number of names that a task looks at: whole words of a bitmap.
const NAMES_PER_PIECE: u32 = if cfg!(debug_assertions) { 1 << 6 } else { 1 << 16 };

/// Finds the names that have a worse key than another name of their label, or the same key and a later place.
pub fn lesser(names: &Names, ranks: &RankTable) -> HiddenPlaces {
    let pieces: Vec<Vec<u64>> = (0..names.len().div_ceil(NAMES_PER_PIECE))
        .into_par_iter()
        .map(|piece| {
            let start = piece * NAMES_PER_PIECE;
            lesser_in(names, ranks.keys(), start..names.len().min(start + NAMES_PER_PIECE))
        })
        .collect();
    HiddenPlaces::of_bits(ranks, pieces.concat())
}

/// Returns the lesser names of a range as a bitmap of the range.
fn lesser_in(names: &Names, keys: &[u16], range: Range<u32>) -> Vec<u64> {
    let mut bits = vec![0; range.len().div_ceil(64)];
    let mut name = NameBuf::default();
    names.read(range.start, &mut name);
    let first = names.label_range(name.label()).start;
    // The best name so far of the label, and its key.
    let (mut label, mut best) = (Vec::new(), (u16::MAX, first));
    names.for_each(
        std::iter::once(first..names.len()),
        None,
        |_| true,
        |visited| {
            let ordinal = visited.ordinal;
            let key = keys[ordinal as usize];
            if visited.label != label.as_slice() {
                if ordinal >= range.end {
                    return ControlFlow::Break(());
                }
                visited.label.clone_into(&mut label);
                best = (key, ordinal);
                return ControlFlow::Continue(ordinal + 1);
            }
            let lesser =
                if key < best.0 { std::mem::replace(&mut best, (key, ordinal)).1 } else { ordinal };
            if range.contains(&lesser) {
                set_doc(&mut bits, lesser - range.start);
            }
            ControlFlow::Continue(ordinal + 1)
        },
    );
    bits
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::columns::names::tests::{Random, table, texts};

    #[test]
    fn a_label_keeps_the_first_of_its_best_names() {
        let mut random = Random(7);
        let tlds: Vec<String> = (0..150).map(|at| format!("t{at}")).collect();
        for labels in [1, 3, 40] {
            // Some labels have more names than a piece.
            let mut names = BTreeSet::new();
            for label in 0..labels {
                let of_label = 1 + random.below([2, 9, 150][label % 3]);
                let label = ["a", "a-b", "ab", "b"][label % 4].repeat(1 + label / 4);
                names.extend((0..of_label).map(|_| (label.clone(), random.below(tlds.len()))));
            }
            let table = table(&names, &tlds, &mut random);
            let texts = texts(&table);
            let keys: Vec<u16> =
                table.parts.iter().flat_map(|part| &part.key).map(|key| key % 8).collect();
            let mut best: BTreeMap<String, (u16, u32)> = BTreeMap::new();
            let mut name = NameBuf::default();
            for (ordinal, &key) in (0..).zip(&keys) {
                texts.read(ordinal, &mut name);
                let of_label = best.entry(name.label().to_owned()).or_insert((key, ordinal));
                *of_label = (*of_label).min((key, ordinal));
            }
            let lesser = lesser(&texts, &RankTable::new(keys));
            let mut kept: Vec<u32> = best.into_values().map(|(_, ordinal)| ordinal).collect();
            kept.sort_unstable();
            assert!((0..texts.len()).filter(|&ordinal| !lesser.has(ordinal)).eq(kept), "{names:?}");
        }
    }
}
