//! Sales of similar names, in files of the viewer and of the operator. Their rows are records of those who have them,
//! so only members see those of the operator.

use maud::{Markup, html};

use crate::components::{date, name_linked, panel};
use crate::dossier::price_chart;
use crate::sales::{Amount, Comparable, Comparables};
use crate::vocab::day::Day;
use crate::vocab::money::{Currency, Usd};

/// Renders the sales by market, those in the viewer's own files first, with the viewer's maximum bid; nothing without
/// any.
pub fn section(
    own: &[Comparables<'_>],
    of_server: &[Comparables<'_>],
    bid: Option<Usd>,
    today: Day,
) -> Markup {
    if own.is_empty() && of_server.is_empty() {
        return html! {};
    }
    let content = html! {
        @if !own.is_empty() { h3 { "In your own sales" } }
        @for market in own { (of_market(market, bid, today)) }
        @if !own.is_empty() && !of_server.is_empty() { h3 { "In the sales of this server" } }
        @for market in of_server { (of_market(market, bid, today)) }
        p.soft {
            "Only names that were sold are listed, and most names never sell. Not part of the score. "
            a href="/docs/facts#comparable-sales" { "How names are compared" }
        }
    };
    panel("sales-title", "What similar names sold for", content)
}

fn of_market(market: &Comparables<'_>, bid: Option<Usd>, today: Day) -> Markup {
    html! {
        p { (market.summary) }
        (price_chart::chart(market, bid_in(market.currency, bid)))
        p.soft { (market.backtest) }
        details.parts-of {
            summary {
                "Show " @if market.count == 1 { "the sale" } @else { "the " (market.count) " sales" }
            }
            table.siblings {
                thead { tr { th scope="col" { "Name" } th scope="col" { "Price" } th scope="col" { "Sold" } } }
                tbody { @for sale in &market.sales { (row(sale, market.currency.as_str(), today)) } }
            }
        }
    }
}

fn bid_in(currency: Currency, bid: Option<Usd>) -> Option<Amount> {
    bid.filter(|_| currency.as_str() == "USD").map(|bid| Amount(bid.cents()))
}

fn row(sale: &Comparable<'_>, currency: &str, today: Day) -> Markup {
    html! {
        tr {
            th scope="row" {
                (name_linked(sale.domain.as_str(), sale.domain.tld()))
                br;
                span.soft { (sale.reasons.join(", ")) }
            }
            td { (sale.price) " " (currency) }
            td.where { (date(sale.date, today)) @if let Some(venue) = sale.venue { ", " (venue) } }
        }
    }
}
