//! Comparable sales: files of sales come in, and for a name, the sales of similar names go out, with the range in
//! which half of them lie and a back-test of such ranges (`data/docs/facts.md`). Pure: reads no clock.
//!
//! `read` takes sales from a file of facts. [`Sales`] keeps the markets apart, each a channel and a currency
//! (`market`). `likeness` weighs a sale by the traits of its name and by its age, `range` reduces the heaviest sales
//! to a range, and `backtest` says how often the ranges of a market held.

mod amount;
mod backtest;
mod channel;
mod likeness;
mod market;
mod range;
mod read;

#[cfg(test)]
mod tests;

use dropdex_facts as facts;
use dropdex_scorer as scorer;
use dropdex_vocab as vocab;

pub use self::amount::Amount;
pub use self::backtest::{Backtest, CHECKED_MIN};
pub use self::channel::Channel;
pub use self::likeness::Likeness;
pub use self::market::{Comparable, Comparables, Market, SHOWN_MAX, Sales};
pub use self::range::{NoRange, Range, SALES_MIN};
pub use self::read::{Sale, SalesError, SalesFile, SalesReport};
