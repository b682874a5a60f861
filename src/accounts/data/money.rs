//! The currency of an account, and what other currencies are worth in it.

use crate::data::fields::row;
use crate::vocab::money::{Amount, Currency, Rate};

/// The currency of the sums of an account, and the rates that its owner gave. Amounts are kept as they were
/// entered, and converted one by one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoneySettings {
    pub currency: Currency,
    /// The worth of one unit of other currencies, in order of their codes.
    pub rates: Vec<(Currency, Rate)>,
}

row!(MoneySettings { 1 currency } optional { 2 rates });

impl Default for MoneySettings {
    fn default() -> MoneySettings {
        MoneySettings { currency: Currency::USD, rates: Vec::new() }
    }
}

impl MoneySettings {
    /// Returns an amount in minor units of the account's currency; `None` without a rate.
    pub fn convert(&self, amount: Amount) -> Option<u128> {
        if amount.currency() == self.currency {
            return Some(amount.minor().into());
        }
        let rate = self.rates.iter().find(|(currency, _)| *currency == amount.currency());
        rate.map(|(_, rate)| rate.convert(amount, self.currency))
    }
}
