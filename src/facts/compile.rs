//! Turns a file of facts into editions, one for each source that it names. An edition keeps the rows of the previous
//! edition whose keys the file does not have.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use crate::FactsFile;
use crate::key::Key;
use crate::store::{Edition, Licence, SourceMeta, SourceWriter, StoreError, StoredColumn};
use crate::value::Value;
use crate::vocab::day::Day;
use crate::vocab::fact::{FactType, KeyKind};
use crate::vocab::limits::{FACTS_COLUMNS_MAX, FACTS_ROWS_MAX, FACTS_WORDS_MAX};
use crate::vocab::money::Currency;
use crate::vocab::name::DomainName;

/// Titles and licences of the tools whose exports are recognised. Those of link and keyword tools are licensed to
/// the person who exported them.
const KNOWN: [(&str, &str, Licence); 18] = [
    ("godaddy", "GoDaddy", Licence::Own),
    ("namecheap", "Namecheap", Licence::Own),
    ("dynadot", "Dynadot", Licence::Own),
    ("porkbun", "Porkbun", Licence::Own),
    ("sav", "Sav", Licence::Own),
    ("efty", "Efty", Licence::Own),
    ("sedo", "Sedo", Licence::Own),
    ("afternic", "Afternic", Licence::Own),
    ("afternic-old", "Afternic (old)", Licence::Own),
    ("parkio", "park.io", Licence::Own),
    ("ahrefs", "Ahrefs", Licence::Vendor),
    ("majestic", "Majestic", Licence::Vendor),
    ("moz", "Moz", Licence::Vendor),
    ("spamzilla", "SpamZilla", Licence::Vendor),
    ("expireddomains", "ExpiredDomains.net", Licence::Vendor),
    ("keywords", "Keyword Planner", Licence::Vendor),
    ("udrp", "UDRP decisions", Licence::Own),
    ("marks", "Word marks", Licence::Own),
];

/// Why the rows of a source cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    #[error(
        "{0} is {1} in this file and {2} in the facts that you have: remove the source first, or name the column \
         differently"
    )]
    Type(String, FactType, FactType),
    #[error(
        "source {0} has facts by {1}, and this file has facts by {2}: remove the source first, or name it \
         differently"
    )]
    Key(String, KeyKind, KeyKind),
    #[error("source {0} would have {1} rows; at most {FACTS_ROWS_MAX} are kept: remove it first")]
    Rows(String, usize),
    #[error(
        "source {0} would have {1} columns; at most {FACTS_COLUMNS_MAX} are kept: remove it first"
    )]
    Columns(String, usize),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A new edition of a source.
#[derive(Debug)]
pub struct Compiled {
    pub meta: SourceMeta,
    pub bytes: Vec<u8>,
    pub rows: u64,
    /// Rows of the file that are new, or replace older ones.
    pub from_file: u64,
    /// Rows of the file whose words no label spells.
    pub unspelled: u64,
}

/// Licence and attribution of a new edition, as far as they are not those of the known tool.
#[derive(Clone, Debug, Default)]
pub struct Rights {
    pub licence: Option<Licence>,
    pub attribution: Option<String>,
}

type Cells = (Option<Day>, Vec<Option<Value>>);

/// Rows of one source by key, and its columns.
struct Rows {
    id: String,
    key: KeyKind,
    columns: Vec<StoredColumn>,
    rows: BTreeMap<String, Cells>,
}

/// Makes an edition of each source in a file. `before` returns the edition of a source that it extends. The
/// facts of rows without a day are those of `today`.
///
/// # Errors
/// The file does not fit the edition that it extends, or too many rows or columns result.
pub fn compile<'a>(
    file: FactsFile,
    today: Day,
    rights: &Rights,
    before: impl Fn(&str) -> Option<&'a Edition>,
) -> Result<Vec<Compiled>, CompileError> {
    let key = file.report.key.kind;
    let facts: Vec<_> = file.report.read.iter().map(|column| column.fact.clone()).collect();
    let sources: BTreeSet<&str> = facts.iter().map(|fact| fact.source()).collect();
    let mut unspelled = 0;
    let mut keyed: BTreeMap<String, Cells> = BTreeMap::new();
    for row in file.rows {
        let keys = spelled(&row.key);
        unspelled += u64::from(keys.is_empty());
        // Of several words with one spelling, the first counts.
        for key in keys {
            keyed.entry(key).or_insert_with(|| (row.as_of, row.values.clone()));
        }
    }
    let mut all = Vec::new();
    for source in sources {
        let of_source: Vec<usize> =
            (0..facts.len()).filter(|&at| facts[at].source() == source).collect();
        let column = |&at: &usize| {
            let read = &file.report.read[at];
            let (unit, direction, scale) = (read.unit, read.direction, read.scale);
            StoredColumn {
                unit,
                direction,
                scale,
                ..StoredColumn::new(read.fact.fact(), read.kind)
            }
        };
        let columns = of_source.iter().map(column).collect();
        let mut rows = Rows { id: source.to_owned(), key, columns, rows: BTreeMap::new() };
        for (key, (as_of, values)) in &keyed {
            let values: Vec<_> = of_source.iter().map(|&at| values[at].clone()).collect();
            if values.iter().any(Option::is_some) {
                rows.rows.insert(key.clone(), (Some(as_of.unwrap_or(today)), values));
            }
        }
        let from_file = rows.rows.len() as u64;
        let before = before(source);
        rows.split_currencies(before);
        if let Some(before) = before {
            rows.add(before)?;
        }
        all.push(rows.compiled(today, rights, from_file, unspelled)?);
    }
    Ok(all)
}

/// Returns the keys of a row as names and labels are ordered. Those of words are the labels that they spell, with and
/// without hyphens between them; words that no label spells have none.
fn spelled(key: &Key) -> Vec<String> {
    match key {
        Key::Domain(name) => vec![name.as_str().to_owned()],
        Key::Label(label) => vec![label.clone()],
        Key::Word(words) => {
            let words: Vec<&str> = words.split_whitespace().collect();
            let mut spellings = vec![words.concat()];
            spellings.extend((words.len() > 1).then(|| words.join("-")));
            let label = |spelling: String| {
                // Any suffix will do: it is not kept.
                let name = DomainName::parse(&format!("{spelling}.com")).ok()?;
                Some(name.label().to_owned())
            };
            spellings.into_iter().filter_map(label).collect()
        }
    }
}

impl Rows {
    /// Gives the amounts of a currency other than that of their column a column of their own: `price_eur`. The
    /// currency of a column is the one that it had before, or else that of most amounts.
    fn split_currencies(&mut self, before: Option<&Edition>) {
        for at in 0..self.columns.len() {
            if self.columns[at].kind != FactType::Money {
                continue;
            }
            let mut counts: BTreeMap<&'static str, (u64, Currency)> = BTreeMap::new();
            for (_, values) in self.rows.values() {
                if let Some(Value::Money { currency, .. }) = values[at] {
                    counts.entry(currency.as_str()).or_insert((0, currency)).0 += 1;
                }
            }
            let known = before.and_then(|edition| {
                let columns = &edition.meta().columns;
                columns.iter().find(|it| it.name == self.columns[at].name)?.currency
            });
            let most = counts.values().max_by_key(|(count, _)| *count).map(|(_, it)| *it);
            let main = known.or(most);
            self.columns[at].currency = main;
            for (_, currency) in counts.into_values().filter(|(_, it)| Some(*it) != main) {
                let code = currency.as_str().to_ascii_lowercase();
                let name = format!("{}_{code}", self.columns[at].name);
                self.columns.push(StoredColumn {
                    currency: Some(currency),
                    ..StoredColumn { name, ..self.columns[at].clone() }
                });
                for (_, values) in self.rows.values_mut() {
                    let is_other = |value: &mut Value| matches!(value, Value::Money { currency: of, .. } if *of == currency);
                    let other = values[at].take_if(is_other);
                    values.push(other);
                }
            }
        }
    }

    /// Adds the rows of an older edition whose keys are not known yet.
    fn add(&mut self, before: &Edition) -> Result<(), CompileError> {
        let meta = before.meta();
        if meta.key != self.key {
            return Err(CompileError::Key(self.id.clone(), meta.key, self.key));
        }
        // Position of each older column among all columns.
        let mut places = Vec::with_capacity(meta.columns.len());
        for column in &meta.columns {
            match self.columns.iter_mut().position(|it| it.name == column.name) {
                Some(at) => {
                    let known = &mut self.columns[at];
                    let is_text = [known.kind, column.kind].contains(&FactType::Text)
                        && [known.kind, column.kind].contains(&FactType::Enum);
                    if known.kind != column.kind && !is_text {
                        let name = format!("{}.{}", self.id, column.name);
                        return Err(CompileError::Type(name, known.kind, column.kind));
                    }
                    places.push(at);
                }
                None => {
                    places.push(self.columns.len());
                    let words = Vec::new();
                    self.columns.push(StoredColumn { words, ..column.clone() });
                }
            }
        }
        let width = self.columns.len();
        self.rows.values_mut().for_each(|(_, values)| values.resize(width, None));
        let mut rows = before.rows_from(b"")?;
        while let Some(row) = rows.next_row()? {
            let Ok(key) = String::from_utf8(row.key.clone()) else { continue };
            let cells = self.rows.entry(key).or_insert_with(|| {
                let mut cells = vec![None; width];
                let values = before.values(row).into_iter();
                places.iter().zip(values).for_each(|(&at, value)| cells[at] = value);
                (Some(before.as_of(row)), cells)
            });
            debug_assert_eq!(cells.1.len(), width);
        }
        Ok(())
    }

    /// Chooses how the values of columns are stored.
    fn fit(&mut self) {
        for (at, column) in self.columns.iter_mut().enumerate() {
            let values = || self.rows.values().filter_map(|(_, values)| values[at].as_ref());
            column.words = Vec::new();
            let is_words = column.kind == FactType::Enum;
            let mut words: BTreeSet<&str> = BTreeSet::new();
            for value in values() {
                match value {
                    Value::Dec(number) => {
                        column.decimals = column.decimals.max(number.decimals() as u8);
                    }
                    Value::Enum(word) => drop(words.insert(word)),
                    // Text of an older edition, which had too many words.
                    Value::Text(_) if is_words => column.kind = FactType::Text,
                    _ => {}
                }
            }
            if words.len() > FACTS_WORDS_MAX {
                column.kind = FactType::Text;
            } else {
                column.words = words.into_iter().map(str::to_owned).collect();
            }
        }
        for (_, values) in self.rows.values_mut() {
            for (value, column) in values.iter_mut().zip(&self.columns) {
                if let (Some(Value::Enum(word)), FactType::Text) = (&mut *value, column.kind) {
                    *value = Some(Value::Text(mem::take(word)));
                }
            }
        }
    }

    fn compiled(
        mut self,
        today: Day,
        rights: &Rights,
        from_file: u64,
        unspelled: u64,
    ) -> Result<Compiled, CompileError> {
        if self.rows.len() as u64 > FACTS_ROWS_MAX {
            return Err(CompileError::Rows(self.id, self.rows.len()));
        }
        if self.columns.len() > FACTS_COLUMNS_MAX {
            return Err(CompileError::Columns(self.id, self.columns.len()));
        }
        self.fit();
        let known = KNOWN.iter().find(|(id, ..)| *id == self.id);
        let meta = SourceMeta {
            title: known.map_or(self.id.as_str(), |(_, title, _)| title).to_owned(),
            licence: rights.licence.unwrap_or(known.map_or(Licence::Own, |(.., licence)| *licence)),
            id: self.id,
            key: self.key,
            as_of: today,
            attribution: rights.attribution.clone(),
            columns: self.columns,
        };
        let mut writer = SourceWriter::new(Vec::new(), meta.clone())?;
        for (key, (as_of, values)) in &self.rows {
            writer.push(key, *as_of, values)?;
        }
        let (bytes, rows) = (writer.finish()?, self.rows.len() as u64);
        Ok(Compiled { meta, bytes, rows, from_file, unspelled })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Choices;

    fn compiled(text: &str, before: Option<&Edition>) -> Result<Vec<Compiled>, CompileError> {
        let file = FactsFile::read(text.as_bytes().to_vec(), &[], Choices::default());
        let today = "2026-11-29".parse().expect("a date");
        compile(file.expect(text), today, &Rights::default(), |id| {
            before.filter(|it| it.meta().id == id)
        })
    }

    fn edition(compiled: Compiled) -> Edition {
        Edition::of_bytes(Arc::from(compiled.bytes)).expect("sound")
    }

    fn shown(edition: &Edition) -> Vec<String> {
        let mut rows = edition.rows_from(b"").expect("read");
        let mut all = Vec::new();
        while let Some(row) = rows.next_row().expect("read") {
            let values = edition.values(row).into_iter();
            let values = values.map(|it| it.map_or("?".to_owned(), |value| value.to_string()));
            let key = String::from_utf8_lossy(&row.key).into_owned();
            all.push(format!(
                "{key} {} {}",
                edition.as_of(row),
                values.collect::<Vec<_>>().join(" | ")
            ));
        }
        all
    }

    #[test]
    fn each_source_of_a_file_becomes_an_edition() {
        let text = "domain,b.x:int,a.y:dec,a.z:enum,as_of\n\
                    two.com,2,1.25,red,2026-01-02\none.com,,3,,\nthree.com,3,,,\n";
        let mut all = compiled(text, None).expect("fits");
        assert_eq!(all.iter().map(|it| it.rows).collect::<Vec<_>>(), [2, 2]);
        assert_eq!(all[0].meta.columns[0].decimals, 2);
        let (b, a) = (edition(all.remove(1)), edition(all.remove(0)));
        assert_eq!(shown(&a), ["one.com 2026-11-29 3 | ?", "two.com 2026-01-02 1.25 | red"]);
        assert_eq!(shown(&b), ["three.com 2026-11-29 3", "two.com 2026-01-02 2"]);
    }

    #[test]
    fn a_later_file_replaces_the_rows_that_it_has() {
        let text =
            "domain,a.x:int,a.note:enum,as_of\none.com,1,old,2026-01-01\ntwo.com,2,,2026-01-01\n";
        let before = edition(compiled(text, None).expect("fits").remove(0));
        let text = "domain,a.new:year,a.x:int\ntwo.com,2001,3\nthree.com,,4\n";
        let after = compiled(text, Some(&before)).expect("fits").remove(0);
        assert_eq!((after.rows, after.from_file), (3, 2));
        assert_eq!(
            shown(&edition(after)),
            [
                "one.com 2026-01-01 ? | 1 | old",
                "three.com 2026-11-29 ? | 4 | ?",
                "two.com 2026-11-29 2001 | 3 | ?"
            ]
        );
        let other = compiled("domain,a.x:year\none.com,2001\n", Some(&before)).expect_err("a year");
        assert!(other.to_string().starts_with("a.x is year in this file and int"), "{other}");
        let other = compiled("label,a.x:int\none,1\n", Some(&before)).expect_err("labels");
        assert!(other.to_string().starts_with("source a has facts by domain"), "{other}");
    }

    #[test]
    fn each_currency_has_a_column() {
        let text = "domain,a.price:money\none.com,1 EUR\ntwo.com,2 EUR\nthree.com,3 USD\n";
        let before = edition(compiled(text, None).expect("fits").remove(0));
        let names = |edition: &Edition| {
            let columns = edition.meta().columns.iter();
            columns.map(|it| it.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(&before), ["price", "price_usd"]);
        // The currency of a column stays.
        let text = "domain,a.price:money\nfour.com,4 USD\nfive.com,5 USD\n";
        let after = edition(compiled(text, Some(&before)).expect("fits").remove(0));
        assert_eq!(names(&after), ["price", "price_usd"]);
        assert_eq!(
            shown(&after),
            [
                "five.com 2026-11-29 ? | 5.00 USD",
                "four.com 2026-11-29 ? | 4.00 USD",
                "one.com 2026-11-29 1.00 EUR | ?",
                "three.com 2026-11-29 ? | 3.00 USD",
                "two.com 2026-11-29 2.00 EUR | ?"
            ]
        );
    }

    #[test]
    fn columns_of_too_many_words_become_text() {
        let rows: String = (0..=FACTS_WORDS_MAX).map(|at| format!("n{at}.com,w{at}\n")).collect();
        let many = compiled(&format!("domain,a.kind:enum\n{rows}"), None).expect("fits").remove(0);
        assert_eq!(many.meta.columns[0].kind, FactType::Text);
        let many = edition(many);
        let few =
            compiled("domain,a.kind:enum\nfew.com,few\n", Some(&many)).expect("fits").remove(0);
        assert_eq!((few.meta.columns[0].kind, few.rows), (FactType::Text, 1_002));
        edition(few);
    }

    #[test]
    fn words_are_the_labels_that_they_spell() {
        let text = "word,a.volume:int\ncar insurance,5\nCarInsurance,6\nbücher,7\nc++,8\n";
        let words = compiled(text, None).expect("fits").remove(0);
        assert_eq!((words.rows, words.unspelled), (3, 1));
        assert_eq!(
            shown(&edition(words)),
            [
                "car-insurance 2026-11-29 5",
                "carinsurance 2026-11-29 5",
                "xn--bcher-kva 2026-11-29 7"
            ]
        );
    }
}
