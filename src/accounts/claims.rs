//! Claims: what fits, and what a change means (decisions.md §5).

use super::{Decided, check_text, draw_id, invalid};
use crate::accounts::event::Event;
use crate::accounts::owned::claims::{Attribution, Claim, ClaimPatch, NewClaim};
use crate::accounts::state::Account;
use crate::accounts::write::WriteError;
use crate::vocab::claim::ClaimStatus;
use crate::vocab::ids::{ClaimId, RuleId};
use crate::vocab::limits::{CLAIMS_MAX, NOTES_CHARS_MAX, REGISTRAR_CHARS_MAX};
use crate::vocab::time::UnixMs;

/// Adds a claim at `now`.
pub(in crate::accounts) fn add(
    account: &Account,
    new: NewClaim,
    now: UnixMs,
) -> Result<Decided<Claim>, WriteError> {
    let claims = &account.owned.claims;
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
    };
    check_sale(&claim)?;
    let event = Event::ClaimAdded { account: account.id, claim: Box::new(claim.clone().into()) };
    Ok(Decided { events: vec![event], answer: claim })
}

/// Changes a claim at `now`.
pub(in crate::accounts) fn change(
    account: &Account,
    id: ClaimId,
    patch: ClaimPatch,
    now: UnixMs,
) -> Result<Decided<Claim>, WriteError> {
    let mut claim = account.owned.claims.get(id).ok_or(WriteError::NotFound)?.clone();
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
    claim.acquired_price = patch.acquired_price.unwrap_or(claim.acquired_price);
    claim.resale_price = patch.resale_price.unwrap_or(claim.resale_price);
    claim.sold_at = patch.sold_at.unwrap_or(claim.sold_at);
    check_sale(&claim)?;
    claim.updated_at = now.max(claim.reported_at);
    let event = Event::ClaimChanged { account: account.id, claim: Box::new(claim.clone().into()) };
    Ok(Decided { events: vec![event], answer: claim })
}

/// Removes a claim.
pub(in crate::accounts) fn remove(
    account: &Account,
    id: ClaimId,
) -> Result<Decided<()>, WriteError> {
    account.owned.claims.get(id).ok_or(WriteError::NotFound)?;
    let event = Event::ClaimRemoved { account: account.id, claim: id };
    Ok(Decided { events: vec![event], answer: () })
}

/// Selling sets the time of the sale, leaving `sold` takes time and price away.
fn set_status(claim: &mut Claim, status: ClaimStatus, now: UnixMs) {
    claim.status = status;
    if status == ClaimStatus::Sold {
        claim.sold_at.get_or_insert(now);
    } else {
        claim.sold_at = None;
        claim.resale_price = None;
    }
}

/// A sold claim, and no other, has a time of sale; no other has a price.
fn check_sale(claim: &Claim) -> Result<(), WriteError> {
    let is_sold = claim.status == ClaimStatus::Sold;
    if is_sold != claim.sold_at.is_some() {
        let what = if is_sold { "a sold claim has one" } else { "only a sold claim has one" };
        return Err(invalid("soldAt", what));
    }
    if !is_sold && claim.resale_price.is_some() {
        return Err(invalid("resalePriceUsd", "only a sold claim has one"));
    }
    Ok(())
}

fn registrar(text: Option<String>) -> Result<Option<Box<str>>, WriteError> {
    let Some(text) = text else { return Ok(None) };
    check_text("registrar", &text, 1..=REGISTRAR_CHARS_MAX, char::is_control)?;
    Ok(Some(text.into()))
}

/// Several lines are fine; an empty note is none.
fn user_notes(text: Option<String>) -> Result<Option<Box<str>>, WriteError> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    check_text("userNotes", &text, 0..=NOTES_CHARS_MAX, |char| {
        char.is_control() && !matches!(char, '\n' | '\r' | '\t')
    })?;
    Ok(Some(text.into()))
}

fn attribution(
    account: &Account,
    rule: Option<RuleId>,
) -> Result<Option<Box<Attribution>>, WriteError> {
    let Some(id) = rule else { return Ok(None) };
    match account.owned.rules.get(id) {
        Some(rule) => Ok(Some(Box::new(Attribution { id, name: rule.name.clone() }))),
        None => Err(invalid("alertRuleId", "it is none of your alert rules")),
    }
}
