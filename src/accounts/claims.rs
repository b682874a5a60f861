//! Backorder claims: validation and the effect of changes (`data/docs/api.md`, Portfolio).

use chrono::{DateTime, Utc};

use super::data::account::Account;
use super::data::claims::{Attribution, Claim, Commission, Price, Terms};
use super::decide::{Decided, check_text, draw_id, invalid};
use super::error::{InvalidField, WriteError};
use super::event::{Event, RowOf};
use super::idempotency::{Draft, Post};
use super::store::{Caller, Store};
use super::watches::checked_venue;
use crate::vocab::claim::{ClaimStatus, RenewalDecision};
use crate::vocab::day::Day;
use crate::vocab::ids::{ClaimId, RuleId};
use crate::vocab::limits::{CLAIMS_MAX, NOTES_CHARS_MAX, REGISTRAR_CHARS_MAX};
use crate::vocab::money::Amount;
use crate::vocab::name::DomainName;
use crate::vocab::time::UnixMs;

/// A claim to be added.
#[derive(Clone, Debug)]
pub struct NewClaim {
    pub domain: DomainName,
    pub status: ClaimStatus,
    /// 1 to 200 characters on one line.
    pub registrar: Option<String>,
    pub acquired_price: Option<Amount>,
    /// Only for a sold claim.
    pub resale_price: Option<Amount>,
    /// Allowed only for a sold claim; defaults to now.
    pub sold_at: Option<UnixMs>,
    /// At most 10,000 characters. An empty note counts as none.
    pub user_notes: Option<String>,
    /// A rule of the same account.
    pub alert_rule: Option<RuleId>,
    pub bid: Option<Amount>,
    /// 1 to 60 characters on one line.
    pub venue: Option<String>,
    pub renews_on: Option<Day>,
    /// The fee of the next renewal.
    pub renewal: Option<Amount>,
    /// Only for a sold claim.
    pub commission: Option<Commission>,
    /// Only for a sold claim; 1 to 60 characters on one line.
    pub sold_venue: Option<String>,
}

/// A change of a claim. An outer `None` leaves a field unchanged; an inner `None` clears it. Values
/// are limited as in [`NewClaim`].
#[derive(Clone, Debug, Default)]
pub struct ClaimPatch {
    /// Any status may follow any other. Leaving `sold` clears what is only for a sold claim.
    pub status: Option<ClaimStatus>,
    pub registrar: Option<Option<String>>,
    pub acquired_price: Option<Option<Amount>>,
    pub resale_price: Option<Option<Amount>>,
    pub sold_at: Option<Option<UnixMs>>,
    pub user_notes: Option<Option<String>>,
    pub alert_rule: Option<Option<RuleId>>,
    pub bid: Option<Option<Amount>>,
    pub venue: Option<Option<String>>,
    pub renews_on: Option<Option<Day>>,
    pub renewal: Option<Option<Amount>>,
    pub commission: Option<Option<Commission>>,
    pub sold_venue: Option<Option<String>>,
    /// About the renewal on `renews_on`, which the claim must have.
    pub decision: Option<Option<RenewalDecision>>,
}

impl Store {
    /// Adds a claim.
    ///
    /// # Errors
    /// [`WriteError`]: an invalid value, too many claims, an idempotency key used before.
    pub async fn add_claim(
        &self,
        caller: &Caller,
        claim: NewClaim,
        post: Post,
    ) -> Result<Draft<'_, Claim>, WriteError> {
        let now = UnixMs::from_instant(post.now);
        self.draft(caller, post, |account, _| add(account, claim, now)).await
    }

    /// Changes a claim.
    ///
    /// # Errors
    /// [`WriteError::NotFound`], [`WriteError::Invalid`].
    pub async fn change_claim(
        &self,
        caller: &Caller,
        id: ClaimId,
        patch: ClaimPatch,
        now: DateTime<Utc>,
    ) -> Result<Claim, WriteError> {
        self.write(caller, |account, _| change(account, id, patch, UnixMs::from_instant(now))).await
    }

    /// Removes a claim.
    ///
    /// # Errors
    /// [`WriteError::NotFound`].
    pub async fn remove_claim(&self, caller: &Caller, id: ClaimId) -> Result<(), WriteError> {
        self.write(caller, |account, _| {
            account.data.claims.get(id).ok_or(WriteError::NotFound)?;
            let removed = Event::Removed { account: account.id, row: RowOf::Claim(id) };
            Ok(Decided::new([removed], ()))
        })
        .await
    }
}

fn add(account: &Account, new: NewClaim, now: UnixMs) -> Result<Decided<Claim>, WriteError> {
    let claims = &account.data.claims;
    if claims.len() >= CLAIMS_MAX as usize {
        return Err(WriteError::TooMany { what: "claims", limit: CLAIMS_MAX });
    }
    let is_sold = new.status == ClaimStatus::Sold;
    let id = draw_id(ClaimId::new, |id| claims.get(id).is_some())?;
    let mut claim = Claim {
        registrar: registrar(new.registrar)?,
        sold_at: new.sold_at.or(is_sold.then_some(now)),
        user_notes: user_notes(new.user_notes)?,
        alert_rule: attribution(account, new.alert_rule)?,
        venue: checked_venue(InvalidField::Venue, new.venue.as_deref())?,
        renews_on: new.renews_on,
        ..Claim::new(id, new.domain, new.status, now)
    };
    claim.set_terms(Terms {
        commission: new.commission,
        sold_venue: checked_venue(InvalidField::SoldVenue, new.sold_venue.as_deref())?,
        ..Terms::default()
    });
    claim.set_amount(Price::Bid, new.bid);
    claim.set_amount(Price::Acquired, new.acquired_price);
    claim.set_amount(Price::Resale, new.resale_price);
    claim.set_amount(Price::Renewal, new.renewal);
    check_sale(&claim)?;
    Ok(Decided::new([put(account, &claim)], claim))
}

fn change(
    account: &Account,
    id: ClaimId,
    patch: ClaimPatch,
    now: UnixMs,
) -> Result<Decided<Claim>, WriteError> {
    let mut claim = account.data.claims.get(id).ok_or(WriteError::NotFound)?.clone();
    if let Some(status) = patch.status {
        set_status(&mut claim, status, now);
    }
    if let Some(text) = patch.registrar {
        claim.registrar = registrar(text)?;
    }
    if let Some(text) = patch.user_notes {
        claim.user_notes = user_notes(text)?;
    }
    if let Some(rule) = patch.alert_rule {
        claim.alert_rule = attribution(account, rule)?;
    }
    if let Some(venue) = patch.venue {
        claim.venue = checked_venue(InvalidField::Venue, venue.as_deref())?;
    }
    claim.renews_on = patch.renews_on.unwrap_or(claim.renews_on);
    let prices = [
        (Price::Bid, patch.bid),
        (Price::Acquired, patch.acquired_price),
        (Price::Resale, patch.resale_price),
        (Price::Renewal, patch.renewal),
    ];
    for (price, amount) in prices {
        claim.set_amount(price, amount.unwrap_or(claim.amount(price)));
    }
    let mut terms = claim.terms.as_deref().cloned().unwrap_or_default();
    terms.commission = patch.commission.unwrap_or(terms.commission);
    if let Some(venue) = patch.sold_venue {
        terms.sold_venue = checked_venue(InvalidField::SoldVenue, venue.as_deref())?;
    }
    if let Some(decision) = patch.decision {
        terms.decision = match (decision, claim.renews_on) {
            (None, _) => None,
            (Some(decision), Some(day)) => Some((day, decision)),
            (Some(_), None) => {
                return Err(invalid(InvalidField::RenewalDecision, "needs a day of renewal"));
            }
        };
    }
    claim.set_terms(terms);
    claim.sold_at = patch.sold_at.unwrap_or(claim.sold_at);
    check_sale(&claim)?;
    claim.updated_at = now.max(claim.reported_at);
    Ok(Decided::new([put(account, &claim)], claim))
}

fn put(account: &Account, claim: &Claim) -> Event {
    Event::ClaimPut { account: account.id, claim: Box::new(claim.clone()) }
}

/// A sale sets the time of the sale; leaving `sold` clears time, price and terms.
fn set_status(claim: &mut Claim, status: ClaimStatus, now: UnixMs) {
    claim.status = status;
    if status == ClaimStatus::Sold {
        claim.sold_at.get_or_insert(now);
    } else {
        claim.sold_at = None;
        claim.set_amount(Price::Resale, None);
        let terms = claim.terms.as_deref().cloned().unwrap_or_default();
        claim.set_terms(Terms { commission: None, sold_venue: None, ..terms });
    }
}

fn check_sale(claim: &Claim) -> Result<(), WriteError> {
    let is_sold = claim.status == ClaimStatus::Sold;
    if is_sold != claim.sold_at.is_some() {
        let what = if is_sold { "a sold claim has one" } else { "only a sold claim has one" };
        return Err(invalid(InvalidField::SoldAt, what));
    }
    let (commission, sold_venue) = claim.sale_terms();
    let of_sale = [
        (InvalidField::ResalePrice, claim.amount(Price::Resale).is_some()),
        (InvalidField::Commission, commission.is_some()),
        (InvalidField::SoldVenue, sold_venue.is_some()),
    ];
    match of_sale.into_iter().find(|(_, is_set)| *is_set && !is_sold) {
        Some((field, _)) => Err(invalid(field, "only a sold claim has one")),
        None => Ok(()),
    }
}

fn registrar(text: Option<String>) -> Result<Option<Box<str>>, WriteError> {
    let Some(text) = text else { return Ok(None) };
    check_text(InvalidField::Registrar, &text, 1..=REGISTRAR_CHARS_MAX, char::is_control)?;
    Ok(Some(text.into()))
}

/// Notes may have several lines.
fn user_notes(text: Option<String>) -> Result<Option<Box<str>>, WriteError> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    check_text(InvalidField::UserNotes, &text, 0..=NOTES_CHARS_MAX, |char| {
        char.is_control() && !matches!(char, '\n' | '\r' | '\t')
    })?;
    Ok(Some(text.into()))
}

fn attribution(
    account: &Account,
    rule: Option<RuleId>,
) -> Result<Option<Box<Attribution>>, WriteError> {
    let Some(id) = rule else { return Ok(None) };
    match account.data.rules.get(id) {
        Some(rule) => Ok(Some(Box::new(Attribution { id, name: rule.name.clone() }))),
        None => Err(invalid(InvalidField::AlertRule, "must be the id of one of your alert rules")),
    }
}
