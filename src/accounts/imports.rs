//! Claims from a file: which rows add a claim, and which complete or sell one that the account has.
//! Importing a file twice has no effect.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::data::UserData;
use super::data::account::Account;
use super::data::claims::{Claim, Price, Terms};
use super::decide::{Decided, check_text, draw_id};
use super::error::{InvalidField, WriteError};
use super::event::Event;
use super::store::{Caller, Store};
use super::watches::checked_venue;
use crate::vocab::claim::ClaimStatus;
use crate::vocab::day::Day;
use crate::vocab::ids::ClaimId;
use crate::vocab::limits::{CLAIMS_MAX, REGISTRAR_CHARS_MAX};
use crate::vocab::money::Amount;
use crate::vocab::name::DomainName;
use crate::vocab::time::UnixMs;

/// Claims of this size are imported by one record of the journal, which has room for twice as much.
const RECORD_BYTES: u64 = 512 * 1024;

/// A name in a file of a registrar or market: held, or sold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileClaim {
    pub domain: DomainName,
    pub registrar: Option<String>,
    pub acquired_price: Option<Amount>,
    pub renews_on: Option<Day>,
    pub renewal: Option<Amount>,
    pub sale: Option<FileSale>,
}

/// A sale in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSale {
    pub on: Day,
    pub price: Option<Amount>,
    pub venue: Option<String>,
}

/// Result of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Import {
    Added,
    /// A claim got values that it lacked, or a later day of renewal.
    Completed,
    /// A claim on a name that was held is now sold.
    Sold,
    Unchanged,
    /// The account sold the name on this day, and the file says that it is held.
    SoldBefore(Day),
}

impl Store {
    /// Adds, completes or sells claims, in records that are each complete. Returns the result of each row.
    ///
    /// # Errors
    /// [`WriteError`]: a text that is too long, too many claims.
    pub async fn import_claims(
        &self,
        caller: &Caller,
        rows: &[FileClaim],
        now: DateTime<Utc>,
    ) -> Result<Vec<Import>, WriteError> {
        let now = UnixMs::from_instant(now);
        let mut results = Vec::with_capacity(rows.len());
        while results.len() < rows.len() {
            let rest = &rows[results.len()..];
            results.extend(self.write(caller, |account, _| first(account, rest, now)).await?);
        }
        Ok(results)
    }
}

impl UserData {
    /// Returns what [`Store::import_claims`] would do.
    ///
    /// # Errors
    /// As [`Store::import_claims`].
    pub fn preview_import(
        &self,
        rows: &[FileClaim],
        now: UnixMs,
    ) -> Result<Vec<Import>, WriteError> {
        Ok(imported(self, rows, now)?.into_iter().map(|(result, _)| result).collect())
    }
}

/// Imports as many rows as a record has room for, and at least one.
fn first(
    account: &Account,
    rows: &[FileClaim],
    now: UnixMs,
) -> Result<Decided<Vec<Import>>, WriteError> {
    let (mut events, mut results, mut bytes) = (Vec::new(), Vec::new(), 0);
    for (result, claim) in imported(&account.data, rows, now)? {
        bytes += claim.as_ref().map_or(0, Claim::bytes);
        if bytes > RECORD_BYTES && !results.is_empty() {
            break;
        }
        results.push(result);
        let put = |claim| Event::ClaimPut { account: account.id, claim: Box::new(claim) };
        events.extend(claim.map(put));
    }
    Ok(Decided { events, value: results })
}

/// Returns the result of each row, and the claim that it adds or changes.
fn imported(
    data: &UserData,
    rows: &[FileClaim],
    now: UnixMs,
) -> Result<Vec<(Import, Option<Claim>)>, WriteError> {
    let mut won: FxHashMap<&DomainName, Vec<&Claim>> = FxHashMap::default();
    for claim in data.claims() {
        if !matches!(claim.status, ClaimStatus::Attempted | ClaimStatus::Lost) {
            won.entry(&claim.domain).or_default().push(claim);
        }
    }
    let mut drawn = BTreeSet::new();
    let mut results = Vec::with_capacity(rows.len());
    for row in rows {
        let known = won.get(&row.domain).map_or(&[][..], Vec::as_slice);
        results.push(match current(known, row) {
            Err(sold_on) => (Import::SoldBefore(sold_on), None),
            Ok(Some(before)) => {
                let claim = completed(before, row)?;
                let is_new_sale = claim.status != before.status;
                match (claim == *before, is_new_sale) {
                    (true, _) => (Import::Unchanged, None),
                    (_, true) => (Import::Sold, Some(Claim { updated_at: now, ..claim })),
                    _ => (Import::Completed, Some(Claim { updated_at: now, ..claim })),
                }
            }
            Ok(None) => {
                let is_taken = |id| data.claim(id).is_some() || drawn.contains(&id);
                let id = draw_id(ClaimId::new, is_taken)?;
                drawn.insert(id);
                let new = Claim::new(id, row.domain.clone(), ClaimStatus::Registered, now);
                (Import::Added, Some(completed(&new, row)?))
            }
        });
    }
    if data.claim_count() + drawn.len() > CLAIMS_MAX as usize {
        return Err(WriteError::TooMany { what: "claims", limit: CLAIMS_MAX });
    }
    Ok(results)
}

/// Returns the claim that a row is about, of those that won its name, newest first; the error is the day of a
/// sale after which the row says that the name is held.
fn current<'a>(won: &[&'a Claim], row: &FileClaim) -> Result<Option<&'a Claim>, Day> {
    let sold_on = |claim: &Claim| claim.sold_at.map(|at| Day::nearest(at.instant()));
    let held = won.first().copied().filter(|claim| claim.status != ClaimStatus::Sold);
    match (&row.sale, won.first()) {
        (Some(sale), _) => {
            let same = won.iter().copied().find(|claim| sold_on(claim) == Some(sale.on));
            Ok(same.or(held))
        }
        (None, Some(newest)) => sold_on(newest).map_or(Ok(held), Err),
        (None, None) => Ok(None),
    }
}

/// Returns the claim with the values of the row that it lacks. Of two days of renewal, the later one counts.
fn completed(claim: &Claim, row: &FileClaim) -> Result<Claim, WriteError> {
    let mut claim = claim.clone();
    if let Some(registrar) = row.registrar.as_deref().filter(|_| claim.registrar.is_none()) {
        check_text(InvalidField::Registrar, registrar, 1..=REGISTRAR_CHARS_MAX, char::is_control)?;
        claim.registrar = Some(registrar.into());
    }
    let add = |claim: &mut Claim, price, amount| {
        if claim.amount(price).is_none() {
            claim.set_amount(price, amount);
        }
    };
    add(&mut claim, Price::Acquired, row.acquired_price);
    add(&mut claim, Price::Renewal, row.renewal);
    claim.renews_on = claim.renews_on.max(row.renews_on);
    if let Some(FileSale { on, price, venue }) = &row.sale {
        claim.status = ClaimStatus::Sold;
        claim.sold_at.get_or_insert(UnixMs::from_instant(on.start()));
        add(&mut claim, Price::Resale, *price);
        if claim.sale_terms().1.is_none() {
            let sold_venue = checked_venue(InvalidField::SoldVenue, venue.as_deref())?;
            let terms = claim.terms.as_deref().cloned().unwrap_or_default();
            claim.set_terms(Terms { sold_venue, ..terms });
        }
    }
    Ok(claim)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{at, claim, name};
    use crate::vocab::money::{Currency, Usd};

    fn day(text: &str) -> Day {
        text.parse().expect("a day")
    }

    fn dollars(cents: u64) -> Option<Amount> {
        Amount::new(Currency::USD, cents)
    }

    fn held(domain: &str) -> FileClaim {
        FileClaim {
            domain: name(domain),
            registrar: Some("GoDaddy".into()),
            acquired_price: None,
            renews_on: Some(day("2027-01-26")),
            renewal: dollars(2_299),
            sale: None,
        }
    }

    fn sold(domain: &str, on: &str) -> FileClaim {
        let sale = FileSale { on: day(on), price: dollars(250_000), venue: Some("Sedo".into()) };
        FileClaim { sale: Some(sale), ..held(domain) }
    }

    /// Imports rows into an account and returns the results.
    fn import(data: &mut UserData, rows: &[FileClaim]) -> Vec<Import> {
        let done = imported(data, rows, at(9)).expect("imported");
        let (results, changed): (Vec<_>, Vec<_>) = done.into_iter().unzip();
        changed.into_iter().flatten().for_each(|claim| data.claims.put(claim));
        results
    }

    #[test]
    fn a_file_that_comes_twice_changes_nothing() {
        let mut data = UserData::default();
        let rows = [held("a.com"), sold("b.com", "2026-03-04"), held("c.com")];
        assert_eq!(import(&mut data, &rows), [Import::Added; 3]);
        let before = data.clone();
        assert_eq!(import(&mut data, &rows), [Import::Unchanged; 3]);
        assert_eq!(data, before);
        let claim = data.claims().find(|it| it.domain == name("b.com")).expect("a claim");
        assert_eq!(claim.amount(Price::Resale), dollars(250_000));
        assert_eq!(claim.sale_terms().1, Some("Sedo"));
    }

    #[test]
    fn values_that_were_entered_stay() {
        let mut data = UserData::default();
        data.claims.put(Claim {
            domain: name("a.com"),
            status: ClaimStatus::Caught,
            registrar: Some("Gandi".into()),
            renewal: Usd::from_cents(1_100),
            renews_on: Some(day("2026-01-26")),
            ..claim()
        });
        assert_eq!(import(&mut data, &[held("a.com")]), [Import::Completed]);
        let after = data.claims().next().expect("a claim").clone();
        assert_eq!(after.registrar.as_deref(), Some("Gandi"));
        assert_eq!((after.renewal, after.status), (Usd::from_cents(1_100), ClaimStatus::Caught));
        // The name was renewed.
        assert_eq!(after.renews_on, Some(day("2027-01-26")));
        let earlier = FileClaim { renews_on: Some(day("2026-01-26")), ..held("a.com") };
        assert_eq!(import(&mut data, &[earlier]), [Import::Unchanged]);
    }

    #[test]
    fn sales_end_the_holding_of_a_name() {
        let mut data = UserData::default();
        import(&mut data, &[held("a.com")]);
        let sale = [sold("a.com", "2026-03-04")];
        assert_eq!(import(&mut data, &sale), [Import::Sold]);
        assert_eq!(import(&mut data, &sale), [Import::Unchanged]);
        assert_eq!(data.claim_count(), 1);
        // The registrar's file may be older than the sale.
        let sold_on = day("2026-03-04");
        assert_eq!(import(&mut data, &[held("a.com")]), [Import::SoldBefore(sold_on)]);
        // Another sale is another claim, also if it is the earlier one.
        let other = [sold("a.com", "2024-01-02")];
        assert_eq!(import(&mut data, &other), [Import::Added]);
        assert_eq!(import(&mut data, &[sale, other].concat()), [Import::Unchanged; 2]);
        // Open and lost bids do not count as holdings.
        data.claims.put(Claim { domain: name("b.com"), status: ClaimStatus::Lost, ..claim() });
        assert_eq!(import(&mut data, &[held("b.com")]), [Import::Added]);
    }
}
