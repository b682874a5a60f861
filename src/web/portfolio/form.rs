//! The fields of a claim's form, and the shapes of the API that they stand for.

use crate::accounts::Claim;
use crate::http::body::{JsonInteger, Money, Patch};
use crate::http::error::ApiError;
use crate::http::portfolio::{ClaimPatchRequest, ClaimRequest};
use crate::vocab::claim::ClaimStatus;
use crate::vocab::day::Day;
use crate::vocab::money::Usd;
use crate::vocab::time::UnixMs;
use crate::web::form::Fields;

/// A claim as its form has it: texts, which may be anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimForm {
    pub domain: String,
    pub status: String,
    pub registrar: String,
    pub acquired: String,
    pub resale: String,
    /// A day: the time of a sale is seldom known better.
    pub sold_on: String,
    pub notes: String,
    /// The id of an alert rule.
    pub rule: String,
}

impl ClaimForm {
    /// An empty form about a name.
    pub fn blank(domain: &str) -> ClaimForm {
        let status = ClaimStatus::Attempted.as_str().to_owned();
        ClaimForm { domain: domain.to_owned(), status, ..ClaimForm::default() }
    }

    /// A form as sent.
    pub fn from_fields(fields: &Fields) -> ClaimForm {
        let text = |name| fields.text(name).trim().to_owned();
        ClaimForm {
            domain: text("domain"),
            status: text("status"),
            registrar: text("registrar"),
            acquired: text("acquired"),
            resale: text("resale"),
            sold_on: text("sold_on"),
            // Forms end lines with two characters.
            notes: one_line_end(fields.text("notes")),
            rule: text("rule"),
        }
    }

    /// A claim as it is.
    pub fn for_claim(claim: &Claim) -> ClaimForm {
        let price = |price: Option<Usd>| price.map(|it| it.to_string()).unwrap_or_default();
        let rule = claim.alert_rule.as_ref().map(|rule| rule.id.to_string());
        ClaimForm {
            domain: claim.domain.unicode().into_owned(),
            status: claim.status.as_str().to_owned(),
            registrar: claim.registrar.as_deref().unwrap_or_default().to_owned(),
            acquired: price(claim.acquired_price),
            resale: price(claim.resale_price),
            sold_on: claim.sold_at.map(day_of).unwrap_or_default(),
            notes: one_line_end(claim.user_notes.as_deref().unwrap_or_default()),
            rule: rule.unwrap_or_default(),
        }
    }

    /// A claim to be added.
    ///
    /// # Errors
    /// A price or a day that is none.
    pub fn sent(&self) -> Result<ClaimRequest, ApiError> {
        let filled = |text: &String| (!text.is_empty()).then(|| text.clone());
        Ok(ClaimRequest {
            domain: Some(self.domain.clone()),
            status: filled(&self.status),
            registrar: filled(&self.registrar),
            acquired_price_usd: filled(&self.acquired).map(acquired).transpose()?,
            resale_price_usd: filled(&self.resale).map(resale).transpose()?,
            sold_at: filled(&self.sold_on).map(sold_at).transpose()?,
            user_notes: filled(&self.notes),
            alert_rule_id: filled(&self.rule).map(rule_id),
        })
    }

    /// What to change of a claim: what differs from what its form had. A sale is taken away with the
    /// status, so its fields may stay as they were.
    ///
    /// # Errors
    /// As [`ClaimForm::sent`].
    pub fn patch(&self, claim: &Claim) -> Result<ClaimPatchRequest, ApiError> {
        let before = ClaimForm::for_claim(claim);
        Ok(ClaimPatchRequest {
            status: changed(&before.status, &self.status),
            registrar: changed(&before.registrar, &self.registrar),
            acquired_price_usd: changed(&before.acquired, &self.acquired).try_map(acquired)?,
            resale_price_usd: changed(&before.resale, &self.resale).try_map(resale)?,
            sold_at: match changed(&before.sold_on, &self.sold_on).try_map(sold_at)? {
                // A sold claim has one: now, or as it was.
                Patch::Null => Patch::Absent,
                field => field,
            },
            user_notes: changed(&before.notes, &self.notes),
            alert_rule_id: changed(&before.rule, &self.rule).try_map(|id| Ok(rule_id(id)))?,
        })
    }

    /// The field of a member of the API's shape.
    pub fn field_of(member: &str) -> Option<String> {
        let field = match member {
            "domain" | "status" | "registrar" => member,
            "acquiredPriceUsd" => "acquired",
            "resalePriceUsd" => "resale",
            "soldAt" => "sold_on",
            "userNotes" => "notes",
            "alertRuleId" => "rule",
            _ => return None,
        };
        Some(field.to_owned())
    }
}

fn changed(before: &str, now: &str) -> Patch<String> {
    match now {
        _ if now == before => Patch::Absent,
        "" => Patch::Null,
        _ => Patch::Value(now.to_owned()),
    }
}

fn acquired(text: String) -> Result<Money, ApiError> {
    text.parse().map_err(|err| ApiError::parameter("acquiredPriceUsd", err))
}

fn resale(text: String) -> Result<Money, ApiError> {
    text.parse().map_err(|err| ApiError::parameter("resalePriceUsd", err))
}

/// The start of a day, as the API writes instants.
fn sold_at(text: String) -> Result<String, ApiError> {
    let day: Day = text.parse().map_err(|err| ApiError::parameter("soldAt", err))?;
    Ok(UnixMs::from_instant(day.start()).to_string())
}

/// An id; a text that is none is nobody's.
fn rule_id(text: String) -> JsonInteger {
    JsonInteger(text.parse().unwrap_or(i64::MAX))
}

fn day_of(at: UnixMs) -> String {
    at.instant().format("%Y-%m-%d").to_string()
}

fn one_line_end(text: &str) -> String {
    text.replace("\r\n", "\n").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocab::ids::ClaimId;
    use crate::vocab::name::DomainName;

    fn sold() -> Claim {
        let at: UnixMs = "2026-03-15T12:34:56.789Z".parse().expect("an instant");
        Claim {
            id: ClaimId::new(7).expect("an id"),
            domain: DomainName::parse("a.com").expect("a name"),
            status: ClaimStatus::Sold,
            registrar: Some("Gandi".into()),
            acquired_price: Usd::from_cents(1_250),
            resale_price: Usd::from_cents(99_900),
            sold_at: Some(at),
            reported_at: at,
            updated_at: at,
            user_notes: Some("two\r\nlines".into()),
            alert_rule: None,
        }
    }

    #[test]
    fn a_form_that_was_not_touched_changes_nothing() {
        let claim = sold();
        let sent = "domain=a.com&status=sold&registrar=Gandi&acquired=12.5&resale=999&sold_on=2026-03-15\
                    &notes=two%0D%0Alines&rule=";
        let form = ClaimForm::from_fields(&Fields::from_query(Some(sent)));
        assert_eq!(form, ClaimForm::for_claim(&claim));
        let patch = form.patch(&claim).expect("a change");
        assert_eq!(format!("{patch:?}"), format!("{:?}", ClaimPatchRequest::default()));
    }

    #[test]
    fn a_sale_goes_with_its_status() {
        let claim = sold();
        let form = ClaimForm { status: "lost".into(), ..ClaimForm::for_claim(&claim) };
        let patch = form.patch(&claim).expect("a change");
        assert_eq!(patch.status, Patch::Value("lost".into()));
        assert_eq!((patch.resale_price_usd, patch.sold_at), (Patch::Absent, Patch::Absent));
        let form = ClaimForm {
            resale: String::new(),
            sold_on: String::new(),
            ..ClaimForm::for_claim(&claim)
        };
        let patch = form.patch(&claim).expect("a change");
        assert_eq!((patch.resale_price_usd, patch.sold_at), (Patch::Null, Patch::Absent));
    }

    #[test]
    fn prices_and_days_are_judged_by_their_field() {
        for (form, member) in [
            (ClaimForm { acquired: "12,50".into(), ..ClaimForm::default() }, "acquiredPriceUsd"),
            (ClaimForm { resale: "-1".into(), ..ClaimForm::default() }, "resalePriceUsd"),
            (ClaimForm { sold_on: "yesterday".into(), ..ClaimForm::default() }, "soldAt"),
        ] {
            let Err(ApiError::BadParameter { name, .. }) = form.sent() else { panic!("{form:?}") };
            assert_eq!(name, member);
            assert!(ClaimForm::field_of(&name).is_some());
        }
        let form = ClaimForm { sold_on: "2026-03-15".into(), ..ClaimForm::blank("a.com") };
        let sent = form.sent().expect("a claim");
        assert_eq!(sent.sold_at.as_deref(), Some("2026-03-15T00:00:00.000Z"));
    }
}
