//! Real names in, a sorted corpus of any size out.
//!
//! The speed of an index depends on how names share prefixes, so new names are made of
//! heads and tails of real ones, cut where people would cut them, and every label may turn up in
//! several TLDs. The same names, size and seed give the same corpus, whatever the number of
//! threads: name number `i` depends on the seed and `i` alone.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use dropdex::vocab::name::{DomainName, is_a_label, to_unicode};
use rayon::prelude::*;

use super::rng::Rng;

/// Names a corpus may have at most. Names are numbered in 32 bits while it is made, and a list that
/// is nearly too short takes up to eleven tries a name (see [`GAIN_MIN`]).
pub const COUNT_MAX: usize = 350_000_000;
/// A round must yield one new name for this many missing ones, or the list is
/// too short.
const GAIN_MIN: usize = 10;
/// Share of .com among all names, as in the world; lists that can be had hold too few of it.
const COM_SHARE: f64 = 0.45;
/// Share of .com among the made names at most, however few the real ones hold.
const COM_SHARE_MAX: f64 = 0.95;
/// Per mille of made names that repeat an earlier label in another TLD.
const ELSEWHERE_PER_MILLE: u32 = 300;
/// Per mille of made labels that get a hyphen at the seam.
const HYPHEN_PER_MILLE: u32 = 50;
/// Per mille of made labels that get a number at the end.
const NUMBER_PER_MILLE: u32 = 50;
/// Number of neighbours of the same script that an internationalised label is crossed with.
const IDN_NEIGHBOURS: u64 = 64;
/// Names made by one task, and names in one block of a finished corpus.
const BLOCK: usize = 1 << 16;
/// Parts of the names in the making that are sorted on their own.
const BUCKETS: usize = 256;
/// Tasks whose names are kept before more are made.
const TASKS_AT_ONCE: usize = 32;

/// Source of random numbers, one for each decision.
mod place {
    /// Which real names are taken.
    pub const PICK: u64 = 1 << 62;
    /// The label with some number.
    pub const LABEL: u64 = 2 << 62;
    /// The name with some number.
    pub const NAME: u64 = 3 << 62;
}

/// Why there is no corpus.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    #[error("{path}: {cause}; give a list of names, one a line, plain, gzip or zstd")]
    Read { path: PathBuf, cause: io::Error },
    #[error("{path}: none of its {lines} lines is a registrable name; is it a list of names?")]
    NoNames { path: PathBuf, lines: usize },
    #[error("{0} names were asked for; at most {COUNT_MAX} can be made")]
    TooMany(usize),
    #[error("only {made} of {wanted} names can be made from {real} real ones; give a longer list")]
    Exhausted { made: usize, wanted: usize, real: usize },
}

/// Real names: sorted, each once. Never empty.
#[derive(Debug)]
pub struct RealNames {
    names: Vec<DomainName>,
    refused: usize,
}

impl RealNames {
    /// The sample that comes with the project.
    pub fn sample_path() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("data/sample/sample.csv.gz")
    }

    /// Reads a list: one name a line, or a CSV file whose first column is the name; plain, gzip
    /// or zstd. Lines without a registrable domain are counted and skipped.
    ///
    /// # Errors
    /// The file cannot be read or unpacked, or holds no name.
    pub fn read(path: &Path) -> Result<RealNames, GenerateError> {
        let text = read_text(path)
            .map_err(|cause| GenerateError::Read { path: path.to_owned(), cause })?;
        RealNames::parse(&text).ok_or_else(|| GenerateError::NoNames {
            path: path.to_owned(),
            lines: text.lines().count(),
        })
    }

    /// The names in `text`, as [`RealNames::read`] takes them; `None` when it holds none.
    pub fn parse(text: &str) -> Option<RealNames> {
        let lines: Vec<&str> = text
            .lines()
            .map(|line| line.split(',').next().unwrap_or_default())
            .filter(|line| !line.is_empty() && !line.starts_with('#') && *line != "domain")
            .collect();
        let mut names: Vec<DomainName> =
            lines.par_iter().filter_map(|line| DomainName::parse(line).ok()).collect();
        let refused = lines.len() - names.len();
        names.par_sort_unstable();
        names.dedup();
        (!names.is_empty()).then_some(RealNames { names, refused })
    }

    /// The names, sorted by their bytes.
    pub fn names(&self) -> &[DomainName] {
        &self.names
    }

    /// Lines that were no registrable name.
    pub fn refused(&self) -> usize {
        self.refused
    }

    /// Exactly `count` names, the same for the same `seed`. Real names are at most half of them,
    /// taken evenly from the list; the others are made.
    ///
    /// # Errors
    /// `count` is over [`COUNT_MAX`], or the list is too short for that many.
    pub fn extend(&self, count: usize, seed: u64) -> Result<Corpus, GenerateError> {
        if count > COUNT_MAX {
            return Err(GenerateError::TooMany(count));
        }
        let maker = Maker::new(self, count, seed);
        let mut drafts = Drafts::new(&self.names);
        let mut tried = 0;
        while drafts.len() < count {
            let missing = count - drafts.len();
            let before = drafts.len();
            // A twelfth more, because some are made twice; what is too much is cut off below.
            tried = drafts.add(&maker, tried, missing + missing / 12 + 1_000);
            let (made, wanted, real) = (drafts.len(), count, self.names.len());
            if made - before < missing.div_ceil(GAIN_MIN) {
                return Err(GenerateError::Exhausted { made, wanted, real });
            }
        }
        drafts.keep_first(count);
        Ok(drafts.into_corpus())
    }
}

fn read_text(path: &Path) -> io::Result<String> {
    let mut source = BufReader::with_capacity(1 << 20, File::open(path)?);
    let magic = source.fill_buf()?;
    let mut text = String::new();
    if magic.starts_with(&[0x1f, 0x8b]) {
        flate2::bufread::MultiGzDecoder::new(source).read_to_string(&mut text)?;
    } else if magic.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        while !source.fill_buf()?.is_empty() {
            let mut frame =
                ruzstd::decoding::StreamingDecoder::new(&mut source).map_err(io::Error::other)?;
            frame.read_to_string(&mut text)?;
        }
    } else {
        source.read_to_string(&mut text)?;
    }
    Ok(text)
}

/// A corpus: names sorted by their bytes, each once, in about 16 bytes a name.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Corpus {
    /// [`BLOCK`] names each, but for the last.
    blocks: Vec<Block>,
    len: usize,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Block {
    text: Vec<u8>,
    /// Where each name ends in `text`.
    ends: Vec<u32>,
    label_lens: Vec<u8>,
}

impl Corpus {
    /// How many names.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when there is no name.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Name number `at` in byte order.
    ///
    /// # Panics
    /// `at` is [`Corpus::len`] or more.
    pub fn get(&self, at: usize) -> DomainName {
        self.blocks[at / BLOCK].get(at % BLOCK)
    }

    /// The text of name number `at`, and the number of bytes in its label.
    ///
    /// # Panics
    /// `at` is [`Corpus::len`] or more.
    pub fn text(&self, at: usize) -> (&str, usize) {
        let block = &self.blocks[at / BLOCK];
        let text = std::str::from_utf8(block.bytes(at % BLOCK)).expect("names are ASCII");
        (text, usize::from(block.label_lens[at % BLOCK]))
    }

    /// All names in byte order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = DomainName> {
        (0..self.len).map(|at| self.get(at))
    }

    /// All names, spread over the threads.
    pub fn par_iter(&self) -> impl IndexedParallelIterator<Item = DomainName> {
        (0..self.len).into_par_iter().map(|at| self.get(at))
    }

    /// Total bytes of all names.
    pub fn text_len(&self) -> usize {
        self.blocks.iter().map(|block| block.text.len()).sum()
    }
}

impl Block {
    fn push(&mut self, name: &[u8], label_len: u8) {
        self.text.extend_from_slice(name);
        self.ends.push(self.text.len() as u32);
        self.label_lens.push(label_len);
    }

    fn shrink(&mut self) {
        self.text.shrink_to_fit();
        self.ends.shrink_to_fit();
        self.label_lens.shrink_to_fit();
    }

    fn bytes(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.text[start as usize..self.ends[at] as usize]
    }

    fn get(&self, at: usize) -> DomainName {
        DomainName::from_stored(self.bytes(at), self.label_lens[at])
            .expect("was a DomainName when pushed")
    }
}

/// Generates name number `i` from nothing but the real names, the seed and `i`.
struct Maker<'a> {
    real: &'a [DomainName],
    seed: u64,
    /// Where each of `real` has its [`cut`].
    cuts: Vec<u8>,
    /// Positions in `real` of the names that are taken as they are; they have the first numbers.
    taken: Vec<u32>,
    tlds: TldShares<'a>,
    /// Internationalised labels in Unicode, sorted, so that neighbours share a script.
    idns: Vec<String>,
}

impl<'a> Maker<'a> {
    fn new(real: &'a RealNames, count: usize, seed: u64) -> Maker<'a> {
        let real = real.names();
        let taken = take_evenly(real.len(), count.div_ceil(2), seed);
        let com_taken = taken.par_iter().filter(|&&at| real[at as usize].tld() == "com").count();
        let to_make = count.saturating_sub(taken.len()).max(1);
        let com_share = (COM_SHARE * count as f64 - com_taken as f64) / to_make as f64;
        let mut idns: Vec<String> = real
            .iter()
            .map(DomainName::label)
            .filter(|label| is_a_label(label))
            .map(|label| to_unicode(label).into_owned())
            .collect();
        idns.sort_unstable();
        let tlds = TldShares::new(real, com_share.clamp(0.0, COM_SHARE_MAX));
        let cuts = real.par_iter().map(|name| cut(name.label()) as u8).collect();
        Maker { real, seed, cuts, taken, tlds, idns }
    }

    /// Name number `number`; `None` where what comes out is not registrable. `text` is room to
    /// work in, so that no name costs an allocation.
    fn name(&self, number: usize, text: &mut String) -> Option<DomainName> {
        if let Some(&at) = self.taken.get(number) {
            return Some(self.real[at as usize].clone());
        }
        let made = (number - self.taken.len()) as u64;
        let mut rng = Rng::at(self.seed, place::NAME | made);
        text.clear();
        if rng.chance(ELSEWHERE_PER_MILLE) {
            let labels = self.real.len() as u64;
            match rng.below(labels + made) {
                known if known < labels => text.push_str(self.real[known as usize].label()),
                earlier => self.push_label(earlier - labels, text),
            }
        } else {
            self.push_label(made, text);
        }
        text.push('.');
        text.push_str(self.tlds.draw(&mut rng));
        DomainName::parse(text).ok()
    }

    /// Appends made label number `number`: a head and a tail of real labels.
    fn push_label(&self, number: u64, text: &mut String) {
        let mut rng = Rng::at(self.seed, place::LABEL | number);
        let (label, cut) = self.any_label(&mut rng);
        if is_a_label(label) {
            return self.push_idn_label(&mut rng, text);
        }
        let (head, own_tail) = label.split_at(cut);
        let tail = match self.any_label(&mut rng) {
            (idn, _) if is_a_label(idn) => own_tail,
            (other, cut) => &other[cut..],
        };
        if rng.chance(HYPHEN_PER_MILLE) {
            text.push_str(head.trim_end_matches('-'));
            text.push('-');
            text.push_str(tail.trim_start_matches('-'));
            return;
        }
        text.push_str(head);
        text.push_str(tail);
        if rng.chance(NUMBER_PER_MILLE) {
            text.push_str(&number_text(&mut rng));
        }
    }

    /// A real label, and where to cut it.
    fn any_label(&self, rng: &mut Rng) -> (&'a str, usize) {
        let at = rng.below(self.real.len() as u64) as usize;
        (self.real[at].label(), usize::from(self.cuts[at]))
    }

    /// Appends the first half of an internationalised label and the second half of a neighbour.
    fn push_idn_label(&self, rng: &mut Rng, text: &mut String) {
        let head_at = rng.below(self.idns.len() as u64);
        let tail_at = (head_at + rng.below(IDN_NEIGHBOURS)).min(self.idns.len() as u64 - 1);
        let [head, tail] = [head_at, tail_at].map(|at| &self.idns[at as usize]);
        let half = |label: &str| label.chars().count().div_ceil(2);
        text.extend(head.chars().take(half(head)).chain(tail.chars().skip(half(tail))));
    }
}

/// `wanted` of the positions `0..len`, each as likely as any other; all when there are not more.
fn take_evenly(len: usize, wanted: usize, seed: u64) -> Vec<u32> {
    let mut positions: Vec<u32> = (0..len as u32).collect();
    if wanted < len {
        let mut rng = Rng::at(seed, place::PICK);
        for at in 0..wanted {
            let other = at + rng.below((len - at) as u64) as usize;
            positions.swap(at, other);
        }
        positions.truncate(wanted);
    }
    positions
}

/// Where a label falls into a head and a tail: 1 to its length.
///
/// After a hyphen, or else where letters meet digits, or else where a syllable starts, or else
/// anywhere; of several such places the one nearest to the middle. One place for each label keeps
/// the lengths as they are in the world: a head and a tail of different labels are as long, on
/// average, as a label.
fn cut(label: &str) -> usize {
    let bytes = label.as_bytes();
    let off_middle = |at: usize| (2 * at).abs_diff(bytes.len());
    (1..bytes.len()).min_by_key(|&at| (seam(bytes, at), off_middle(at))).unwrap_or(bytes.len())
}

/// How natural a cut before `at` is: 0 is best.
fn seam(bytes: &[u8], at: usize) -> u8 {
    let vowel = |byte: u8| b"aeiouy".contains(&byte);
    let (before, after) = (bytes[at - 1], bytes[at]);
    if before == b'-' {
        0
    } else if before.is_ascii_digit() != after.is_ascii_digit() {
        1
    } else if !vowel(after) && bytes.get(at + 1).is_some_and(|&next| vowel(next)) {
        2
    } else {
        3
    }
}

/// A number as people append it: a small one, a year, a well-known one, or up to four digits.
fn number_text(rng: &mut Rng) -> String {
    const KNOWN: [&str; 8] = ["24", "365", "360", "247", "88", "777", "2go", "4u"];
    match rng.below(10) {
        0..4 => (1 + rng.below(9)).to_string(),
        4..6 => (1990 + rng.below(37)).to_string(),
        6 => rng.pick(&KNOWN).copied().unwrap_or("24").to_owned(),
        7..9 => (10 + rng.below(90)).to_string(),
        _ => (100 + rng.below(9_900)).to_string(),
    }
}

/// TLDs by how often the real names have them, with a share of its own for .com.
struct TldShares<'a> {
    com_share: f64,
    /// TLDs but .com, sorted, with the number of names up to and with each.
    others: Vec<(&'a str, u64)>,
}

impl<'a> TldShares<'a> {
    fn new(real: &'a [DomainName], com_share: f64) -> TldShares<'a> {
        let mut counts: HashMap<&str, u64> = HashMap::new();
        for name in real.iter().filter(|name| name.tld() != "com") {
            *counts.entry(name.tld()).or_default() += 1;
        }
        let mut others: Vec<_> = counts.into_iter().collect();
        others.sort_unstable();
        let mut sum = 0;
        for (_, count) in &mut others {
            sum += *count;
            *count = sum;
        }
        TldShares { com_share, others }
    }

    fn draw(&self, rng: &mut Rng) -> &'a str {
        // 53 bits fill a double's mantissa: a number from 0 to just under 1.
        let share = (rng.next() >> 11) as f64 / (1_u64 << 53) as f64;
        let Some(&(_, sum)) = self.others.last().filter(|_| share >= self.com_share) else {
            return "com";
        };
        let drawn = rng.below(sum);
        let at = self.others.partition_point(|&(_, up_to)| up_to <= drawn);
        self.others[at].0
    }
}

/// Names in the making, in buckets in byte order: sorting one at a time takes little memory.
struct Drafts {
    /// First name of each bucket but the first.
    bounds: Vec<Box<str>>,
    buckets: Vec<Bucket>,
}

/// Names of one range: sorted and each once, but for those that were added last.
#[derive(Default)]
struct Bucket {
    text: Vec<u8>,
    lens: Vec<u8>,
    label_lens: Vec<u8>,
    /// Of two equal names, the one with the smaller number is kept.
    numbers: Vec<u32>,
}

/// One name of a bucket.
#[derive(Clone, Copy)]
struct Entry {
    /// The first 16 bytes, zero-padded: decides nearly every comparison without reading the text.
    key: u128,
    number: u32,
    start: u32,
    len: u8,
    label_len: u8,
}

impl Drafts {
    /// Buckets of about as many names each, if made names are spread like the real ones.
    fn new(real: &[DomainName]) -> Drafts {
        let step = real.len().div_ceil(BUCKETS).max(1);
        let bounds: Vec<Box<str>> =
            real.iter().step_by(step).skip(1).map(|name| name.as_str().into()).collect();
        let buckets = (0..=bounds.len()).map(|_| Bucket::default()).collect();
        Drafts { bounds, buckets }
    }

    /// Different names so far.
    fn len(&self) -> usize {
        self.buckets.iter().map(|bucket| bucket.lens.len()).sum()
    }

    /// Generates the names numbered from `first`, about `count` of them, and drops earlier ones.
    /// Returns the first number not made yet.
    fn add(&mut self, maker: &Maker<'_>, first: usize, count: usize) -> usize {
        let Drafts { bounds, buckets } = self;
        let end = first + count;
        let tasks = count.div_ceil(BLOCK);
        let make = |task: usize| {
            let from = first + task * BLOCK;
            make_block(maker, from..(from + BLOCK).min(end), bounds)
        };
        // Some at a time: all at once would hold every name twice.
        for group in (0..tasks).step_by(TASKS_AT_ONCE) {
            let tasks = group..(group + TASKS_AT_ONCE).min(tasks);
            let made: Vec<_> = tasks.into_par_iter().map(make).collect();
            for blocks in made {
                for (bucket, block) in buckets.iter_mut().zip(&blocks) {
                    bucket.append(block);
                }
            }
        }
        buckets.par_iter_mut().for_each(Bucket::sort);
        end
    }

    /// Keeps the `count` names with the smallest numbers: what making them one by one would have
    /// given, however many were made at a time.
    fn keep_first(&mut self, count: usize) {
        if count >= self.len() {
            return;
        }
        let numbers = self.buckets.iter().flat_map(|bucket| &bucket.numbers);
        let mut numbers: Vec<u32> = numbers.copied().collect();
        let (_, &mut end, _) = numbers.select_nth_unstable(count);
        self.buckets.par_iter_mut().for_each(|bucket| bucket.keep(|entry| entry.number < end));
    }

    fn into_corpus(self) -> Corpus {
        let len = self.len();
        let mut blocks: Vec<Block> = Vec::with_capacity(len.div_ceil(BLOCK));
        for bucket in self.buckets {
            for entry in bucket.entries() {
                if blocks.last().is_none_or(|block| block.ends.len() == BLOCK) {
                    blocks.last_mut().into_iter().for_each(Block::shrink);
                    blocks.push(Block::default());
                }
                let block = blocks.last_mut().expect("one was pushed");
                block.push(entry.bytes(&bucket.text), entry.label_len);
            }
        }
        Corpus { blocks, len }
    }
}

/// Generates the names with these numbers, by bucket.
fn make_block(
    maker: &Maker<'_>,
    numbers: std::ops::Range<usize>,
    bounds: &[Box<str>],
) -> Vec<Bucket> {
    let mut made: Vec<Bucket> = (0..=bounds.len()).map(|_| Bucket::default()).collect();
    let mut room = String::new();
    for number in numbers {
        if let Some(name) = maker.name(number, &mut room) {
            let at = bounds.partition_point(|bound| **bound <= *name.as_str());
            made[at].push(name.as_str().as_bytes(), name.label_len(), number as u32);
        }
    }
    made
}

impl Bucket {
    fn push(&mut self, name: &[u8], label_len: u8, number: u32) {
        self.text.extend_from_slice(name);
        self.lens.push(name.len() as u8);
        self.label_lens.push(label_len);
        self.numbers.push(number);
    }

    fn append(&mut self, other: &Bucket) {
        self.text.extend_from_slice(&other.text);
        self.lens.extend_from_slice(&other.lens);
        self.label_lens.extend_from_slice(&other.label_lens);
        self.numbers.extend_from_slice(&other.numbers);
    }

    fn entries(&self) -> impl Iterator<Item = Entry> {
        let mut start = 0;
        let columns = self.lens.iter().zip(&self.label_lens).zip(&self.numbers);
        columns.map(move |((&len, &label_len), &number)| {
            let name = &self.text[start..start + usize::from(len)];
            let entry = Entry { key: key_of(name), number, start: start as u32, len, label_len };
            start += usize::from(len);
            entry
        })
    }

    /// Sorts the names and removes duplicates.
    fn sort(&mut self) {
        let mut entries: Vec<Entry> = self.entries().collect();
        let text = &self.text;
        entries
            .sort_unstable_by(|a, b| a.compare_text(b, text).then_with(|| a.number.cmp(&b.number)));
        entries.dedup_by(|later, first| later.compare_text(first, text).is_eq());
        *self = self.of(entries.into_iter());
    }

    fn keep(&mut self, is_kept: impl Fn(&Entry) -> bool) {
        *self = self.of(self.entries().filter(is_kept));
    }

    /// Returns a bucket of `entries`.
    fn of(&self, entries: impl Iterator<Item = Entry>) -> Bucket {
        let mut made = Bucket::default();
        for entry in entries {
            made.push(entry.bytes(&self.text), entry.label_len, entry.number);
        }
        made.text.shrink_to_fit();
        made.lens.shrink_to_fit();
        made.label_lens.shrink_to_fit();
        made.numbers.shrink_to_fit();
        made
    }
}

fn key_of(name: &[u8]) -> u128 {
    let mut key = [0; 16];
    let keyed = name.len().min(key.len());
    key[..keyed].copy_from_slice(&name[..keyed]);
    u128::from_be_bytes(key)
}

impl Entry {
    fn bytes<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        let start = self.start as usize;
        &text[start..start + usize::from(self.len)]
    }

    fn compare_text(&self, other: &Entry, text: &[u8]) -> Ordering {
        self.key.cmp(&other.key).then_with(|| {
            // No name holds a NUL, so equal keys of short names are equal names.
            if self.len <= 16 && other.len <= 16 {
                return Ordering::Equal;
            }
            self.bytes(text).cmp(other.bytes(text))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// The real names of the sample.
    fn sample() -> RealNames {
        RealNames::read(&RealNames::sample_path()).expect("the sample is readable")
    }

    fn share(corpus: &Corpus, has: impl Fn(&DomainName) -> bool) -> f64 {
        corpus.iter().filter(has).count() as f64 / corpus.len() as f64
    }

    #[test]
    fn a_corpus_is_exact_sorted_and_registrable() {
        let corpus = sample().extend(70_001, 1).expect("made");
        assert_eq!((corpus.len(), corpus.is_empty()), (70_001, false));
        let names: Vec<DomainName> = corpus.iter().collect();
        assert!(names.is_sorted_by(|a, b| a < b), "sorted, none twice");
        for name in &names {
            assert_eq!(DomainName::parse(name.as_str()).as_ref(), Ok(name));
        }
        assert_eq!(corpus.text_len(), names.iter().map(|name| name.as_str().len()).sum::<usize>());
        assert!(corpus.par_iter().eq(names.par_iter().cloned()));
        for (at, name) in names.iter().enumerate() {
            assert_eq!(corpus.text(at), (name.as_str(), name.label().len()));
        }
    }

    #[test]
    fn a_corpus_depends_on_the_seed_and_not_on_the_threads() {
        let sample = sample();
        let with_threads = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            pool.expect("a pool").install(|| sample.extend(70_000, 7).expect("made"))
        };
        let one = with_threads(1);
        assert!(one == with_threads(3));
        let small = |seed| sample.extend(1_000, seed).expect("made");
        assert!(small(7) != small(8));
    }

    #[test]
    fn a_corpus_is_what_making_names_one_by_one_gives() {
        let real = RealNames::parse("good.com\nbrightmesa.de\nbest-car24.co.uk\n").expect("names");
        let corpus = real.extend(40, 3).expect("made");
        let maker = Maker::new(&real, 40, 3);
        let mut one_by_one: Vec<DomainName> = Vec::new();
        for name in (0..).filter_map(|number| maker.name(number, &mut String::new())) {
            if one_by_one.len() == 40 {
                break;
            }
            if !one_by_one.contains(&name) {
                one_by_one.push(name);
            }
        }
        one_by_one.sort_unstable();
        assert!(corpus.iter().eq(one_by_one));
    }

    #[test]
    fn a_corpus_looks_like_the_world() {
        let sample = sample();
        let corpus = sample.extend(100_000, 1).expect("made");
        let com = share(&corpus, |name| name.tld() == "com");
        assert!((0.42..0.48).contains(&com), ".com {com}");
        let idn = share(&corpus, |name| is_a_label(name.label()));
        assert!((0.002..0.02).contains(&idn), "IDN {idn}");
        let hyphen = share(&corpus, |name| name.label().contains('-') && !name.is_idn());
        assert!((0.10..0.22).contains(&hyphen), "hyphen {hyphen}");
        let digit = share(&corpus, |name| name.label().bytes().any(|b| b.is_ascii_digit()));
        assert!((0.05..0.14).contains(&digit), "digit {digit}");
        let mean = |names: &mut dyn Iterator<Item = DomainName>, count: usize| {
            names.map(|name| f64::from(name.length())).sum::<f64>() / count as f64
        };
        let real_length = mean(&mut sample.names().iter().cloned(), sample.names().len());
        let length = mean(&mut corpus.iter(), corpus.len());
        assert!((length - real_length).abs() < 1.0, "mean length {length}, real {real_length}");
        let mut labels: Vec<String> = corpus.iter().map(|name| name.label().to_owned()).collect();
        labels.sort_unstable();
        labels.dedup();
        let spread = corpus.len() as f64 / labels.len() as f64;
        assert!((1.05..1.6).contains(&spread), "TLDs a label {spread}");
    }

    #[test]
    fn real_names_are_kept_up_to_half() {
        let sample = sample();
        let kept = |count| {
            let corpus = sample.extend(count, 5).expect("made");
            corpus.iter().filter(|name| sample.names().binary_search(name).is_ok()).count()
        };
        assert_eq!(kept(2 * sample.names().len()), sample.names().len(), "all are taken");
        let half = kept(10_000);
        // Some made names are real by chance.
        assert!((5_000..5_500).contains(&half), "{half}");
    }

    #[test]
    fn labels_are_cut_where_people_would() {
        for (label, at) in [
            ("best-cars", 5),
            ("top10cars", 5),
            ("shop24", 4),
            ("brightmesa", 6),
            ("salamanca", 4),
            ("xkqz", 2),
            ("ab", 1),
            ("a", 1),
            ("a-very-long-one", 7),
        ] {
            assert_eq!(cut(label), at, "{label}");
        }
    }

    #[test]
    fn lists_are_read_in_every_packing() {
        let plain =
            b"domain,drop_date\nGood.com,2026-01-01\n\n# note\nnot a name\ngood.com\nbad.de\n";
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        gzip.write_all(plain).expect("packs");
        let gzip = gzip.finish().expect("packs");
        // The same two lines as two zstd frames, stored: magic, header, size, last raw block.
        let frame = |text: &[u8]| {
            let size = text.len() as u8;
            let block = (u32::from(size) << 3 | 1).to_le_bytes();
            [&[0x28, 0xb5, 0x2f, 0xfd, 0x20, size][..], &block[..3], text].concat()
        };
        let zstd = [frame(b"good.com\n"), frame(b"bad.de\n")].concat();
        let folder = tempfile::tempdir().expect("a folder");
        for (packing, bytes, refused) in
            [("plain", &plain[..], 1), ("gzip", &gzip[..], 1), ("zstd", &zstd[..], 0)]
        {
            let path = folder.path().join(packing);
            std::fs::write(&path, bytes).expect("written");
            let list = RealNames::read(&path).expect(packing);
            let names: Vec<&str> = list.names().iter().map(DomainName::as_str).collect();
            assert_eq!((names, list.refused()), (vec!["bad.de", "good.com"], refused), "{packing}");
        }
    }

    #[test]
    fn what_cannot_be_made_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("list");
        assert!(matches!(RealNames::read(&path), Err(GenerateError::Read { .. })));
        std::fs::write(&path, "no name\n\n").expect("written");
        assert!(matches!(RealNames::read(&path), Err(GenerateError::NoNames { lines: 2, .. })));
        let tiny = RealNames::parse("a.com").expect("a name");
        assert!(matches!(
            tiny.extend(100_000, 1),
            Err(GenerateError::Exhausted { wanted: 100_000, real: 1, .. })
        ));
        assert!(matches!(tiny.extend(COUNT_MAX + 1, 1), Err(GenerateError::TooMany(_))));
        assert!(tiny.extend(0, 1).expect("nothing").is_empty());
    }
}
