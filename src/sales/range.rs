//! The range of the prices of comparable sales.

use serde::Serialize;
use utoipa::ToSchema;

use crate::amount::Amount;
use crate::likeness::Shape;

/// Minimum number of comparable sales of a range.
pub const SALES_MIN: usize = 5;

/// Prices between which the middle half and the middle 80 % of comparable sales lie by weight, rounded to two
/// digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = PriceRange)]
pub struct Range {
    /// A quarter of the sales are below.
    #[schema(value_type = f64)]
    pub low: Amount,
    /// A quarter of the sales are above.
    #[schema(value_type = f64)]
    pub high: Amount,
    /// A tenth of the sales are below.
    #[schema(value_type = f64)]
    pub lowest: Amount,
    /// A tenth of the sales are above.
    #[schema(value_type = f64)]
    pub highest: Amount,
    /// For back-tests only: a single figure would be taken for the price of the name.
    #[serde(skip)]
    #[schema(ignore)]
    pub(crate) middle: Amount,
}

/// Reason why comparable sales have no range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoRange {
    #[error("{0} similar sales; a range needs {SALES_MIN}")]
    TooFew(usize),
    #[error(
        "no range for names of two words: their prices depend on what the words mean together, which these sales do \
         not tell"
    )]
    TwoWords,
    #[error(
        "no range for four letters: their prices depend on the letters, which these sales do not tell"
    )]
    FourLetters,
}

impl Range {
    /// Returns the range of sales, each a price and a weight, for a name of this shape.
    pub(crate) fn of(shape: Shape, sales: &[(Amount, f64)]) -> Result<Range, NoRange> {
        match shape {
            _ if sales.len() < SALES_MIN => return Err(NoRange::TooFew(sales.len())),
            Shape::Words(2) => return Err(NoRange::TwoWords),
            Shape::Letters(4) => return Err(NoRange::FourLetters),
            _ => {}
        }
        let mut sales = sales.to_vec();
        // A stable sort: equal prices remain in the order of their weights.
        sales.sort_by_key(|(price, _)| *price);
        let point = |share: f64| point(&sales, share).rounded();
        let [lowest, low, middle, high, highest] = [0.1, 0.25, 0.5, 0.75, 0.9].map(point);
        Ok(Range { low, high, lowest, highest, middle })
    }
}

/// Returns the price below which this share of the weight lies. Each sale stands for the middle of its weight;
/// between two sales, the logarithm of the price is interpolated.
fn point(sales: &[(Amount, f64)], share: f64) -> Amount {
    let total: f64 = sales.iter().map(|(_, weight)| weight).sum();
    let (mut below, mut before) = (0.0, None);
    for (price, weight) in sales {
        let at = (below + weight / 2.0) / total;
        if at >= share {
            let Some((lower, start)) = before.filter(|(lower, _)| lower != price) else {
                return *price;
            };
            return between(lower, *price, (share - start) / (at - start));
        }
        below += weight;
        before = Some((*price, at));
    }
    before.map_or(Amount(0), |(price, _)| price)
}

fn between(low: Amount, high: Amount, share: f64) -> Amount {
    let (low, high) = ((low.0 as f64).ln(), (high.0 as f64).ln());
    Amount((low + (high - low) * share).exp().round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dollars(prices: &[(u64, f64)]) -> Vec<(Amount, f64)> {
        prices.iter().map(|(price, weight)| (Amount(price * 100), *weight)).collect()
    }

    #[test]
    fn fewer_than_five_sales_and_shapes_without_pattern_have_no_range() {
        let sales = dollars(&[(100, 1.0), (200, 1.0), (300, 1.0), (400, 1.0), (500, 1.0)]);
        assert_eq!(Range::of(Shape::Words(1), &sales[..4]), Err(NoRange::TooFew(4)));
        assert_eq!(Range::of(Shape::Words(2), &sales), Err(NoRange::TwoWords));
        assert_eq!(Range::of(Shape::Letters(4), &sales), Err(NoRange::FourLetters));
        assert!(Range::of(Shape::Letters(3), &sales).is_ok());
        assert!(Range::of(Shape::Words(1), &sales).is_ok());
    }

    #[test]
    fn points_follow_the_weights() {
        let equal = dollars(&[(500, 1.0), (100, 1.0), (400, 1.0), (200, 1.0), (300, 1.0)]);
        let range = Range::of(Shape::Words(1), &equal).expect("a range");
        // Positions .1, .3, .5, .7 and .9; a quarter lies between 100 and 200, at three quarters of the way.
        let expected = [100, 168, 300, 418, 500].map(|price| Amount(price * 100).rounded());
        let Range { lowest, low, middle, high, highest } = range;
        assert_eq!([lowest, low, middle, high, highest], expected);
        let heavy = dollars(&[(100, 100.0), (900, 1.0), (900, 1.0), (900, 1.0), (900, 1.0)]);
        let range = Range::of(Shape::Words(1), &heavy).expect("a range");
        // Half of the weight lies just above the position of the heavy sale, .481.
        assert_eq!((range.low, range.middle), (Amount(10_000), Amount(11_000)));
        let same = dollars(&[(125, 1.0); 7]);
        let range = Range::of(Shape::Words(1), &same).expect("a range");
        assert_eq!((range.lowest, range.highest), (Amount(13_000), Amount(13_000)));
    }
}
