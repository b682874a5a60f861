//! Facts of dropped names, by doc: one edition of a source joined with a generation. Few names have facts of a
//! source, so only those are stored, by one index of docs for all columns of the edition.
//!
//! A condition on a fact reads the rows of the source that are within its docs, not all docs.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};
use std::sync::{Arc, PoisonError, RwLock};

use crate::columns::packed::Packed;
use crate::columns::slices::set_doc;
use crate::vocab::fact::{EditionId, FactCodes, FactColumnId};

/// Docs whose rows are found by one look: their low bits are stored.
const DOCS_PER_BLOCK: u32 = 1 << 16;

/// The editions that are joined with a generation.
#[derive(Debug, Default)]
pub struct FactTables(RwLock<BTreeMap<EditionId, Arc<FactTable>>>);

impl FactTables {
    /// Returns the joined edition.
    pub fn get(&self, id: EditionId) -> Option<Arc<FactTable>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    pub fn put(&self, id: EditionId, table: FactTable) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(id, Arc::new(table));
    }

    /// Forgets the editions that are not wanted.
    pub fn retain(&self, wanted: impl Fn(EditionId) -> bool) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).retain(|id, _| wanted(*id));
    }

    /// Returns the bytes of memory of each edition.
    pub fn bytes(&self) -> Vec<(EditionId, usize)> {
        let tables = self.0.read().unwrap_or_else(PoisonError::into_inner);
        tables.iter().map(|(id, table)| (*id, table.bytes())).collect()
    }
}

/// An edition joined with a generation. Rows are the docs with facts of the source, in order.
#[derive(Debug)]
pub struct FactTable {
    /// Low bits of the doc of each row.
    lows: Vec<u16>,
    /// First row of each block of docs, and the end of the last one.
    starts: Vec<u32>,
    columns: Vec<CodeColumn>,
}

/// The numbers of a column, by row, packed. 0 stands for unknown; the others have the order of the numbers.
#[derive(Debug)]
struct CodeColumn {
    numbers: Numbers,
    packed: Packed,
}

/// The number of each packed value.
#[derive(Debug)]
enum Numbers {
    /// 1 is this number, 2 the one after it.
    From(i64),
    /// 1 is the first of these.
    Sorted(Vec<i64>),
}

/// Packed values that pass a condition.
#[derive(Debug)]
enum PackedTest {
    Range(RangeInclusive<u32>),
    /// Sorted.
    OneOf(Vec<u32>),
    Unknown,
}

impl PackedTest {
    /// Returns true for a row that passes.
    #[inline]
    fn passes(&self, packed: u32) -> bool {
        match self {
            PackedTest::Range(range) => range.contains(&packed),
            PackedTest::OneOf(all) => all.binary_search(&packed).is_ok(),
            PackedTest::Unknown => packed == 0,
        }
    }
}

/// A condition on a fact, ready to be tested. `None` passes no name: the edition is not joined, so that its facts are
/// not known to this generation, or not for those who ask.
#[derive(Debug)]
pub struct FactCheck(Option<JoinedCheck>);

#[derive(Debug)]
struct JoinedCheck {
    table: Arc<FactTable>,
    column: usize,
    test: PackedTest,
}

impl FactCheck {
    /// Prepares a condition.
    pub fn new(tables: &FactTables, condition: Option<(FactColumnId, &FactCodes)>) -> FactCheck {
        FactCheck(condition.and_then(|(id, codes)| {
            let table = tables.get(id.edition)?;
            let test = table.columns.get(usize::from(id.column))?.test(codes);
            Some(JoinedCheck { table, column: id.column.into(), test })
        }))
    }

    /// Returns true if a doc passes.
    pub fn passes(&self, doc: u32) -> bool {
        let Some(check) = &self.0 else { return false };
        match check.table.row(doc) {
            Some(row) => check.test.passes(check.table.columns[check.column].packed.get(row)),
            None => matches!(check.test, PackedTest::Unknown),
        }
    }

    /// Clears the bits of the docs that fail, starting at doc `64 * first`.
    pub fn keep(&self, first: usize, words: &mut [u64]) {
        let Some(JoinedCheck { table, column, test }) = &self.0 else { return words.fill(0) };
        let column = &table.columns[*column].packed;
        let start = (first * 64) as u32;
        let docs = start..start.saturating_add((words.len() * 64) as u32);
        if let PackedTest::Unknown = test {
            table.each_row(docs, |row, doc| {
                let at = (doc - start) as usize;
                words[at / 64] &= !(u64::from(column.get(row) != 0) << (at % 64));
            });
            return;
        }
        let mut passing = vec![0; words.len()];
        table.each_row(docs, |row, doc| {
            if test.passes(column.get(row)) {
                set_doc(&mut passing, doc - start);
            }
        });
        words.iter_mut().zip(passing).for_each(|(word, passing)| *word &= passing);
    }
}

impl FactTable {
    /// Joins rows: docs in ascending order, and for each column the numbers of all rows.
    pub fn new(docs: &[u32], columns: &[Vec<Option<i64>>]) -> FactTable {
        let blocks = docs.last().map_or(0, |last| last / DOCS_PER_BLOCK + 1);
        let start = |block: u32| {
            docs.partition_point(|doc| {
                u64::from(*doc) < u64::from(block) * u64::from(DOCS_PER_BLOCK)
            }) as u32
        };
        FactTable {
            lows: docs.iter().map(|doc| *doc as u16).collect(),
            starts: (0..=blocks).map(start).collect(),
            columns: columns.iter().map(|column| CodeColumn::new(column)).collect(),
        }
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.lows.len()
    }

    /// Returns the number of a doc in a column; `None` if it is unknown.
    pub fn code(&self, column: u8, doc: u32) -> Option<i64> {
        let column = self.columns.get(usize::from(column))?;
        column.number(column.packed.get(self.row(doc)?))
    }

    /// Calls `visit` with every doc with a known number in a column.
    pub fn each_known(&self, column: u8, mut visit: impl FnMut(u32, i64)) {
        if let Some(column) = self.columns.get(usize::from(column)) {
            self.each_row(0..u32::MAX, |row, doc| {
                if let Some(number) = column.number(column.packed.get(row)) {
                    visit(doc, number);
                }
            });
        }
    }

    /// Returns the bytes of memory.
    fn bytes(&self) -> usize {
        let columns: usize = self.columns.iter().map(CodeColumn::bytes).sum();
        size_of_val(&*self.lows) + size_of_val(&*self.starts) + columns
    }

    fn row(&self, doc: u32) -> Option<usize> {
        let block = (doc / DOCS_PER_BLOCK) as usize;
        let rows = *self.starts.get(block)? as usize..*self.starts.get(block + 1)? as usize;
        let found = self.lows[rows.clone()].binary_search(&(doc as u16));
        found.ok().map(|at| rows.start + at)
    }

    /// Calls `each` for the rows of these docs.
    fn each_row(&self, docs: Range<u32>, mut each: impl FnMut(usize, u32)) {
        let first = (docs.start / DOCS_PER_BLOCK) as usize;
        for (block, rows) in self.starts.windows(2).enumerate().skip(first) {
            let base = block as u32 * DOCS_PER_BLOCK;
            if base >= docs.end {
                break;
            }
            let rows = rows[0] as usize..rows[1] as usize;
            let lows = &self.lows[rows.clone()];
            let skipped = match docs.start.checked_sub(base) {
                Some(start) => lows.partition_point(|low| u32::from(*low) < start),
                None => 0,
            };
            for (row, low) in (rows.start + skipped..).zip(&lows[skipped..]) {
                let doc = base + u32::from(*low);
                if doc >= docs.end {
                    return;
                }
                each(row, doc);
            }
        }
    }
}

impl CodeColumn {
    fn new(numbers: &[Option<i64>]) -> CodeColumn {
        let known = || numbers.iter().flatten();
        let (least, most) = (known().min().copied(), known().max().copied());
        let (least, most) = (least.unwrap_or(0), most.unwrap_or(0));
        // 0 is unknown, and the bound is exclusive.
        let bound =
            most.checked_sub(least).and_then(|range| u32::try_from(range).ok()?.checked_add(2));
        if let Some(bound) = bound {
            let packed = numbers.iter().map(|it| it.map_or(0, |it| (it - least) as u32 + 1));
            let packed = Packed::new(bound as usize, numbers.len(), packed);
            return CodeColumn { numbers: Numbers::From(least), packed };
        }
        let mut sorted: Vec<i64> = known().copied().collect();
        sorted.sort_unstable();
        sorted.dedup();
        let place = |it: &i64| sorted.binary_search(it).map_or(0, |at| at as u32 + 1);
        let packed = numbers.iter().map(|it| it.as_ref().map_or(0, place));
        let packed = Packed::new(sorted.len() + 1, numbers.len(), packed);
        CodeColumn { numbers: Numbers::Sorted(sorted), packed }
    }

    fn number(&self, packed: u32) -> Option<i64> {
        let at = packed.checked_sub(1)?;
        match &self.numbers {
            Numbers::From(least) => Some(least + i64::from(at)),
            Numbers::Sorted(sorted) => sorted.get(at as usize).copied(),
        }
    }

    /// Returns the packed value of the first number that is not below `number`, from 1; it may be that of none.
    fn packed_from(&self, number: i64) -> u64 {
        match &self.numbers {
            Numbers::From(least) => {
                1 + u64::try_from(i128::from(number) - i128::from(*least)).unwrap_or(0)
            }
            Numbers::Sorted(sorted) => 1 + sorted.partition_point(|it| *it < number) as u64,
        }
    }

    fn test(&self, codes: &FactCodes) -> PackedTest {
        let clamped = |packed: u64| u32::try_from(packed).unwrap_or(u32::MAX);
        match codes {
            FactCodes::Known => PackedTest::Range(1..=u32::MAX),
            FactCodes::Unknown => PackedTest::Unknown,
            FactCodes::Range(low, high) => {
                let end = high.checked_add(1).map_or(u64::MAX, |end| self.packed_from(end));
                PackedTest::Range(clamped(self.packed_from(*low))..=clamped(end - 1))
            }
            FactCodes::OneOf(numbers) => {
                let exact = |number: &i64| {
                    let packed = clamped(self.packed_from(*number));
                    (self.number(packed) == Some(*number)).then_some(packed)
                };
                PackedTest::OneOf(numbers.iter().filter_map(exact).collect())
            }
        }
    }

    fn bytes(&self) -> usize {
        let numbers = match &self.numbers {
            Numbers::From(_) => 0,
            Numbers::Sorted(sorted) => size_of_val(&**sorted),
        };
        numbers + self.packed.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Docs in several blocks, and the numbers of columns of every kind.
    fn random(random: &mut fastrand::Rng) -> (Vec<u32>, Vec<Vec<Option<i64>>>) {
        let mut docs: Vec<u32> = (0..random.usize(..400)).map(|_| random.u32(..200_000)).collect();
        docs.sort_unstable();
        docs.dedup();
        let spans: [Range<i64>; 4] =
            [0..100, -5..5, -1_000_000_000_000..1_000_000_000_000, i64::MIN..i64::MAX];
        let column = |span: &Range<i64>| {
            docs.iter().map(|_| random.bool().then(|| random.i64(span.clone()))).collect()
        };
        let columns = spans.iter().map(column).collect();
        (docs, columns)
    }

    #[test]
    fn conditions_pass_as_on_plain_numbers() {
        let mut rng = fastrand::Rng::with_seed(46);
        for _ in 0..60 {
            let (docs, columns) = random(&mut rng);
            let tables = FactTables::default();
            tables.put(EditionId(1), FactTable::new(&docs, &columns));
            let table = tables.get(EditionId(1)).expect("put");
            for (at, column) in columns.iter().enumerate() {
                let number = |doc: u32| column[docs.binary_search(&doc).ok()?];
                let known = docs.iter().filter_map(|&doc| Some((doc, number(doc)?)));
                let mut visited = Vec::new();
                table.each_known(at as u8, |doc, number| visited.push((doc, number)));
                assert_eq!(visited, known.clone().collect::<Vec<_>>());
                let mut some: Vec<i64> = known.map(|(_, number)| number).take(5).collect();
                some.extend([i64::MIN, -3, 0, 50, i64::MAX]);
                some.sort_unstable();
                some.dedup();
                let any = |rng: &mut fastrand::Rng| some[rng.usize(..some.len())];
                let mut tests = vec![
                    FactCodes::Known,
                    FactCodes::Unknown,
                    FactCodes::OneOf(some.clone()),
                    FactCodes::OneOf(Vec::new()),
                ];
                for _ in 0..10 {
                    tests.push(FactCodes::Range(any(&mut rng), any(&mut rng)));
                }
                for codes in tests {
                    let id = FactColumnId { edition: EditionId(1), column: at as u8 };
                    let check = FactCheck::new(&tables, Some((id, &codes)));
                    let (first, len) = (rng.usize(..3_200), rng.usize(1..200));
                    let before: Vec<u64> = (0..len).map(|_| rng.u64(..)).collect();
                    let mut words = before.clone();
                    check.keep(first, &mut words);
                    for bit in 0..len * 64 {
                        let doc = (first * 64 + bit) as u32;
                        let passes = codes.pass(number(doc));
                        assert_eq!(check.passes(doc), passes, "{doc} {codes:?}");
                        let is_set = |words: &[u64]| words[bit / 64] >> (bit % 64) & 1 == 1;
                        assert_eq!(is_set(&words), is_set(&before) && passes, "{doc} {codes:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn no_name_passes_a_condition_on_facts_that_are_not_joined() {
        let tables = FactTables::default();
        let id = FactColumnId { edition: EditionId(1), column: 0 };
        for condition in [None, Some((id, &FactCodes::Unknown)), Some((id, &FactCodes::Known))] {
            let check = FactCheck::new(&tables, condition);
            let mut words = [u64::MAX; 2];
            check.keep(0, &mut words);
            assert_eq!((words, check.passes(0)), ([0; 2], false));
        }
    }

    #[test]
    fn twelve_sparse_columns_take_little_memory() {
        let docs: Vec<u32> = (0..10_000_000).step_by(20).collect();
        let numbers = docs.iter().map(|doc| Some(i64::from(doc % 16_000))).collect();
        let table = FactTable::new(&docs, &vec![numbers; 12]);
        assert!(table.bytes() <= 12_000_000, "{} bytes", table.bytes());
    }
}
