//! Backorder claims: validation and the effect of changes (`data/docs/api.md`, Portfolio).

use chrono::{DateTime, Utc};

use super::data::account::Account;
use super::data::claims::{Attribution, Claim};
use super::decide::{Decided, check_text, draw_id, invalid};
use super::error::{InvalidField, WriteError};
use super::event::{Event, RowOf};
use super::idempotency::{Draft, Post};
use super::store::{Caller, Store};
use super::watches::checked_venue;
use crate::vocab::claim::ClaimStatus;
use crate::vocab::day::Day;
use crate::vocab::ids::{ClaimId, RuleId};
use crate::vocab::limits::{CLAIMS_MAX, NOTES_CHARS_MAX, REGISTRAR_CHARS_MAX};
use crate::vocab::money::Usd;
use crate::vocab::name::DomainName;
use crate::vocab::time::UnixMs;

/// A claim to be added.
#[derive(Clone, Debug)]
pub struct NewClaim {
    pub domain: DomainName,
    pub status: ClaimStatus,
    /// 1 to 200 characters on one line.
    pub registrar: Option<String>,
    pub acquired_price: Option<Usd>,
    /// Only for a sold claim.
    pub resale_price: Option<Usd>,
    /// Allowed only for a sold claim; defaults to now.
    pub sold_at: Option<UnixMs>,
    /// At most 10,000 characters. An empty note counts as none.
    pub user_notes: Option<String>,
    /// A rule of the same account.
    pub alert_rule: Option<RuleId>,
    pub bid: Option<Usd>,
    /// 1 to 60 characters on one line.
    pub venue: Option<String>,
    pub renews_on: Option<Day>,
    /// The fee of the next renewal.
    pub renewal: Option<Usd>,
}

/// A change of a claim. An outer `None` leaves a field unchanged; an inner `None` clears it. Values
/// are limited as in [`NewClaim`].
#[derive(Clone, Debug, Default)]
pub struct ClaimPatch {
    /// Any status may follow any other. Leaving `sold` clears `sold_at` and `resale_price`.
    pub status: Option<ClaimStatus>,
    pub registrar: Option<Option<String>>,
    pub acquired_price: Option<Option<Usd>>,
    pub resale_price: Option<Option<Usd>>,
    pub sold_at: Option<Option<UnixMs>>,
    pub user_notes: Option<Option<String>>,
    pub alert_rule: Option<Option<RuleId>>,
    pub bid: Option<Option<Usd>>,
    pub venue: Option<Option<String>>,
    pub renews_on: Option<Option<Day>>,
    pub renewal: Option<Option<Usd>>,
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
    let claim = Claim {
        id: draw_id(ClaimId::new, |id| claims.get(id).is_some())?,
        domain: new.domain,
        status: new.status,
        registrar: registrar(new.registrar)?,
        acquired_price: new.acquired_price,
        resale_price: new.resale_price,
        sold_at: new.sold_at.or(is_sold.then_some(now)),
        reported_at: now,
        updated_at: now,
        user_notes: user_notes(new.user_notes)?,
        alert_rule: attribution(account, new.alert_rule)?,
        bid: new.bid,
        venue: checked_venue(new.venue.as_deref())?,
        renews_on: new.renews_on,
        renewal: new.renewal,
    };
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
        claim.venue = checked_venue(venue.as_deref())?;
    }
    claim.bid = patch.bid.unwrap_or(claim.bid);
    claim.renews_on = patch.renews_on.unwrap_or(claim.renews_on);
    claim.renewal = patch.renewal.unwrap_or(claim.renewal);
    claim.acquired_price = patch.acquired_price.unwrap_or(claim.acquired_price);
    claim.resale_price = patch.resale_price.unwrap_or(claim.resale_price);
    claim.sold_at = patch.sold_at.unwrap_or(claim.sold_at);
    check_sale(&claim)?;
    claim.updated_at = now.max(claim.reported_at);
    Ok(Decided::new([put(account, &claim)], claim))
}

fn put(account: &Account, claim: &Claim) -> Event {
    Event::ClaimPut { account: account.id, claim: Box::new(claim.clone()) }
}

/// A sale sets the time of the sale; leaving `sold` clears time and price.
fn set_status(claim: &mut Claim, status: ClaimStatus, now: UnixMs) {
    claim.status = status;
    if status == ClaimStatus::Sold {
        claim.sold_at.get_or_insert(now);
    } else {
        claim.sold_at = None;
        claim.resale_price = None;
    }
}

fn check_sale(claim: &Claim) -> Result<(), WriteError> {
    let is_sold = claim.status == ClaimStatus::Sold;
    if is_sold != claim.sold_at.is_some() {
        let what = if is_sold { "a sold claim has one" } else { "only a sold claim has one" };
        return Err(invalid(InvalidField::SoldAt, what));
    }
    if !is_sold && claim.resale_price.is_some() {
        return Err(invalid(InvalidField::ResalePrice, "only a sold claim has one"));
    }
    Ok(())
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
