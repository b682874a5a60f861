//! Prices of comparable sales as dots on a logarithmic axis, with the range in which the middle half lies. The list of
//! sales below it has the same prices as text.

use maud::{Markup, html};

use crate::sales::{Amount, Comparables};

/// Fewer prices are read faster than drawn.
const SALES_MIN: usize = 3;
/// More labels would touch on a phone.
const TICKS_MAX: usize = 6;
/// Space on both sides of the axis for half a label, in percent.
const MARGIN: f64 = 7.0;

/// Renders the prices of a market, and the viewer's maximum bid for the name in its currency.
pub fn chart(market: &Comparables<'_>, bid: Option<Amount>) -> Markup {
    let prices = || market.sales.iter().map(|sale| sale.price).chain(bid);
    let (Some(least), Some(most)) = (prices().min(), prices().max()) else { return html! {} };
    if market.sales.len() < SALES_MIN {
        return html! {};
    }
    let ticks = ticks(least, most);
    let axis = Axis { low: log(ticks[0]), high: log(ticks[ticks.len() - 1]) };
    html! {
        // The label of the bid takes a line.
        svg.prices height=(if bid.is_some() { 100 } else { 80 }) role="img" aria-label=(in_words(market, bid)) {
            @if let Some(range) = market.range {
                @let (low, high) = (axis.at(range.low), axis.at(range.high));
                rect.half x=(percent(low)) y="22" width=(percent(high - low)) height="28" rx="4" {}
                @for (from, to) in [(axis.at(range.lowest), low), (high, axis.at(range.highest))] {
                    line.wide x1=(percent(from)) x2=(percent(to)) y1="36" y2="36" {}
                }
                (label(low, high, 15, "range", &format!("{} to {}", range.low, range.high)))
            }
            line.axis x1="0" x2="100%" y1="58" y2="58" {}
            @for tick in &ticks {
                text.tick x=(percent(axis.at(*tick))) y="74" text-anchor="middle" { (tick) }
            }
            @for sale in &market.sales { circle cx=(percent(axis.at(sale.price))) cy="36" r="4" {} }
            @if let Some(bid) = bid {
                @let at = axis.at(bid);
                line.bid x1=(percent(at)) x2=(percent(at)) y1="18" y2="58" {}
                (label(at, at, 92, "bid", &format!("your maximum, {bid}")))
            }
        }
    }
}

/// Says what the chart shows.
fn in_words(market: &Comparables<'_>, bid: Option<Amount>) -> String {
    let prices = || market.sales.iter().map(|sale| sale.price);
    let (least, most) = (prices().min().unwrap_or(Amount(0)), prices().max().unwrap_or(Amount(0)));
    let mut words = format!(
        "Prices of {} sales on a logarithmic axis, from {least} to {most} {}.",
        market.sales.len(),
        market.currency.as_str()
    );
    if let Some(range) = market.range {
        words.push_str(&format!(" The middle half lies from {} to {}.", range.low, range.high));
    }
    if let Some(bid) = bid {
        words.push_str(&format!(" Your maximum bid is {bid}."));
    }
    words
}

/// Renders text over the part of the axis from `low` to `high`, so that it stays within the chart.
fn label(low: f64, high: f64, y: u32, class: &str, text: &str) -> Markup {
    let (x, anchor) = match (low + high) / 2.0 {
        ..30.0 => (low, "start"),
        70.0.. => (high, "end"),
        middle => (middle, "middle"),
    };
    html! { text class=(class) x=(percent(x)) y=(y) text-anchor=(anchor) { (text) } }
}

struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    /// Returns the place of a price in percent. Rounded bounds may lie outside of the prices.
    fn at(&self, price: Amount) -> f64 {
        let share = (log(price) - self.low) / (self.high - self.low);
        MARGIN + share.clamp(0.0, 1.0) * (100.0 - 2.0 * MARGIN)
    }
}

fn log(price: Amount) -> f64 {
    (price.0.max(1) as f64).ln()
}

fn percent(place: f64) -> String {
    format!("{place:.2}%")
}

/// Returns the labels of an axis that holds all prices: one, two and five times powers of ten, or only some of them.
fn ticks(least: Amount, most: Amount) -> Vec<Amount> {
    let powers = || (0..18).map(|power| 10_u64.pow(power));
    let all: Vec<u64> = powers().flat_map(|power| [power, 2 * power, 5 * power]).collect();
    let from = all.partition_point(|tick| *tick <= least.0).saturating_sub(1);
    let to = all.partition_point(|tick| *tick < most.0).clamp(from + 1, all.len() - 1);
    let shown = &all[from..=to];
    // The steps keep both ends, so that no price lies beyond a label.
    let step = (1..).find(|step| {
        let count = (shown.len() - 1).div_ceil(*step) + 1;
        count <= TICKS_MAX
    });
    let step = step.unwrap_or(1);
    let to = from + (shown.len() - 1).div_ceil(step) * step;
    (from..=to).step_by(step).map(|at| Amount(all[at.min(all.len() - 1)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_has_few_labels_that_enclose_all_prices() {
        let words = |least: u64, most: u64| {
            let ticks = ticks(Amount(least), Amount(most));
            ticks.iter().map(Amount::to_string).collect::<Vec<_>>().join(" ")
        };
        for (least, most, labels) in [
            (9_500, 60_000, "50 100 200 500 1,000"),
            (10_000, 10_000, "100 200"),
            (10_000, 200_000, "100 200 500 1,000 2,000"),
            (9_900, 230_000, "50 200 1,000 5,000"),
            (100, 100_000_000, "1 20 500 10,000 200,000 5,000,000"),
        ] {
            assert_eq!(words(least, most), labels, "{least} {most}");
        }
    }

    #[test]
    fn places_are_logarithmic_and_within_the_axis() {
        let axis = Axis { low: log(Amount(10_000)), high: log(Amount(1_000_000)) };
        for (cents, place) in
            [(10_000, "7.00%"), (100_000, "50.00%"), (1_000_000, "93.00%"), (5, "7.00%")]
        {
            assert_eq!(percent(axis.at(Amount(cents))), place, "{cents}");
        }
    }
}
