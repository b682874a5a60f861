//! The claim form: values as sent, converted to [`NewClaim`] and [`ClaimPatch`].

use crate::accounts::{Claim, ClaimPatch, NewClaim};
use crate::http::body::Money;
use crate::http::error::ApiError;
use crate::vocab::claim::ClaimStatus;
use crate::vocab::day::Day;
use crate::vocab::ids::RuleId;
use crate::vocab::money::Usd;
use crate::vocab::name::DomainName;
use crate::vocab::time::UnixMs;
use crate::web::form::Fields;

/// A claim form as sent. Values are not validated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimForm {
    pub domain: String,
    pub status: String,
    pub registrar: String,
    pub acquired: String,
    pub resale: String,
    /// Date of the sale. The form does not ask for a time.
    pub sold_on: String,
    pub notes: String,
    /// Id of an alert rule.
    pub rule: String,
}

impl ClaimForm {
    /// An empty form for a name.
    pub fn blank(domain: &str) -> ClaimForm {
        let status = ClaimStatus::Attempted.as_str().to_owned();
        ClaimForm { domain: domain.to_owned(), status, ..ClaimForm::default() }
    }

    /// Reads a submitted form.
    pub fn from_fields(fields: &Fields) -> ClaimForm {
        let text = |name| fields.text(name).trim().to_owned();
        ClaimForm {
            domain: text("domain"),
            status: text("status"),
            registrar: text("registrar"),
            acquired: text("acquired"),
            resale: text("resale"),
            sold_on: text("sold_on"),
            // Browsers submit line breaks as CRLF.
            notes: normalize_line_breaks(fields.text("notes")),
            rule: text("rule"),
        }
    }

    /// The form of an existing claim.
    pub fn for_claim(claim: &Claim) -> ClaimForm {
        let price = |price: Option<Usd>| price.map(|it| it.to_string()).unwrap_or_default();
        let rule = claim.alert_rule.as_ref().map(|rule| rule.id.to_string());
        ClaimForm {
            domain: claim.domain.unicode().into_owned(),
            status: claim.status.as_str().to_owned(),
            registrar: claim.registrar.as_deref().unwrap_or_default().to_owned(),
            acquired: price(claim.acquired_price),
            resale: price(claim.resale_price),
            sold_on: claim.sold_at.map(date_of).unwrap_or_default(),
            notes: normalize_line_breaks(claim.user_notes.as_deref().unwrap_or_default()),
            rule: rule.unwrap_or_default(),
        }
    }

    /// Converts the form to a new claim.
    ///
    /// # Errors
    /// The first invalid value.
    pub fn new_claim(&self) -> Result<NewClaim, ApiError> {
        let domain = DomainName::parse(&self.domain);
        Ok(NewClaim {
            domain: domain.map_err(|err| ApiError::parameter("domain", err))?,
            status: status(&self.status)?,
            registrar: filled(&self.registrar, text)?,
            acquired_price: filled(&self.acquired, acquired)?,
            resale_price: filled(&self.resale, resale)?,
            sold_at: filled(&self.sold_on, sold_at)?,
            user_notes: filled(&self.notes, text)?,
            alert_rule: filled(&self.rule, rule_id)?,
        })
    }

    /// Converts the form to a patch of the values that changed. Another status than `sold` removes the
    /// sale, so the sale fields need no change of their own.
    ///
    /// # Errors
    /// The first invalid value.
    pub fn patch(&self, claim: &Claim) -> Result<ClaimPatch, ApiError> {
        let before = ClaimForm::for_claim(claim);
        let new_status = (self.status != before.status).then(|| status(&self.status));
        let sold_at = changed(&before.sold_on, &self.sold_on, sold_at)?;
        Ok(ClaimPatch {
            status: new_status.transpose()?,
            registrar: changed(&before.registrar, &self.registrar, text)?,
            acquired_price: changed(&before.acquired, &self.acquired, acquired)?,
            resale_price: changed(&before.resale, &self.resale, resale)?,
            // A sold claim always has a date; an emptied field keeps it.
            sold_at: sold_at.filter(Option::is_some),
            user_notes: changed(&before.notes, &self.notes, text)?,
            alert_rule: changed(&before.rule, &self.rule, rule_id)?,
        })
    }

    /// Id of the field of a property of the API.
    pub fn field_of(property: &str) -> Option<String> {
        let field = match property {
            "domain" | "status" | "registrar" => property,
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

/// Parses a value; an empty one is `None`.
fn filled<T>(
    value: &str,
    parse: impl FnOnce(&str) -> Result<T, ApiError>,
) -> Result<Option<T>, ApiError> {
    (!value.is_empty()).then(|| parse(value)).transpose()
}

/// As [`filled`], but `None` if the value did not change.
fn changed<T>(
    before: &str,
    now: &str,
    parse: impl FnOnce(&str) -> Result<T, ApiError>,
) -> Result<Option<Option<T>>, ApiError> {
    (now != before).then(|| filled(now, parse)).transpose()
}

fn text(value: &str) -> Result<String, ApiError> {
    Ok(value.to_owned())
}

fn status(value: &str) -> Result<ClaimStatus, ApiError> {
    value.parse().map_err(|err| ApiError::parameter("status", err))
}

fn acquired(value: &str) -> Result<Usd, ApiError> {
    price(value, "acquiredPriceUsd")
}

fn resale(value: &str) -> Result<Usd, ApiError> {
    price(value, "resalePriceUsd")
}

fn price(value: &str, property: &'static str) -> Result<Usd, ApiError> {
    let Money(price) = value.parse().map_err(|err| ApiError::parameter(property, err))?;
    Ok(price)
}

/// The start of a day.
fn sold_at(value: &str) -> Result<UnixMs, ApiError> {
    let day: Day = value.parse().map_err(|err| ApiError::parameter("soldAt", err))?;
    Ok(UnixMs::from_instant(day.start()))
}

fn rule_id(value: &str) -> Result<RuleId, ApiError> {
    RuleId::parse(value).ok_or_else(|| ApiError::parameter("alertRuleId", "is not an alert rule"))
}

fn date_of(at: UnixMs) -> String {
    at.instant().format("%Y-%m-%d").to_string()
}

fn normalize_line_breaks(text: &str) -> String {
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
    fn an_unchanged_form_gives_an_empty_patch() {
        let claim = sold();
        let sent = "domain=a.com&status=sold&registrar=Gandi&acquired=12.5&resale=999&sold_on=2026-03-15\
                    &notes=two%0D%0Alines&rule=";
        let form = ClaimForm::from_fields(&Fields::from_query(Some(sent)));
        assert_eq!(form, ClaimForm::for_claim(&claim));
        let patch = form.patch(&claim).expect("a change");
        assert_eq!(format!("{patch:?}"), format!("{:?}", ClaimPatch::default()));
    }

    #[test]
    fn leaving_sold_keeps_the_sale_out_of_the_patch() {
        let claim = sold();
        let form = ClaimForm { status: "lost".into(), ..ClaimForm::for_claim(&claim) };
        let patch = form.patch(&claim).expect("a change");
        assert_eq!(patch.status, Some(ClaimStatus::Lost));
        assert_eq!((patch.resale_price, patch.sold_at), (None, None));
        let form = ClaimForm {
            resale: String::new(),
            sold_on: String::new(),
            ..ClaimForm::for_claim(&claim)
        };
        let patch = form.patch(&claim).expect("a change");
        assert_eq!((patch.resale_price, patch.sold_at), (Some(None), None));
    }

    #[test]
    fn invalid_values_name_their_field() {
        for (form, member) in [
            (
                ClaimForm { acquired: "12,50".into(), ..ClaimForm::blank("a.com") },
                "acquiredPriceUsd",
            ),
            (ClaimForm { resale: "-1".into(), ..ClaimForm::blank("a.com") }, "resalePriceUsd"),
            (ClaimForm { sold_on: "yesterday".into(), ..ClaimForm::blank("a.com") }, "soldAt"),
        ] {
            let Err(ApiError::BadParameter { name, .. }) = form.new_claim() else {
                panic!("{form:?}")
            };
            assert_eq!(name, member);
            assert!(ClaimForm::field_of(&name).is_some());
        }
        let form = ClaimForm { sold_on: "2026-03-15".into(), ..ClaimForm::blank("a.com") };
        let claim = form.new_claim().expect("a claim");
        let sold_at = claim.sold_at.map(|at| at.to_string());
        assert_eq!(sold_at.as_deref(), Some("2026-03-15T00:00:00.000Z"));
    }
}
