//! Exports of registrars and markets as claims for the portfolio (`data/docs/portfolio.md`).

use crate::accounts::{Caller, FileClaim, FileSale};
use crate::app::App;
use crate::error::ApiError;
use crate::facts::unreadable;
use crate::facts_file::{Choices, FactsFile, Key, Mapping, Refusal, Report, Value};
use crate::vocab::day::Day;
use crate::vocab::limits::IMPORT_ROWS_MAX;
use crate::vocab::money::Amount;
use crate::work;

/// The names of facts that claims have, in each export that states them (`src/facts/presets.csv`).
const EXPIRES: &[&str] = &["expires"];
const RENEWAL: &[&str] = &["renewal_price"];
const COST: &[&str] = &["purchase_price", "paid_price"];
const SOLD: &[&str] = &["sold"];
const SALE: &[&str] = &["sold_price"];
const VENUE: &[&str] = &["venue"];
/// Registrars whose exports are known.
const REGISTRARS: [(&str, &str); 6] = [
    ("godaddy", "GoDaddy"),
    ("namecheap", "Namecheap"),
    ("dynadot", "Dynadot"),
    ("porkbun", "Porkbun"),
    ("sav", "Sav"),
    ("parkio", "Park.io"),
];

/// The claims in a file.
#[derive(Debug)]
pub struct ImportFile {
    /// The rows, each with its line.
    pub rows: Vec<(u64, FileClaim)>,
    /// All rows and cells that cannot be used.
    pub refused: Vec<Refusal>,
    /// Columns that claims do not have, by their names.
    pub unused: Vec<String>,
    /// Columns that may hold personal data or secrets, by their names; no cell of them was read.
    pub dropped: Vec<String>,
}

/// Reads a file with the descriptions of columns that the caller keeps.
///
/// # Errors
/// 400 for a file that holds no claims or cannot be read.
pub async fn read(
    app: &App,
    caller: &Caller,
    bytes: Vec<u8>,
    choices: Choices,
) -> Result<ImportFile, ApiError> {
    let _turn = app.facts.enter(caller.account).await;
    let owned = app.store.user_data(caller);
    work::run_aside(move || {
        let mappings = owned.facts().mappings();
        // They were valid when they were stored.
        let mappings: Vec<Mapping> =
            mappings.filter_map(|(print, text)| format!("{print}={text}").parse().ok()).collect();
        let choices = Choices { lists_all: true, ..choices };
        let file = FactsFile::read(bytes, &mappings, choices).map_err(unreadable)?;
        claims(file).map_err(|what| ApiError::parameter("body", what))
    })
    .await
}

/// Returns the position of the column with one of these facts.
fn column(report: &Report, facts: &[&str]) -> Option<usize> {
    report.read.iter().position(|it| facts.contains(&it.fact.fact()))
}

fn claims(file: FactsFile) -> Result<ImportFile, String> {
    let FactsFile { preset, rows, mut report, .. } = file;
    if let Some(column) = report.ambiguous.first() {
        return Err(format!(
            "has a column {} that can be read in two ways: {}",
            column.header, column.choose
        ));
    }
    let [expires, renewal, cost, sold, sale, venue] =
        [EXPIRES, RENEWAL, COST, SOLD, SALE, VENUE].map(|facts| column(&report, facts));
    let used = [expires, renewal, cost, sold, sale, venue];
    if used[..5].iter().all(Option::is_none) {
        return Err("has no column with days of renewal, costs or sales".to_owned());
    }
    if rows.len() > IMPORT_ROWS_MAX {
        return Err(format!(
            "has {} rows; at most {IMPORT_ROWS_MAX} are read: split it",
            rows.len()
        ));
    }
    let registrar = REGISTRARS.iter().find(|(known, _)| *known == preset);
    let mut claims = Vec::with_capacity(rows.len());
    for row in &rows {
        let value = |at: Option<usize>| row.values.get(at?)?.as_ref();
        let Key::Domain(domain) = &row.key else {
            return Err("has words or labels instead of names".to_owned());
        };
        let (on, price) = (value(sold).and_then(day), value(sale).and_then(amount));
        if on.is_none() && price.is_some() {
            let reason = "the sale has a price and no day".to_owned();
            report.refused.push(Refusal { line: row.line, column: None, reason });
            continue;
        }
        let venue = value(venue).and_then(text);
        let claim = FileClaim {
            domain: domain.clone(),
            registrar: registrar.map(|(_, label)| (*label).to_owned()),
            acquired_price: value(cost).and_then(amount),
            renews_on: value(expires).and_then(day),
            renewal: value(renewal).and_then(amount),
            sale: on.map(|on| FileSale { on, price, venue }),
        };
        claims.push((row.line, claim));
    }
    report.refused.sort_by_key(|refusal| refusal.line);
    let others = report.read.iter().enumerate().filter(|(at, _)| !used.contains(&Some(*at)));
    let others = others.map(|(_, column)| column.header.clone());
    let unused = others.chain(report.ignored).collect();
    Ok(ImportFile { rows: claims, refused: report.refused, unused, dropped: report.dropped })
}

fn day(value: &Value) -> Option<Day> {
    match value {
        Value::Date(day) => Some(*day),
        _ => None,
    }
}

/// Returns an amount; `None` for one that its currency has no unit for.
fn amount(value: &Value) -> Option<Amount> {
    let Value::Money { cents, currency } = value else { return None };
    let minor = cents.checked_mul(currency.minor_units())?;
    minor.is_multiple_of(100).then(|| Amount::new(*currency, minor / 100)).flatten()
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::Enum(text) | Value::Text(text) => Some(text.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocab::money::Currency;

    fn file(text: &str) -> Result<ImportFile, String> {
        let currency = Some(Currency::USD);
        let choices = Choices { currency, lists_all: true, ..Choices::default() };
        claims(FactsFile::read(text.into(), &[], choices).expect("a file"))
    }

    #[test]
    fn exports_of_registrars_give_days_and_fees_of_renewal() {
        let exports = [
            "Domain Name,Expiration Date,Auto-renew,Status,Renewal Price,Admin Email\n\
             brightmesa.com,2027-01-26,On,Active,$ 22.99,x@example.com\n",
            "Domain Name,Domain privacy protection status,Domain status at NC,Domain auto-renew status,Domain expiration date\n\
             brightmesa.com,ON,Active,OFF,Jan 26 2027\n",
            "Please note that renewal prices may change\n\
             DOMAIN,TLD,CREATE DATE,EXPIRE DATE,STATUSES,AUTO RENEW,PRIVACY,LOCKED,NAMESERVERS,URL FORWARDS,EST. RENEWAL PRICE\n\
             brightmesa.com,com,2024-05-01 10:00:00,2027-01-26 10:00:00,,ON,ON,YES,a.example|b.example,,22.99\n",
        ];
        for (export, (registrar, fee)) in
            exports.into_iter().zip([("GoDaddy", true), ("Namecheap", false), ("Porkbun", true)])
        {
            let read = file(export).expect(registrar);
            let [(_, claim)] = &read.rows[..] else { panic!("{read:?}") };
            assert_eq!(claim.registrar.as_deref(), Some(registrar));
            assert_eq!(claim.renews_on, Some("2027-01-26".parse().expect("a day")), "{registrar}");
            assert_eq!(claim.renewal, fee.then(|| Amount::new(Currency::USD, 2_299)).flatten());
            assert_eq!((&claim.sale, read.refused.len()), (&None, 0));
            let dropped = if registrar == "GoDaddy" { vec!["Admin Email"] } else { vec![] };
            assert_eq!(read.dropped, dropped, "{registrar}");
        }
    }

    #[test]
    fn every_row_that_cannot_be_used_is_listed() {
        let mut text =
            "Domain,Purchase price,Purchase date,Renewal fee,Status,Sold date,Sold price,Category,\
                        Landing Page theme,BIN Price,Efty market\n"
                .to_owned();
        text += "a.com,40.00,01-22-2025,9.95,sold,03-24-2026,2500.00,,fresh,0.00,no\n";
        text += "b.com,40.00,01-22-2025,9.95,,,2500.00,,fresh,0.00,no\n";
        (0..40).for_each(|at| text += &format!("www.n{at}.example,1,,,,,,,,,\n"));
        let read = file(&text).expect("claims");
        let [(2, claim)] = &read.rows[..] else { panic!("{read:?}") };
        let sale = claim.sale.as_ref().expect("a sale");
        assert_eq!(
            (sale.on, sale.price),
            ("2026-03-24".parse().expect("a day"), Amount::new(Currency::USD, 250_000))
        );
        assert_eq!(claim.acquired_price, Amount::new(Currency::USD, 4_000));
        let lines: Vec<_> = read.refused.iter().map(|it| it.line).collect();
        assert_eq!(lines, (3..44).collect::<Vec<_>>());
        assert!(file("Target,URL Rating,Domain Rating\na.com/,1,2\n").is_err());
    }
}
