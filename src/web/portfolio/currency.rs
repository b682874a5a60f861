//! `/portfolio/currency`: the currency of the sums, and what other currencies are worth in it.

use std::collections::BTreeSet;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};

use super::{CURRENCY_PATH, CURRENCY_SAVED, PATH};
use crate::Web;
use crate::accounts::{MoneySettings, Price, UserData};
use crate::error::PageError;
use crate::field::{Field, FormError, Input};
use crate::form::{Fields, Form, LargeForm};
use crate::layout::{NavItem, Page};
use crate::logged_in::LoggedIn;
use crate::owned::STYLES;
use crate::service::error::ApiError;
use crate::vocab::money::{Currency, Rate};

/// Prefix of the fields with rates; the code of the currency follows.
const RATE: &str = "rate-";

/// `GET /portfolio/currency`.
pub async fn show(State(web): State<Web>, member: LoggedIn) -> Markup {
    let owned = web.user_data(&member);
    page(&member, &owned, &fields_of(owned.money()), None)
}

/// `POST /portfolio/currency`.
pub async fn save(
    State(web): State<Web>,
    member: LoggedIn,
    Form(fields): LargeForm<Fields>,
) -> Result<Response, PageError> {
    let owned = web.user_data(&member);
    let settings = match parse(&fields, owned.money()) {
        Ok(settings) => settings,
        Err((field, what)) => {
            let error = FormError::with_status(StatusCode::BAD_REQUEST, Some(&field), &what);
            let page = page(&member, &owned, &fields, Some(&error));
            return Ok(error.into_page(page));
        }
    };
    let is_other = settings.currency != owned.money().currency;
    let needs_rates = is_other && !others(&owned, settings.currency).is_empty();
    // A write copies the account if it is still in use here.
    drop(owned);
    web.app.store.set_money(&member.caller, settings).await.map_err(ApiError::from)?;
    // The rates of another currency are asked for next.
    let next = if needs_rates { CURRENCY_PATH } else { PATH };
    Ok(CURRENCY_SAVED.at(next).into_response())
}

fn fields_of(money: &MoneySettings) -> Fields {
    let mut fields = Fields::default();
    fields.push("currency", money.currency.as_str());
    for (currency, rate) in &money.rates {
        fields.push(&format!("{RATE}{}", currency.as_str()), rate.to_string());
    }
    fields
}

/// Parses the form; the error is a field and what is wrong with it. Rates are those of the currency that
/// was saved, so another currency has none yet.
fn parse(fields: &Fields, before: &MoneySettings) -> Result<MoneySettings, (String, String)> {
    let currency = Currency::parse(fields.text("currency").trim()).ok_or_else(|| {
        let what = "Enter the code of a currency in use, such as EUR.";
        ("currency".to_owned(), what.to_owned())
    })?;
    if currency != before.currency {
        return Ok(MoneySettings { currency, rates: Vec::new() });
    }
    let mut rates = Vec::new();
    for (name, text) in fields.iter() {
        let other = name.strip_prefix(RATE).and_then(Currency::parse);
        if let Some(other) = other.filter(|other| *other != currency && !text.trim().is_empty()) {
            let rate = Rate::from_text(text).map_err(|err| {
                (name.to_owned(), format!("The rate of {} {err}.", other.as_str()))
            })?;
            rates.push((other, rate));
        }
    }
    rates.sort_by_key(|(currency, _)| *currency);
    rates.dedup_by_key(|(currency, _)| *currency);
    Ok(MoneySettings { currency, rates })
}

/// Returns the currencies of amounts and rates other than `usual`.
fn others(owned: &UserData, usual: Currency) -> BTreeSet<Currency> {
    let prices = [Price::Bid, Price::Acquired, Price::Resale, Price::Renewal];
    let amounts = owned.claims().flat_map(|claim| {
        prices.map(|price| claim.amount(price)).into_iter().chain([claim.commission()]).flatten()
    });
    let rated = owned.money().rates.iter().map(|(currency, _)| *currency);
    let all = amounts.map(|amount| amount.currency()).chain(rated);
    all.filter(|currency| *currency != usual).collect()
}

fn page(member: &LoggedIn, owned: &UserData, fields: &Fields, error: Option<&FormError>) -> Markup {
    let usual = owned.money().currency;
    let others = others(owned, usual);
    let code = Input { longest: Some(3), is_required: true, ..Input::TEXT };
    let number = Input { mode: Some("decimal"), placeholder: Some("no rate"), ..Input::TEXT };
    let help = "Sums are in this currency, and so are amounts that you enter without one. Amounts in others stay as entered. Another currency removes the rates.";
    Page::new("Currency", "The currency of your portfolio, and your rates.")
        .at(NavItem::Portfolio)
        .styles(STYLES)
        .show(
            Some(&member.viewer),
            html! {
                section.narrow {
                    p.trail { a href=(PATH) { "Portfolio" } }
                    h1 { "Currency" }
                    @if let Some(error) = error { (error.shown()) }
                    form.panel method="post" action=(CURRENCY_PATH) {
                        (Field::new("currency", "Currency").help(help).error(error).input(fields.text("currency"), code))
                        @for other in &others {
                            @let id = format!("{RATE}{}", other.as_str());
                            @let label = format!("1 {} in {}", other.as_str(), usual.as_str());
                            (Field::new(&id, &label).error(error).input(fields.text(&id), number))
                        }
                        @if !others.is_empty() {
                            p.soft.small { "Each amount is converted at your rate and rounded to the smallest unit. Claims in a currency without a rate are not in the sums." }
                        }
                        p.send {
                            button type="submit" { "Save" }
                            a.button.quiet href=(PATH) { "Cancel" }
                        }
                    }
                }
            },
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_currency_has_no_rates_yet() {
        let eur = Currency::parse("EUR").expect("a currency");
        let usual = MoneySettings::default();
        let fields = |text| Fields::from_query(Some(text));
        let saved = parse(&fields("currency=usd&rate-EUR=1.0835&rate-GBP="), &usual);
        let rates = vec![(eur, Rate::from_text("1.0835").expect("a rate"))];
        assert_eq!(saved, Ok(MoneySettings { rates, ..usual.clone() }));
        let other = parse(&fields("currency=EUR&rate-GBP=1.2"), &usual);
        assert_eq!(other, Ok(MoneySettings { currency: eur, rates: Vec::new() }));
        for (text, field) in
            [("currency=euro", "currency"), ("currency=USD&rate-EUR=0", "rate-EUR")]
        {
            assert_eq!(
                parse(&fields(text), &usual).map_err(|(field, _)| field),
                Err(field.to_owned())
            );
        }
        let shown = fields_of(&saved.expect("settings"));
        assert_eq!((shown.text("currency"), shown.text("rate-EUR")), ("USD", "1.0835"));
    }
}
