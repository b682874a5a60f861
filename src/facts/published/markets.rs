//! Facts of names at markets: price, bids, end and kind, as the lists of auction houses state them.
//! `markets/` of the folder has the rows of the newest list of each house, from which the edition of `market` is made.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use super::PublishedError;
use super::folder::{DRAFT, FactsFolder, KeepError};
use super::sorter::Sorter;
use crate::columns::{FactColumn, Role};
use crate::dates::DateOrder;
use crate::feeds::{self, ColumnNames, NamedCells};
use crate::store::{Licence, SourceMeta, SourceWriter, StoreError, StoredColumn};
use crate::value::{self, Evidence, Reading, RowCurrency, Value};
use crate::vocab::day::Day;
use crate::vocab::fact::{FactType, KeyKind};
use crate::vocab::money::Currency;
use crate::vocab::name::DomainName;
use crate::vocab::named::{named_enum, parse_named};
use crate::vocab::new_file;

const FOLDER: &str = "markets";
const SOURCE: &str = "market";
const SCRATCH: &str = ".market";
/// Number of days for which a row stays after its end, or without one after the day of its list.
const KEPT_DAYS: i32 = 7;
/// Currencies of prices, each with a column of its own.
const CURRENCIES_MAX: usize = 16;
/// The number of an unknown price or number of bids.
const UNKNOWN: u32 = u32::MAX;

named_enum! {
    /// A market, by the name of the source of its list.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum House {
        GoDaddy = "godaddy",
        Namecheap = "namecheap",
        Sedo = "sedo",
        Dynadot = "dynadot",
        DropCatch = "dropcatch",
        ParkIo = "parkio",
    }
}
parse_named!(House);

named_enum! {
    /// How a name is sold.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Kind {
        Auction = "auction",
        Closeout = "closeout",
        Backorder = "backorder",
        BuyNow = "buy-now",
    }
}
parse_named!(Kind);

impl House {
    /// Returns how a row without a kind is sold.
    fn kind(self) -> Option<Kind> {
        match self {
            House::GoDaddy | House::Namecheap | House::Sedo => Some(Kind::Auction),
            House::Dynadot | House::ParkIo => Some(Kind::Backorder),
            House::DropCatch => None,
        }
    }

    /// Returns how its cells are read. Sedo has sellers of several currencies.
    fn reading(self) -> Reading {
        let (delimiter, currency) = match self {
            House::Sedo => (b';', None),
            _ => (b',', Some(Currency::USD)),
        };
        let order = Some(DateOrder::MonthFirst);
        Evidence::default().reading(delimiter, order, currency).unwrap_or_default()
    }
}

/// Columns of the lists: those of facts, then kind and currency.
const COLUMNS: [ColumnNames; 5] = [
    &["currentprice", "currentbid", "price", "reserveprice"],
    &["bids", "numberofbids", "bidcount"],
    &["auctionendtime", "auctionenddate", "endtime", "enddate", "ends"],
    &["auctiontype", "saletype", "type"],
    &["currency"],
];
/// The first of them, in the notation of headers.
const NOTATION: [&str; 3] = ["market.price:money", "market.bids:int", "market.ends:date"];

/// Account of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MarketReport {
    /// Rows with a price, a number of bids, or an end.
    pub rows: u64,
    /// Cells that are not values of their columns.
    pub refused_cells: u64,
}

/// Facts of a name in one list.
#[derive(Clone, Copy, Debug, Default)]
struct Offer {
    price: Option<(u32, Currency)>,
    bids: Option<u32>,
    ends: Option<Day>,
    kind: Option<Kind>,
}

/// The source of a list.
#[derive(Clone, Copy, Debug)]
pub struct MarketList {
    pub house: House,
    /// Whether the terms of the house allow internal use only.
    pub is_internal: bool,
    pub day: Day,
}

impl FactsFolder {
    /// Replaces the facts of a house by those of its list. Returns `None`, and changes nothing, if the list has none of
    /// the columns, or is older than the one in use.
    ///
    /// # Errors
    /// The list cannot be read, or the folder cannot be written.
    pub fn add_market(
        &self,
        path: &Path,
        list: MarketList,
        today: Day,
    ) -> Result<Option<MarketReport>, KeepError> {
        let folder = self.path().join(FOLDER);
        let rows = folder.join(format!("{}.csv", list.house));
        let held = rows.exists().then(|| HouseRows::open(list.house, &rows)).transpose();
        // Rows that cannot be read are replaced.
        if held.is_ok_and(|held| held.is_some_and(|held| held.day > list.day)) {
            return Ok(None);
        }
        self.in_scratch(SCRATCH, |scratch| {
            let draft = scratch.join("rows");
            let Some(report) = write_rows(path, list, &draft)? else { return Ok(None) };
            new_file::create_folder(&folder).map_err(StoreError::Io)?;
            fs::rename(&draft, &rows).map_err(StoreError::Io)?;
            self.merge_markets(today, scratch)?;
            Ok(Some(report))
        })
    }

    /// Makes an edition of the rows of all houses, without old ones.
    fn merge_markets(&self, today: Day, scratch: &Path) -> Result<(), KeepError> {
        let mut sorter = Sorter::new(scratch).map_err(PublishedError::Scratch)?;
        let mut currencies = vec![Currency::USD];
        let mut days = [Day::MIN; House::ALL.len()];
        let mut internal = Vec::new();
        for house in House::ALL {
            let path = self.path().join(FOLDER).join(format!("{house}.csv"));
            if !path.exists() {
                continue;
            }
            let list = HouseRows::open(house, &path).map_err(StoreError::Io)?;
            days[house as usize] = list.day;
            let mut is_used = false;
            for row in list.rows {
                let row = row.map_err(StoreError::Io)?;
                // A name may have become a public suffix.
                let Some((name, offer)) = parse(&row) else { continue };
                if today.days_since(offer.ends.unwrap_or(list.day)) > KEPT_DAYS {
                    continue;
                }
                is_used = true;
                let numbers = numbers(house, offer, today, &mut currencies);
                sorter.push(&name, numbers).map_err(PublishedError::Scratch)?;
            }
            internal.extend((list.is_internal && is_used).then_some(house.as_str()));
        }
        let mut rows = sorter.finish().map_err(PublishedError::Scratch)?;
        let draft = scratch.join(DRAFT);
        let out = new_file::create(&draft).map_err(StoreError::Io)?;
        let mut writer = SourceWriter::new(out, meta(&currencies, &internal, today))?;
        while let Some((name, numbers)) = rows.next_row().map_err(PublishedError::Scratch)? {
            let (house, values) = values(numbers, &currencies);
            writer.push(name, Some(days[house as usize]), &values)?;
        }
        writer.finish()?.sync_all().map_err(StoreError::Io)?;
        fs::rename(draft, self.edition(SOURCE)).map_err(StoreError::Io)?;
        self.sync().map_err(StoreError::Io)?;
        Ok(())
    }
}

/// Writes the rows of a list to a new file; `None` if the list has none of the columns.
fn write_rows(
    path: &Path,
    list: MarketList,
    into: &Path,
) -> Result<Option<MarketReport>, KeepError> {
    let reader = CellReader::new(list.house);
    let mut report = MarketReport::default();
    let mut out = BufWriter::new(new_file::create(into).map_err(StoreError::Io)?);
    let mut written = writeln!(out, "{},{}", list.is_internal, list.day);
    let has = feeds::each_row(path, COLUMNS, |NamedCells { name, cells }| {
        let Ok(name) = DomainName::parse(&name) else { return };
        let offer = reader.offer(&cells, &mut report);
        if written.is_ok()
            && (offer.price.is_some() || offer.bids.is_some() || offer.ends.is_some())
        {
            report.rows += 1;
            written = writeln!(out, "{}", line(&name, offer));
        }
    });
    let has = has.map_err(PublishedError::Feed)?;
    written.and_then(|()| out.into_inner()?.sync_all()).map_err(StoreError::Io)?;
    Ok(has[..NOTATION.len()].contains(&true).then_some(report))
}

/// Reads the cells of the lists of a house.
struct CellReader {
    house: House,
    how: Reading,
    columns: [FactColumn; NOTATION.len()],
}

impl CellReader {
    fn new(house: House) -> CellReader {
        let column = |text: &str| match text.parse() {
            Ok(Role::Fact(column)) => column,
            _ => unreachable!("a test reads all columns"),
        };
        CellReader { house, how: house.reading(), columns: NOTATION.map(column) }
    }

    /// Reads the cells of a row, and counts those that are refused.
    fn offer(&self, cells: &[String; COLUMNS.len()], report: &mut MarketReport) -> Offer {
        let [.., kind, currency] = cells;
        let currency = RowCurrency::of([currency.as_str()].into_iter());
        let mut offer = Offer::default();
        for (text, column) in cells.iter().zip(&self.columns) {
            let number = |number: u64| u32::try_from(number).ok().filter(|it| *it != UNKNOWN);
            let is_read = match value::read(text, column, self.how, currency) {
                Ok(None) => true,
                Ok(Some(Value::Money { cents, currency })) => {
                    offer.price = number(cents).map(|cents| (cents, currency));
                    offer.price.is_some()
                }
                Ok(Some(Value::Int(bids))) => {
                    offer.bids = u64::try_from(bids).ok().and_then(number);
                    offer.bids.is_some()
                }
                Ok(Some(Value::Date(day))) => {
                    offer.ends = Some(day);
                    true
                }
                _ => false,
            };
            report.refused_cells += u64::from(!is_read);
        }
        offer.kind = match kind.trim() {
            "" => self.house.kind(),
            word => kind_of(word),
        };
        report.refused_cells += u64::from(offer.kind.is_none() && !kind.trim().is_empty());
        offer
    }
}

fn kind_of(word: &str) -> Option<Kind> {
    let letters = word.chars().filter(char::is_ascii_alphabetic);
    match letters.map(|it| it.to_ascii_lowercase()).collect::<String>().as_str() {
        "auction" | "bid" | "bids" | "expiry" | "expired" => Some(Kind::Auction),
        "closeout" | "closeouts" => Some(Kind::Closeout),
        "backorder" | "backorders" => Some(Kind::Backorder),
        "buynow" | "buyitnow" | "bin" => Some(Kind::BuyNow),
        _ => None,
    }
}

/// Returns the row of a file of [`HouseRows`].
fn line(name: &DomainName, offer: Offer) -> String {
    let (cents, currency) = offer
        .price
        .map_or_else(Default::default, |(cents, currency)| (cents.to_string(), currency.as_str()));
    let bids = offer.bids.map(|it| it.to_string()).unwrap_or_default();
    let ends = offer.ends.map(|it| it.to_string()).unwrap_or_default();
    let kind = offer.kind.map(Kind::as_str).unwrap_or_default();
    format!("{},{cents},{currency},{bids},{ends},{kind}", name.as_str())
}

fn parse(row: &str) -> Option<(DomainName, Offer)> {
    let cells: Vec<&str> = row.split(',').collect();
    let [name, cents, currency, bids, ends, kind] = cells[..] else { return None };
    let price = cents.parse().ok().zip(Currency::parse(currency));
    let (bids, ends, kind) = (bids.parse().ok(), ends.parse().ok(), kind.parse().ok());
    Some((DomainName::parse(name).ok()?, Offer { price, bids, ends, kind }))
}

/// The rows of the newest list of a house.
struct HouseRows {
    is_internal: bool,
    day: Day,
    rows: io::Lines<BufReader<File>>,
}

impl HouseRows {
    fn open(house: House, path: &Path) -> io::Result<HouseRows> {
        let mut rows = BufReader::new(File::open(path)?).lines();
        let first = rows.next().transpose()?.unwrap_or_default();
        let read = first
            .split_once(',')
            .and_then(|(is_internal, day)| Some((is_internal.parse().ok()?, day.parse().ok()?)));
        let Some((is_internal, day)) = read else {
            return Err(io::Error::other(format!("the rows of {house} are damaged")));
        };
        Ok(HouseRows { is_internal, day, rows })
    }
}

/// Packs a row. Of two houses, the one that ends first has the smaller numbers, and counts; ends that have passed come
/// last.
fn numbers(house: House, offer: Offer, today: Day, currencies: &mut Vec<Currency>) -> [u32; 3] {
    let price = offer.price.and_then(|(cents, currency)| {
        let known = currencies.iter().position(|it| *it == currency);
        let at = known.or_else(|| {
            let is_room = currencies.len() < CURRENCIES_MAX;
            is_room.then(|| {
                currencies.push(currency);
                currencies.len() - 1
            })
        })?;
        Some((cents, at as u32))
    });
    let (cents, currency) = price.unwrap_or((UNKNOWN, 0));
    let is_past = offer.ends.is_some_and(|ends| ends < today);
    let ends = offer.ends.map_or(u16::MAX, Day::raw);
    let kind = offer.kind.map_or(Kind::ALL.len(), |kind| kind as usize) as u32;
    let first = u32::from(is_past) << 26
        | u32::from(ends) << 10
        | (house as u32) << 7
        | kind << 4
        | currency;
    [first, cents, offer.bids.unwrap_or(UNKNOWN)]
}

/// Returns the house and the values of a row that [`numbers`] packed.
fn values([first, cents, bids]: [u32; 3], currencies: &[Currency]) -> (House, Vec<Option<Value>>) {
    let house = House::ALL[(first >> 7 & 7) as usize];
    let word = |word: &str| Value::Enum(word.to_owned());
    let known = |number: u32| (number != UNKNOWN).then_some(number);
    let price = |at: usize| {
        let cents = known(cents).filter(|_| (first & 15) as usize == at)?.into();
        Some(Value::Money { cents, currency: currencies[at] })
    };
    let ends = Some((first >> 10) as u16).filter(|raw| *raw != u16::MAX).and_then(Day::from_raw);
    let kind = Kind::ALL.get((first >> 4 & 7) as usize);
    let mut values = vec![
        Some(word(house.as_str())),
        price(0),
        known(bids).map(|bids| Value::Int(bids.into())),
        ends.map(Value::Date),
        kind.map(|kind| word(kind.as_str())),
    ];
    values.extend((1..currencies.len()).map(price));
    (house, values)
}

fn meta(currencies: &[Currency], internal: &[&str], today: Day) -> SourceMeta {
    let words = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let price = |name: String, currency: Currency| StoredColumn {
        currency: Some(currency),
        ..StoredColumn::new(name, FactType::Money)
    };
    let named = |name: &str, names: &[&str]| StoredColumn {
        words: words(names),
        ..StoredColumn::new(name, FactType::Enum)
    };
    let mut columns = vec![
        named("name", &House::NAMES),
        price("price".to_owned(), currencies[0]),
        StoredColumn::new("bids", FactType::Int),
        StoredColumn::new("ends", FactType::Date),
        named("kind", &Kind::NAMES),
    ];
    columns.extend(currencies[1..].iter().map(|&currency| {
        price(format!("price_{}", currency.as_str().to_ascii_lowercase()), currency)
    }));
    let is_internal = !internal.is_empty();
    SourceMeta {
        id: SOURCE.to_owned(),
        title: "Markets".to_owned(),
        key: KeyKind::Domain,
        as_of: today,
        licence: if is_internal { Licence::ShareAlike } else { Licence::Own },
        attribution: is_internal
            .then(|| format!("Lists of markets, for internal use only: {}", internal.join(", "))),
        columns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::tests::rows_of;
    use crate::store::Edition;

    struct Site {
        data: tempfile::TempDir,
        folder: FactsFolder,
    }

    impl Site {
        fn new() -> Site {
            let data = tempfile::tempdir().expect("a folder");
            let folder = FactsFolder::new(data.path());
            Site { data, folder }
        }

        /// Adds a list of a day on this day. Returns the numbers of rows and of refused cells.
        fn add(&self, house: House, text: &[u8], day: &str, today: &str) -> Option<(u64, u64)> {
            let path = self.data.path().join("list");
            fs::write(&path, text).expect("written");
            let day = day.parse().expect("a day");
            let list = MarketList { house, is_internal: house == House::GoDaddy, day };
            let report = self.folder.add_market(&path, list, today.parse().expect("a day"));
            report.expect("added").map(|it| (it.rows, it.refused_cells))
        }

        fn edition(&self) -> Edition {
            Edition::open(&self.folder.edition(SOURCE)).expect("an edition")
        }

        fn rows(&self) -> Vec<String> {
            let rows = rows_of(&self.edition()).into_iter();
            rows.map(|(name, values, day)| format!("{name} {} {day}", values.join("|"))).collect()
        }
    }

    fn fixture(name: &str) -> Vec<u8> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/markets");
        fs::read(folder.join(name)).expect(name)
    }

    const TODAY: &str = "2026-11-26";

    #[test]
    fn each_house_states_prices_bids_and_ends_and_bad_cells_are_refused_alone() {
        let days = |text: &str| text.replace("2026-11-26", "day");
        for (house, file, counts, expected) in [
            (
                House::GoDaddy,
                "godaddy.good.json",
                (3, 0),
                vec![
                    "brightmesa.com godaddy|12.00 USD|3|2026-12-05|auction day",
                    "quietharbor.net godaddy|1250.00 USD|0|2026-12-06|closeout day",
                    "silverpine.net godaddy|-|-|2026-12-06|buy-now day",
                ],
            ),
            (
                House::GoDaddy,
                "godaddy.broken.json",
                (2, 4),
                vec![
                    "brightmesa.com godaddy|12.00 USD|-|-|auction day",
                    "silverpine.net godaddy|-|1|2026-12-06|- day",
                ],
            ),
            (
                House::Namecheap,
                "namecheap.good.csv",
                (2, 0),
                vec![
                    "brightmesa.com namecheap|12.00 USD|4|2026-12-05|auction day",
                    "quietharbor.org namecheap|5.00 USD|-|2026-12-06|auction day",
                ],
            ),
            (
                House::Namecheap,
                "namecheap.broken.csv",
                (1, 2),
                vec!["brightmesa.com namecheap|-|-|2026-12-05|auction day"],
            ),
            (
                House::Sedo,
                "sedo.good.csv",
                (2, 0),
                vec![
                    "brightmesa.de sedo|-|-|2026-12-05|auction|59.00 EUR day",
                    "quietharbor.com sedo|1250.00 USD|-|2026-12-06|auction|- day",
                ],
            ),
            // A reserve price without a currency.
            (
                House::Sedo,
                "sedo.broken.csv",
                (1, 1),
                vec!["brightmesa.de sedo|-|-|2026-12-05|auction day"],
            ),
            (
                House::Dynadot,
                "dynadot.good.csv",
                (1, 0),
                vec!["brightmesa.net dynadot|-|-|2026-11-27|backorder day"],
            ),
            (House::Dynadot, "dynadot.broken.csv", (0, 1), vec![]),
        ] {
            let site = Site::new();
            assert_eq!(site.add(house, &fixture(file), TODAY, TODAY), Some(counts), "{file}");
            let rows: Vec<String> = site.rows().iter().map(|row| days(row)).collect();
            assert_eq!(rows, expected, "{file}");
        }
        // Lists without any of the columns.
        let site = Site::new();
        let list = b"Domain,TLD,Type,Drop Date\na.com,com,PendingDelete,2026-11-27\n";
        assert_eq!(site.add(House::DropCatch, list, TODAY, TODAY), None);
        let list =
            br#"{"page":1,"domains":[{"id":1,"name":"mesa.io","date_available":"2026-12-15"}]}"#;
        assert_eq!(site.add(House::ParkIo, list, TODAY, TODAY), None);
        assert!(!site.folder.edition(SOURCE).exists());
    }

    #[test]
    fn a_list_replaces_the_rows_of_its_house_and_old_rows_go() {
        let site = Site::new();
        let head = "name,price,endDate\n";
        let list = format!("{head}a.com,1,2026-11-25\nb.com,2,2026-12-01\nc.com,3,\n");
        assert_eq!(site.add(House::Namecheap, list.as_bytes(), TODAY, TODAY), Some((3, 0)));
        let list =
            "Domain Name,Price,End Time,Currency\nb.com,9,2026-11-30,EUR\nd.com,8,2026-12-20,GBP\n";
        assert_eq!(site.add(House::Sedo, list.as_bytes(), TODAY, TODAY), Some((2, 0)));
        assert_eq!(
            site.rows(),
            [
                "a.com namecheap|1.00 USD|-|2026-11-25|auction|-|- 2026-11-26",
                "b.com sedo|-|-|2026-11-30|auction|9.00 EUR|- 2026-11-26",
                "c.com namecheap|3.00 USD|-|-|auction|-|- 2026-11-26",
                "d.com sedo|-|-|2026-12-20|auction|-|8.00 GBP 2026-11-26",
            ]
        );
        let columns = site.edition().meta().columns.clone();
        let columns: Vec<&str> = columns.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(columns, ["name", "price", "bids", "ends", "kind", "price_eur", "price_gbp"]);
        // Ends that have passed count for less than those to come, and old rows of other houses go.
        let list = "Domain Name,Price,End Time,Currency\ne.com,7,2026-12-20,USD\n";
        assert_eq!(
            site.add(House::Sedo, list.as_bytes(), "2026-12-03", "2026-12-03"),
            Some((1, 0))
        );
        assert_eq!(
            site.rows(),
            [
                "b.com namecheap|2.00 USD|-|2026-12-01|auction 2026-11-26",
                "c.com namecheap|3.00 USD|-|-|auction 2026-11-26",
                "e.com sedo|7.00 USD|-|2026-12-20|auction 2026-12-03",
            ]
        );
        let list = format!("{head}f.com,1,2026-12-09\n");
        assert_eq!(
            site.add(House::Namecheap, list.as_bytes(), "2026-12-02", "2026-12-04"),
            Some((1, 0))
        );
        assert_eq!(
            site.add(House::Namecheap, b"name,price\ng.com,1\n", "2026-12-01", "2026-12-04"),
            None
        );
        assert_eq!(site.rows().len(), 2, "an older list changes nothing");
        // A damaged file of a house is replaced by its next list.
        fs::write(site.folder.path().join("markets/namecheap.csv"), "x").expect("written");
        assert_eq!(
            site.add(House::Namecheap, list.as_bytes(), "2026-12-04", "2026-12-04"),
            Some((1, 0))
        );
        assert_eq!(site.rows().len(), 2);
    }

    #[test]
    fn rows_for_internal_use_make_the_edition_one_that_exports_refuse() {
        let site = Site::new();
        let list = b"name,price,endDate\na.com,1,2026-12-01\n";
        let licence = || site.edition().meta().licence;
        site.add(House::Namecheap, list, TODAY, TODAY);
        assert_eq!((licence(), site.edition().meta().attribution.clone()), (Licence::Own, None));
        site.add(House::GoDaddy, list, TODAY, TODAY);
        assert_eq!(licence(), Licence::ShareAlike);
        let line = "Lists of markets, for internal use only: godaddy";
        assert_eq!(site.edition().meta().attribution.as_deref(), Some(line));
        // Its rows are gone.
        let list = b"name,price,endDate\na.com,1,2026-12-20\n";
        site.add(House::Namecheap, list, "2026-12-09", "2026-12-09");
        assert_eq!(licence(), Licence::Own);
    }
}
