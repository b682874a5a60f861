//! The claim form: values as sent, converted to [`NewClaim`] and [`ClaimPatch`].

use crate::accounts::{Claim, ClaimPatch, Commission, NewClaim, Price, WatchDetails};
use crate::confirm::written;
use crate::form::Fields;
use crate::service::error::ApiError;
use crate::vocab::claim::ClaimStatus;
use crate::vocab::day::Day;
use crate::vocab::ids::RuleId;
use crate::vocab::money::{Amount, Currency, Percent};
use crate::vocab::name::DomainName;
use crate::vocab::number::DecimalMark;
use crate::vocab::time::UnixMs;

/// A claim form as sent, by the names of its fields. Values are trimmed, but not validated. The sale is
/// a date without a time, and the rule is an ID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimForm(Fields);

impl ClaimForm {
    /// Parses a submitted form.
    pub fn new(fields: Fields) -> ClaimForm {
        ClaimForm(fields.map(|name, value| match name {
            // Browsers submit line breaks as CRLF.
            "notes" => value.replace("\r\n", "\n").trim_end().to_owned(),
            _ => value.trim().to_owned(),
        }))
    }

    /// Creates an empty form for a name.
    pub fn blank(domain: &str) -> ClaimForm {
        let mut fields = Fields::default();
        fields.push("domain", domain);
        fields.push("status", ClaimStatus::Attempted.as_str());
        ClaimForm::new(fields)
    }

    /// Creates a form for a name, with the bid and venue noted in the watchlist.
    pub fn for_watched(domain: &str, details: &WatchDetails, usual: Currency) -> ClaimForm {
        let ClaimForm(mut fields) = ClaimForm::blank(domain);
        let bid = details.max_bid.map(|bid| written(bid.into(), usual));
        fields.push("bid", bid.unwrap_or_default());
        fields.push("venue", details.venue.as_deref().unwrap_or_default());
        ClaimForm(fields)
    }

    /// Creates the form of an existing claim. Amounts that state no currency are in the `usual` one.
    pub fn for_claim(claim: &Claim, usual: Currency) -> ClaimForm {
        let price = |price| claim.amount(price).map(|it| written(it, usual)).unwrap_or_default();
        let rule = claim.alert_rule.as_ref().map(|rule| rule.id.to_string());
        let (commission, sold_venue) = claim.sale_terms();
        let commission = commission.map(|commission| match commission {
            Commission::Percent(percent) => format!("{percent} %"),
            Commission::Amount(amount) => written(amount, usual),
        });
        let mut fields = Fields::default();
        fields.push("domain", claim.domain.unicode());
        fields.push("status", claim.status.as_str());
        fields.push("registrar", claim.registrar.as_deref().unwrap_or_default());
        fields.push("acquired", price(Price::Acquired));
        fields.push("resale", price(Price::Resale));
        fields.push("sold_on", claim.sold_at.map(date_of).unwrap_or_default());
        fields.push("notes", claim.user_notes.as_deref().unwrap_or_default());
        fields.push("rule", rule.unwrap_or_default());
        fields.push("bid", price(Price::Bid));
        fields.push("venue", claim.venue.as_deref().unwrap_or_default());
        let renews_on = claim.renews_on.map(|day| day.to_string());
        fields.push("renews_on", renews_on.unwrap_or_default());
        fields.push("renewal", price(Price::Renewal));
        fields.push("commission", commission.unwrap_or_default());
        fields.push("sold_venue", sold_venue.unwrap_or_default());
        ClaimForm::new(fields)
    }

    /// Returns the value of a field.
    pub fn text(&self, field: &str) -> &str {
        self.0.text(field)
    }

    /// Converts the form to a new claim.
    ///
    /// # Errors
    /// The first invalid value.
    pub fn new_claim(&self, usual: Currency) -> Result<NewClaim, ApiError> {
        let domain = DomainName::parse_or_address(self.text("domain"));
        let price = |field, property| self.filled(field, |text| price(text, property, usual));
        Ok(NewClaim {
            domain: domain.map_err(|err| ApiError::parameter("domain", err))?,
            status: status(self.text("status"))?,
            registrar: self.filled("registrar", text)?,
            acquired_price: price("acquired", "acquiredPriceUsd")?,
            resale_price: price("resale", "resalePriceUsd")?,
            sold_at: self.filled("sold_on", sold_at)?,
            user_notes: self.filled("notes", text)?,
            alert_rule: self.filled("rule", rule_id)?,
            bid: price("bid", "bidUsd")?,
            venue: self.filled("venue", text)?,
            renews_on: self.filled("renews_on", renews_on)?,
            renewal: price("renewal", "renewalUsd")?,
            commission: self.filled("commission", |text| commission(text, usual))?,
            sold_venue: self.filled("sold_venue", text)?,
        })
    }

    /// Converts the form to a patch of the values that changed. A status other than `sold` removes the
    /// sale, so the sale fields need no separate change.
    ///
    /// # Errors
    /// The first invalid value.
    pub fn patch(&self, claim: &Claim, usual: Currency) -> Result<ClaimPatch, ApiError> {
        let before = ClaimForm::for_claim(claim, usual);
        let sent = self.text("status");
        let new_status = (sent != before.text("status")).then(|| status(sent));
        let sold_at = self.changed(&before, "sold_on", sold_at)?;
        let price =
            |field, property| self.changed(&before, field, |text| price(text, property, usual));
        Ok(ClaimPatch {
            decision: None,
            status: new_status.transpose()?,
            registrar: self.changed(&before, "registrar", text)?,
            acquired_price: price("acquired", "acquiredPriceUsd")?,
            resale_price: price("resale", "resalePriceUsd")?,
            // A sold claim always has a date; if the field was emptied, the date is kept.
            sold_at: sold_at.filter(Option::is_some),
            user_notes: self.changed(&before, "notes", text)?,
            alert_rule: self.changed(&before, "rule", rule_id)?,
            bid: price("bid", "bidUsd")?,
            venue: self.changed(&before, "venue", text)?,
            renews_on: self.changed(&before, "renews_on", renews_on)?,
            renewal: price("renewal", "renewalUsd")?,
            commission: self.changed(&before, "commission", |text| commission(text, usual))?,
            sold_venue: self.changed(&before, "sold_venue", text)?,
        })
    }

    /// Parses a value; returns `None` for an empty one.
    fn filled<T>(
        &self,
        field: &str,
        parse: impl FnOnce(&str) -> Result<T, ApiError>,
    ) -> Result<Option<T>, ApiError> {
        let value = self.text(field);
        (!value.is_empty()).then(|| parse(value)).transpose()
    }

    /// The same as [`ClaimForm::filled`], but `None` if the value did not change.
    fn changed<T>(
        &self,
        before: &ClaimForm,
        field: &str,
        parse: impl FnOnce(&str) -> Result<T, ApiError>,
    ) -> Result<Option<Option<T>>, ApiError> {
        let is_changed = self.text(field) != before.text(field);
        is_changed.then(|| self.filled(field, parse)).transpose()
    }

    /// Id of the field of a property of the API.
    pub fn field_of(property: &str) -> Option<String> {
        let field = match property {
            "domain" | "status" | "registrar" | "venue" => property,
            "acquiredPriceUsd" => "acquired",
            "resalePriceUsd" => "resale",
            "soldAt" => "sold_on",
            "userNotes" => "notes",
            "alertRuleId" => "rule",
            "bidUsd" => "bid",
            "renewsOn" => "renews_on",
            "renewalUsd" => "renewal",
            "commission" => "commission",
            "soldVenue" => "sold_venue",
            _ => return None,
        };
        Some(field.to_owned())
    }
}

fn text(value: &str) -> Result<String, ApiError> {
    Ok(value.to_owned())
}

fn status(value: &str) -> Result<ClaimStatus, ApiError> {
    value.parse().map_err(|err| ApiError::parameter("status", err))
}

fn renews_on(value: &str) -> Result<Day, ApiError> {
    value.parse().map_err(|err| ApiError::parameter("renewsOn", err))
}

fn price(value: &str, property: &'static str, usual: Currency) -> Result<Amount, ApiError> {
    let amount = Amount::from_text(value, usual, DecimalMark::Either);
    amount.map_err(|err| ApiError::parameter(property, err))
}

fn commission(value: &str, usual: Currency) -> Result<Commission, ApiError> {
    if !value.ends_with('%') {
        return price(value, "commission", usual).map(Commission::Amount);
    }
    let percent = Percent::from_text(value);
    percent.map(Commission::Percent).map_err(|err| ApiError::parameter("commission", err))
}

/// Returns the start of a day.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocab::ids::ClaimId;
    use crate::vocab::money::Usd;
    use crate::vocab::name::DomainName;

    fn with(mut form: ClaimForm, field: &str, value: &str) -> ClaimForm {
        form.0.push(field, "");
        let tidy = |name: &str, old: &str| if name == field { value } else { old }.to_owned();
        ClaimForm(form.0.map(tidy))
    }

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
            bid: None,
            venue: None,
            renews_on: None,
            renewal: None,
            terms: None,
        }
    }

    #[test]
    fn an_unchanged_form_gives_an_empty_patch() {
        let claim = sold();
        let sent = "domain=a.com&status=sold&registrar=Gandi&acquired=12.5&resale=999&sold_on=2026-03-15\
                    &notes=two%0D%0Alines&rule=";
        let form = ClaimForm::new(Fields::from_query(Some(sent)));
        let fields =
            ["domain", "status", "registrar", "acquired", "resale", "sold_on", "notes", "rule"];
        for field in fields {
            assert_eq!(
                form.text(field),
                ClaimForm::for_claim(&claim, Currency::USD).text(field),
                "{field}"
            );
        }
        let patch = form.patch(&claim, Currency::USD).expect("a change");
        assert_eq!(format!("{patch:?}"), format!("{:?}", ClaimPatch::default()));
    }

    #[test]
    fn leaving_sold_keeps_the_sale_out_of_the_patch() {
        let claim = sold();
        let form = with(ClaimForm::for_claim(&claim, Currency::USD), "status", "lost");
        let patch = form.patch(&claim, Currency::USD).expect("a change");
        assert_eq!(patch.status, Some(ClaimStatus::Lost));
        assert_eq!((patch.resale_price, patch.sold_at), (None, None));
        let form =
            with(with(ClaimForm::for_claim(&claim, Currency::USD), "resale", ""), "sold_on", "");
        let patch = form.patch(&claim, Currency::USD).expect("a change");
        assert_eq!((patch.resale_price, patch.sold_at), (Some(None), None));
    }

    #[test]
    fn amounts_without_a_currency_are_in_that_of_the_account() {
        let eur = Currency::parse("EUR").expect("a currency");
        let sent = "domain=a.com&status=sold&bid=12&acquired=12.50+USD&resale=1.250,50+%E2%82%AC&commission=12,5+%25";
        let form = ClaimForm::new(Fields::from_query(Some(sent)));
        let claim = form.new_claim(eur).expect("a claim");
        assert_eq!(claim.bid, Amount::new(eur, 1_200));
        assert_eq!(claim.acquired_price, Amount::new(Currency::USD, 1_250));
        assert_eq!(claim.resale_price, Amount::new(eur, 125_050));
        assert_eq!(claim.commission, Percent::try_from(1_250).ok().map(Commission::Percent));
        let form = ClaimForm::new(Fields::from_query(Some(&sent.replace("12,5+%25", "60"))));
        let fee = Amount::new(eur, 6_000).map(Commission::Amount);
        assert_eq!(form.new_claim(eur).expect("a claim").commission, fee);

        // What a form shows is what it reads.
        let mut claim = sold();
        claim.set_amount(Price::Acquired, Amount::new(eur, 1_250));
        for usual in [eur, Currency::USD] {
            let form = ClaimForm::for_claim(&claim, usual);
            let new = form.new_claim(usual).expect("a claim");
            assert_eq!(new.acquired_price, claim.amount(Price::Acquired));
            assert_eq!(new.resale_price, claim.amount(Price::Resale));
        }
    }

    #[test]
    fn invalid_values_name_their_field() {
        for (form, member) in [
            (with(ClaimForm::blank("a.com"), "acquired", "12.500"), "acquiredPriceUsd"),
            (with(ClaimForm::blank("a.com"), "resale", "-1"), "resalePriceUsd"),
            (with(ClaimForm::blank("a.com"), "sold_on", "yesterday"), "soldAt"),
            (with(ClaimForm::blank("a.com"), "bid", "12 kr"), "bidUsd"),
            (with(ClaimForm::blank("a.com"), "commission", "101 %"), "commission"),
        ] {
            let Err(ApiError::BadParameter { name, .. }) = form.new_claim(Currency::USD) else {
                panic!("{form:?}")
            };
            assert_eq!(name, member);
            assert!(ClaimForm::field_of(&name).is_some());
        }
        let form = with(ClaimForm::blank("a.com"), "sold_on", "2026-03-15");
        let claim = form.new_claim(Currency::USD).expect("a claim");
        let sold_at = claim.sold_at.map(|at| at.to_string());
        assert_eq!(sold_at.as_deref(), Some("2026-03-15T00:00:00.000Z"));
    }
}
