//! Names of a generation that a newer layer of the index has again. In: their ordinals and TLDs. Out:
//! bitmaps that tell them from visible names, and the orders of all names without them.
//!
//! The columns of the generation stay as they are, and are shared with indexes that hide other names.

use crate::index::columns::by_tld::ByTld;
use crate::index::columns::drops_by_name::DropsByName;
use crate::index::columns::rank_table::{ABSENT, Order, RankTable, Tables, Visible};
use crate::index::columns::slices::has_doc;

/// Hidden names of a generation.
#[derive(Debug)]
pub struct Hidden {
    ordinals: Bitmap,
    docs: Bitmap,
    /// Tables of the visible names, and the hidden places by TLD.
    names: Tables,
    by_tld: Tables,
    places: Bitmap,
    /// By TLD number.
    tlds: Vec<u32>,
    counts: NameCounts,
}

/// Numbers of names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NameCounts {
    pub names: u32,
    /// Registered again or not.
    pub dropped: u32,
    /// On the drops list.
    pub drops: u32,
}

impl Hidden {
    /// Hides names, given as ordinals with TLD numbers, each once; `listed` docs are on the drops list.
    pub fn new(
        hidden: &[(u32, u16)],
        names: &RankTable,
        by_tld: &ByTld,
        dropped: &DropsByName,
        tlds: usize,
        listed: u32,
    ) -> Hidden {
        let mut ordinals = Bitmap::new(names.len());
        let mut places = Bitmap::new(names.len());
        let mut docs = Bitmap::new(dropped.len() as usize);
        let mut of_tlds = vec![0; tlds];
        let mut counts = NameCounts { names: hidden.len() as u32, ..NameCounts::default() };
        for &(ordinal, tld) in hidden {
            ordinals.set(ordinal);
            by_tld.places(tld, ordinal..ordinal + 1).for_each(|place| places.set(place));
            of_tlds[usize::from(tld)] += 1;
            if let Some(place) = dropped.place(ordinal) {
                let doc = dropped.doc(place);
                docs.set(doc);
                counts.dropped += 1;
                counts.drops += u32::from(doc < listed);
            }
        }
        let tables = |hidden: &Bitmap, keys: &[u16]| {
            Tables::new(keys.len(), |at| if hidden.has(at as u32) { ABSENT } else { keys[at] })
        };
        let (names, by_tld) = rayon::join(
            || tables(&ordinals, names.keys()),
            || tables(&places, by_tld.ranked().keys()),
        );
        Hidden { ordinals, docs, names, by_tld, places, tlds: of_tlds, counts }
    }

    /// Returns true if a name is hidden.
    #[inline]
    pub fn has_name(&self, ordinal: u32) -> bool {
        self.ordinals.has(ordinal)
    }

    /// Returns true if a doc is hidden.
    #[inline]
    pub fn has_doc(&self, doc: u32) -> bool {
        self.docs.has(doc)
    }

    /// Returns the hidden docs as a bitmap.
    pub fn docs(&self) -> &[u64] {
        &self.docs.0
    }

    /// Returns the number of hidden names.
    pub fn counts(&self) -> NameCounts {
        self.counts
    }

    /// Returns the number of hidden names under a TLD.
    pub fn names_under(&self, tld: u16) -> u32 {
        self.tlds[usize::from(tld)]
    }

    /// Returns the visible names of `names`, the table of all.
    pub fn order<'a>(&'a self, names: &'a RankTable) -> Order<'a, Visible<'a>> {
        let column = Visible { keys: names.keys(), hidden: &self.ordinals.0 };
        Order { column, tables: &self.names }
    }

    /// As [`Hidden::order`], by TLD.
    pub fn order_by_tld<'a>(&'a self, by_tld: &'a ByTld) -> Order<'a, Visible<'a>> {
        let column = Visible { keys: by_tld.ranked().keys(), hidden: &self.places.0 };
        Order { column, tables: &self.by_tld }
    }
}

/// Set of numbers below a length.
#[derive(Debug)]
struct Bitmap(Vec<u64>);

impl Bitmap {
    fn new(len: usize) -> Bitmap {
        Bitmap(vec![0; len.div_ceil(64)])
    }

    fn set(&mut self, at: u32) {
        self.0[at as usize / 64] |= 1 << (at % 64);
    }

    #[inline]
    fn has(&self, at: u32) -> bool {
        has_doc(&self.0, at)
    }
}
