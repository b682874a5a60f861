//! Hidden names of a generation: those that a newer layer of the index also contains. Input: the
//! ordinals and TLDs of these names. Output: bitmaps of hidden names, and the orders of all names
//! without the hidden ones.
//!
//! The columns of the generation do not change, and are shared with indexes that hide other names.

use crate::columns::by_tld::ByTld;
use crate::columns::drops_by_name::DropsByName;
use crate::columns::idn::IdnOrders;
use crate::columns::rank_table::{HiddenPlaces, RankTable};
use crate::columns::slices::{has_doc, set_doc};

/// Hidden names of a generation.
#[derive(Debug)]
pub struct Hidden {
    /// Hidden places in the order of all names, in the order by TLD, and in the orders of Unicode
    /// forms.
    pub names: HiddenPlaces,
    pub by_tld: HiddenPlaces,
    pub idn: HiddenPlaces,
    pub idn_by_tld: HiddenPlaces,
    /// Bitmap of hidden docs.
    docs: Vec<u64>,
    /// Number of hidden names by TLD number.
    tlds: Vec<u32>,
    counts: NameCounts,
}

/// The orders of the names of a generation.
#[derive(Clone, Copy)]
pub struct NameOrders<'a> {
    pub names: &'a RankTable,
    pub by_tld: &'a ByTld,
    pub idn: IdnOrders<'a>,
    pub dropped: &'a DropsByName,
}

/// Counts of names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NameCounts {
    pub names: u32,
    /// Names that dropped, whether or not they were registered again.
    pub dropped: u32,
    /// Names on the drops list.
    pub drops: u32,
}

impl Hidden {
    /// Hides names of `orders`. `hidden` has their distinct ordinals, each with its TLD number;
    /// `listed` docs are on the drops list.
    pub fn new(hidden: &[(u32, u16)], orders: NameOrders<'_>, tlds: usize, listed: u32) -> Hidden {
        let NameOrders { names, by_tld, idn, dropped } = orders;
        let mut docs = vec![0; (dropped.len() as usize).div_ceil(64)];
        let mut of_tlds = vec![0; tlds];
        let mut counts = NameCounts { names: hidden.len() as u32, ..NameCounts::default() };
        for &(ordinal, tld) in hidden {
            of_tlds[usize::from(tld)] += 1;
            if let Some(place) = dropped.place(ordinal) {
                let doc = dropped.doc(place);
                set_doc(&mut docs, doc);
                counts.dropped += 1;
                counts.drops += u32::from(doc < listed);
            }
        }
        let places_of = |&(ordinal, tld): &(u32, u16)| by_tld.places(tld, ordinal..ordinal + 1);
        let places = hidden.iter().flat_map(places_of);
        let (names, by_tld) = rayon::join(
            || HiddenPlaces::new(names, hidden.iter().map(|&(ordinal, _)| ordinal)),
            || HiddenPlaces::new(by_tld.ranked(), places),
        );
        let idn_names = (0..).zip(idn.ordinals).filter(|(_, ordinal)| names.has(**ordinal));
        let idn_places = idn_names.map(|(place, _)| place);
        let idn_hidden = HiddenPlaces::new(idn.ranks, idn_places);
        let idn_rows = 0..idn.by_tld.len() as u32;
        let idn_rows = idn_rows.filter(|&place| idn_hidden.has(idn.by_tld.row(place)));
        let idn_by_tld = HiddenPlaces::new(idn.by_tld.ranked(), idn_rows);
        Hidden { names, by_tld, idn: idn_hidden, idn_by_tld, docs, tlds: of_tlds, counts }
    }

    /// Returns true if a name is hidden.
    #[inline]
    pub fn has_name(&self, ordinal: u32) -> bool {
        self.names.has(ordinal)
    }

    /// Returns true if a doc is hidden.
    #[inline]
    pub fn has_doc(&self, doc: u32) -> bool {
        has_doc(&self.docs, doc)
    }

    /// Returns the hidden docs as a bitmap.
    pub fn docs(&self) -> &[u64] {
        &self.docs
    }

    /// Returns the number of hidden names.
    pub fn counts(&self) -> NameCounts {
        self.counts
    }

    /// Returns the number of hidden names under a TLD.
    pub fn names_under(&self, tld: u16) -> u32 {
        self.tlds[usize::from(tld)]
    }
}
