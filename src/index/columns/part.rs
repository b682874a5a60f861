//! Names of one range of a [`Table`](super::table::Table), as columns. Columns that are read
//! together form a [`Section`], so that only the needed sections of a part are read from disk.

use bytemuck::Pod;

use crate::columns::spans::Spans;
use crate::error::BuildError;
use crate::vocab::popularity::{ListRank, ListedRank, PopularityList};

/// Columns of a part that are read together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// Texts and label lengths.
    Names,
    /// Rank keys, TLD numbers, registrations.
    Keys,
    /// [`PartDrops`] without the features.
    Drops,
    /// Score features.
    Features,
    /// [`PartEarlier`].
    Earlier,
}

impl Section {
    pub const ALL: [Section; 5] =
        [Section::Names, Section::Keys, Section::Drops, Section::Features, Section::Earlier];
}

/// Size in memory of a name without its text, of a drop without its features, and of an earlier
/// drop, in bytes.
const NAME_BYTES: usize = 8;
const DROP_BYTES: usize = 22;
const EARLIER_BYTES: usize = 9;

/// The names of one range. All names of a label are in the same part.
#[derive(Debug, Default)]
pub struct Part {
    /// Ordinal of the first name of the part.
    pub first: u32,
    /// Full names, concatenated.
    pub text: Vec<u8>,
    /// Place of each name in `text`.
    pub spans: Spans,
    /// Label lengths in bytes.
    pub label_len: Vec<u8>,
    /// [`rank_key`].
    pub key: Vec<u16>,
    /// TLD numbers.
    pub tld: Vec<u16>,
    /// Whether the name never dropped and is registered according to the lists.
    pub registered: Vec<bool>,
    pub drops: PartDrops,
    pub earlier: PartEarlier,
}

/// Dropped names of a part, in name order.
#[derive(Debug, Default)]
pub struct PartDrops {
    /// Positions in the part.
    pub at: Vec<u32>,
    /// Latest drop date, [`Day::raw`].
    pub date: Vec<u16>,
    /// Effective release of that drop.
    pub release: Vec<u16>,
    /// Seconds of the releases that lists state, by position among the drops. Few drops have one.
    pub release_seconds: Vec<[u32; 2]>,
    /// [`Return::byte`](crate::vocab::outcome::Return::byte) of the registration after that drop; 0 for none.
    pub returned: Vec<u8>,
    /// Days of the lists that show those registrations late ([`Sighted::late`](crate::vocab::outcome::Sighted::late)), by position among the
    /// drops.
    pub late: Vec<[u32; 2]>,
    /// First batch that reported the drop.
    pub first_batch: Vec<u32>,
    /// Unrounded score, [`crate::scorer::Grade::rank`].
    pub rank: Vec<u16>,
    /// Number of TLDs with the label.
    pub spread: Vec<u16>,
    /// [`Spread::tlds`].
    pub open_tlds: Vec<u16>,
    /// Number of drops of the name; 255 means 255 or more.
    pub count: Vec<u8>,
    /// Ranks on popularity lists: by position among the drops, then by list. Few drops have one.
    pub ranks: Vec<(u32, ListedRank)>,
    /// Score features, concatenated.
    pub features: Vec<u8>,
    /// Place of the features of each drop.
    pub feature_spans: Spans,
}

/// Drops before the latest one of each name, in name order, then by date.
#[derive(Debug, Default)]
pub struct PartEarlier {
    /// Places in the part.
    pub at: Vec<u32>,
    /// [`Day::raw`].
    pub date: Vec<u16>,
    /// Effective release.
    pub release: Vec<u16>,
    /// [`Return::byte`](crate::vocab::outcome::Return::byte) of the registration before the next drop.
    pub returned: Vec<u8>,
    /// As [`PartDrops::late`], by position among these drops.
    pub late: Vec<[u32; 2]>,
}

impl Part {
    /// Returns the number of names.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns true if it has no names.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the full name at a position.
    pub fn name(&self, at: usize) -> &[u8] {
        &self.text[self.spans.range(at)]
    }

    /// Returns the label at a position.
    pub fn label(&self, at: usize) -> &[u8] {
        &self.name(at)[..usize::from(self.label_len[at])]
    }

    /// Returns the size of the columns in memory, in bytes.
    pub fn bytes(&self) -> u64 {
        let PartDrops { at, ranks, release_seconds, late, features, .. } = &self.drops;
        let names = self.text.len() + self.len() * NAME_BYTES;
        let few = size_of_val(ranks.as_slice())
            + size_of_val(release_seconds.as_slice())
            + size_of_val(late.as_slice())
            + size_of_val(self.earlier.late.as_slice());
        let drops = features.len() + at.len() * DROP_BYTES + few;
        (names + drops + self.earlier.at.len() * EARLIER_BYTES) as u64
    }

    /// Returns all names, in order.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|at| self.name(at))
    }
}

impl PartDrops {
    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.at.len()
    }

    /// Whether the name was registered again after a drop.
    pub fn is_again(&self, at: usize) -> bool {
        self.returned[at] != 0
    }

    /// Returns the features of a drop.
    pub fn features(&self, at: usize) -> &[u8] {
        &self.features[self.feature_spans.range(at)]
    }
}

/// Moves columns to or from a file.
pub trait ColumnMover {
    /// Writes the column to the file, or replaces it with the column in the file.
    ///
    /// # Errors
    /// The file cannot be written or read.
    fn column<T: Pod>(&mut self, column: &mut Vec<T>) -> Result<(), BuildError>;

    fn flags(&mut self, flags: &mut Vec<bool>) -> Result<(), BuildError> {
        let mut bytes: Vec<u8> = flags.iter().map(|&flag| flag.into()).collect();
        self.column(&mut bytes)?;
        *flags = bytes.into_iter().map(|byte| byte != 0).collect();
        Ok(())
    }

    fn spans(&mut self, spans: &mut Spans) -> Result<(), BuildError> {
        let mut lens = std::mem::take(spans).into_lens();
        self.column(&mut lens)?;
        *spans = Spans::from_lens(lens).expect("lengths were checked when they were pushed");
        Ok(())
    }
}

impl Part {
    /// Moves the columns of a section.
    ///
    /// # Errors
    /// As [`ColumnMover::column`].
    pub fn move_section(
        &mut self,
        section: Section,
        mover: &mut impl ColumnMover,
    ) -> Result<(), BuildError> {
        let Part { first: _, text, spans, label_len, key, tld, registered, drops, earlier } = self;
        match section {
            Section::Names => {
                mover.column(text)?;
                mover.spans(spans)?;
                mover.column(label_len)
            }
            Section::Keys => {
                mover.column(key)?;
                mover.column(tld)?;
                mover.flags(registered)
            }
            Section::Drops => {
                mover.column(&mut drops.at)?;
                mover.column(&mut drops.date)?;
                mover.column(&mut drops.release)?;
                mover.column(&mut drops.release_seconds)?;
                mover.column(&mut drops.returned)?;
                mover.column(&mut drops.late)?;
                mover.column(&mut drops.first_batch)?;
                mover.column(&mut drops.rank)?;
                mover.column(&mut drops.spread)?;
                mover.column(&mut drops.open_tlds)?;
                mover.column(&mut drops.count)?;
                move_ranks(&mut drops.ranks, mover)
            }
            Section::Features => {
                mover.column(&mut drops.features)?;
                mover.spans(&mut drops.feature_spans)
            }
            Section::Earlier => {
                mover.column(&mut earlier.at)?;
                mover.column(&mut earlier.date)?;
                mover.column(&mut earlier.release)?;
                mover.column(&mut earlier.returned)?;
                mover.column(&mut earlier.late)
            }
        }
    }
}

fn move_ranks(
    ranks: &mut Vec<(u32, ListedRank)>,
    mover: &mut impl ColumnMover,
) -> Result<(), BuildError> {
    let number = |&(drop, ListedRank { list, rank }): &_| [drop, list as u32, rank.get()];
    let mut numbers: Vec<u32> = ranks.iter().flat_map(number).collect();
    mover.column(&mut numbers)?;
    let (triples, _) = numbers.as_chunks::<3>();
    let listed = |&[drop, list, rank]: &[u32; 3]| {
        let list = *PopularityList::ALL.get(list as usize)?;
        Some((drop, ListedRank { list, rank: ListRank::new(rank)? }))
    };
    *ranks = triples.iter().filter_map(listed).collect();
    Ok(())
}
