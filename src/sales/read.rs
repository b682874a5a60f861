//! A file of facts to sales.

use std::path::Path;

use serde::Serialize;

use crate::amount::Amount;
use crate::channel::Channel;
use crate::facts::store::{Edition, SourceMeta, StoreError, StoredColumn};
use crate::facts::{
    AmbiguousColumn, Choices, FactsError, FactsFile, Key, LISTED_MAX, Mapping, ReadColumn, Refusal,
    Value,
};
use crate::likeness::Likeness;
use crate::scorer::Scratch;
use crate::vocab::day::Day;
use crate::vocab::fact::{FactType, KeyKind};
use crate::vocab::money::Currency;
use crate::vocab::name::DomainName;

/// A sale of a name.
#[derive(Clone, Debug)]
pub struct Sale {
    pub(crate) likeness: Likeness,
    pub(crate) price: Amount,
    pub(crate) currency: Currency,
    pub(crate) day: Day,
    pub(crate) channel: Channel,
    pub(crate) venue: Option<String>,
}

impl Sale {
    pub(crate) fn name(&self) -> &DomainName {
        &self.likeness.name
    }
}

/// Report on a file of sales. It repeats names of columns, but no cell.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SalesReport {
    /// The export, as [`FactsFile::preset`].
    pub preset: &'static str,
    /// Rows below the header with at least one cell.
    pub rows: u64,
    pub sales: u64,
    /// Rows with neither a price nor a day: names that were not sold.
    pub unsold: u64,
    pub refused_rows: u64,
    /// The first refused rows.
    pub refused: Vec<Refusal>,
    /// Columns that are not read, by their names.
    pub ignored: Vec<String>,
    /// Columns that may hold personal data or secrets, by their names.
    pub dropped: Vec<String>,
}

/// The sales of a file.
#[derive(Debug)]
pub struct SalesFile {
    pub sales: Vec<Sale>,
    pub report: SalesReport,
}

/// Reason why a file has no sales that can be read.
#[derive(Debug, thiserror::Error)]
pub enum SalesError {
    #[error(transparent)]
    Facts(#[from] FactsError),
    #[error(
        "has no columns with name, price and day of sales; write a header such as \
         `domain,price,currency,date,venue,channel`"
    )]
    NotSales,
    #[error("column {0} cannot be read: {1}")]
    Ambiguous(String, String),
}

/// Positions of the columns of sales within the values of a row.
struct Columns<'a> {
    price: usize,
    day: usize,
    venue: Option<usize>,
    channel: Option<usize>,
    /// Name of the source of the price: `efty`.
    source: &'a str,
}

const PRICE: &str = "sold_price";

impl<'a> Columns<'a> {
    fn of_file(read: &'a [ReadColumn]) -> Option<Columns<'a>> {
        let source = read.iter().find(|it| it.fact.fact() == PRICE)?.fact.source();
        Columns::find(source, PRICE, |name, kinds| {
            let is_it = |it: &ReadColumn| it.fact.fact() == name && kinds.contains(&it.kind);
            read.iter().position(is_it)
        })
    }

    /// Returns the columns of each price of an edition, which has one a currency.
    fn of_source(meta: &'a SourceMeta) -> Vec<Columns<'a>> {
        let is_price = |name: &str| {
            let currency = name.strip_prefix(PRICE);
            currency.is_some_and(|it| it.is_empty() || it.starts_with('_'))
        };
        let prices = meta.columns.iter().filter(|it| is_price(&it.name));
        let columns = prices.filter_map(|price| {
            Columns::find(&meta.id, &price.name, |name, kinds| {
                let is_it = |it: &StoredColumn| it.name == name && kinds.contains(&it.kind);
                meta.columns.iter().position(is_it)
            })
        });
        columns.filter(|_| meta.key == KeyKind::Domain).collect()
    }

    fn find(
        source: &'a str,
        price: &str,
        find: impl Fn(&str, &[FactType]) -> Option<usize>,
    ) -> Option<Columns<'a>> {
        let texts = [FactType::Enum, FactType::Text];
        Some(Columns {
            price: find(price, &[FactType::Money])?,
            day: find("sold", &[FactType::Date])?,
            venue: find("venue", &texts),
            channel: find("channel", &texts),
            source,
        })
    }

    fn sale(
        &self,
        name: &DomainName,
        values: &[Option<Value>],
        scratch: &mut Scratch,
    ) -> Result<Option<Sale>, &'static str> {
        let value = |at: usize| values.get(at).cloned().flatten();
        let text = |at: Option<usize>| match value(at?)? {
            Value::Enum(text) | Value::Text(text) => Some(text),
            _ => None,
        };
        let (price, currency, day) = match (value(self.price), value(self.day)) {
            (None, None) => return Ok(None),
            (None, _) => return Err("no price that can be read"),
            (_, None) => return Err("no day that can be read"),
            (Some(Value::Money { cents: 0, .. }), _) => return Err("the price is 0"),
            (Some(Value::Money { cents, currency }), Some(Value::Date(day))) => {
                (Amount(cents), currency, day)
            }
            _ => return Ok(None),
        };
        let venue = text(self.venue);
        let channel = match text(self.channel) {
            Some(stated) => stated
                .to_ascii_lowercase()
                .parse()
                .map_err(|_| "the channel is not auction, retail or unknown")?,
            None => Channel::of_venue(venue.as_deref().unwrap_or(self.source)),
        };
        let likeness = Likeness::of(name, scratch);
        if likeness.is_prohibited {
            return Err("no list may hold the name");
        }
        Ok(Some(Sale { likeness, price, currency, day, channel, venue }))
    }
}

impl Sale {
    /// Returns true if a source of facts has sales.
    pub fn are_in(meta: &SourceMeta) -> bool {
        !Columns::of_source(meta).is_empty()
    }

    /// Returns the sales of an edition of facts, one a name and currency.
    ///
    /// # Errors
    /// The edition cannot be read.
    pub fn all_of(edition: &Edition) -> Result<Vec<Sale>, StoreError> {
        let columns = Columns::of_source(edition.meta());
        let (mut sales, mut scratch) = (Vec::new(), Scratch::default());
        let mut rows = edition.rows_from(b"")?;
        while let Some(row) = rows.next_row()? {
            let name = str::from_utf8(&row.key).ok().and_then(|it| DomainName::parse(it).ok());
            let Some(name) = name else { continue };
            let values = edition.values(row);
            let found = columns.iter().map(|it| it.sale(&name, &values, &mut scratch));
            // Rows without price or day were not sold.
            sales.extend(found.filter_map(|sale| sale.ok().flatten()));
        }
        Ok(sales)
    }
}

impl SalesFile {
    /// Opens and reads a file.
    ///
    /// # Errors
    /// As [`SalesFile::read`], or the file cannot be read.
    pub fn open(
        path: &Path,
        mappings: &[Mapping],
        choices: Choices,
    ) -> Result<SalesFile, SalesError> {
        SalesFile::new(FactsFile::open(path, mappings, apart(choices))?)
    }

    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// It is not a file of facts, or has no columns of sales.
    pub fn read(
        bytes: Vec<u8>,
        mappings: &[Mapping],
        choices: Choices,
    ) -> Result<SalesFile, SalesError> {
        SalesFile::new(FactsFile::read(bytes, mappings, apart(choices))?)
    }

    fn new(file: FactsFile) -> Result<SalesFile, SalesError> {
        let FactsFile { preset, rows, report, .. } = file;
        let columns = Columns::of_file(&report.read).filter(|_| report.key.kind == KeyKind::Domain);
        let Some(columns) = columns else {
            let ambiguous = report.ambiguous.into_iter().next();
            return Err(ambiguous.map_or(SalesError::NotSales, |it: AmbiguousColumn| {
                SalesError::Ambiguous(it.header, it.choose)
            }));
        };
        let own = [Some(columns.price), Some(columns.day), columns.channel];
        let own: Vec<&str> =
            own.into_iter().flatten().map(|at| report.read[at].header.as_str()).collect();
        let is_own = |it: &&Refusal| it.column.as_deref().is_none_or(|it| own.contains(&it));
        let mut refused: Vec<Refusal> = report.refused.iter().filter(is_own).cloned().collect();
        let (mut sales, mut unsold, mut refused_rows) = (Vec::new(), 0, report.refused_rows);
        let mut scratch = Scratch::default();
        for row in rows {
            let line = row.line;
            let sale = match &row.key {
                Key::Domain(name) => columns.sale(name, &row.values, &mut scratch),
                Key::Label(_) | Key::Word(_) => Ok(None),
            };
            match sale {
                Ok(Some(sale)) => sales.push(sale),
                Ok(None) => unsold += 1,
                Err(reason) => {
                    refused_rows += 1;
                    // The refusal of a cell is more precise.
                    if refused.iter().all(|it| it.line != line) {
                        refused.push(Refusal { line, column: None, reason: reason.to_owned() });
                    }
                }
            }
        }
        refused.sort_by_key(|it| it.line);
        refused.truncate(LISTED_MAX);
        let report = SalesReport {
            preset,
            rows: report.rows,
            sales: sales.len() as u64,
            unsold,
            refused_rows,
            refused,
            ignored: report.ignored,
            dropped: report.dropped,
        };
        Ok(SalesFile { sales, report })
    }
}

fn apart(choices: Choices) -> Choices {
    Choices { keeps_repeats: true, ..choices }
}
