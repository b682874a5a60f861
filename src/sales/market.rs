//! Sales by market, and the comparable ones of a name.

use std::collections::{BTreeMap, HashMap};

use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use crate::amount::Amount;
use crate::backtest::Backtest;
use crate::channel::Channel;
use crate::likeness::{Likeness, Shape, SuffixClass, freshness};
use crate::range::{NoRange, Range};
use crate::read::Sale;
use crate::vocab::day::Day;
use crate::vocab::money::Currency;
use crate::vocab::name::DomainName;

/// Maximum comparable sales of a name.
pub const SHOWN_MAX: usize = 25;
/// Sales of this weight or less are not comparable.
const WEIGHT_MIN: f64 = 0.02;
/// Days within which the same name at the same price is the same sale, reported twice.
const REPEAT_DAYS: i32 = 60;
/// Share of the sales of a market, the newest, that a back-test compares with earlier ones: 30 %.
const TESTED_PERCENT: usize = 30;
/// Maximum sales that a back-test compares: the time it takes grows with the square of their number.
const TESTED_MAX: usize = 1_000;

/// Sales of one channel in one currency.
#[derive(Debug)]
pub struct Market {
    pub channel: Channel,
    pub currency: Currency,
    /// In the order of days, then of names and prices.
    sales: Vec<Sale>,
    /// Positions of the sales of names that may be compared, in ascending order.
    by_kin: BTreeMap<(SuffixClass, Shape, bool), Vec<usize>>,
    pub backtest: Backtest,
}

/// The sales of all markets.
#[derive(Debug, Default)]
pub struct Sales {
    /// By channel and currency.
    pub markets: Vec<Market>,
    /// Sales that were reported twice and count once.
    pub repeats: u64,
}

/// A sale of a name that resembles another one.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = ComparableSale)]
pub struct Comparable<'a> {
    #[schema(value_type = String)]
    pub domain: &'a DomainName,
    #[schema(value_type = f64)]
    pub price: Amount,
    #[schema(value_type = String, format = Date)]
    pub date: Day,
    /// As the file names it; `null` if it names none.
    #[schema(required)]
    pub venue: Option<&'a str>,
    /// How the name resembles the other one.
    pub reasons: Vec<String>,
}

/// Sales in one channel and currency of names that resemble a name. Not an appraisal: only names that were sold
/// are listed.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Comparables<'a> {
    pub channel: Channel,
    /// ISO 4217 code of the prices.
    #[schema(value_type = String)]
    pub currency: Currency,
    /// Range, number and years of the sales, and how many names fall outside of such ranges, in words; without a
    /// range, the reason.
    pub summary: String,
    /// Number of `sales`.
    #[schema(value_type = u32)]
    pub count: usize,
    /// `null` if the sales do not support one; `reason` says why.
    #[schema(required)]
    pub range: Option<Range>,
    #[serde(serialize_with = "in_words")]
    #[schema(value_type = Option<String>, required)]
    pub reason: Option<NoRange>,
    /// The most similar ones, at most 25.
    pub sales: Vec<Comparable<'a>>,
    pub backtest: &'a Backtest,
}

fn in_words<S: Serializer>(reason: &Option<NoRange>, serializer: S) -> Result<S::Ok, S::Error> {
    reason.as_ref().map(ToString::to_string).serialize(serializer)
}

impl Sales {
    /// Sorts sales into markets, drops those reported twice, and tests the ranges of each market.
    pub fn new(mut sales: Vec<Sale>) -> Sales {
        // Of a sale that is reported twice on one day, the report with a known channel counts.
        sales.sort_by_cached_key(|it| {
            let (name, currency) = (it.name().clone(), it.currency.as_str());
            (it.day, name, it.price, it.channel, currency, it.venue.clone())
        });
        let mut last: HashMap<(DomainName, Amount, &'static str), Day> = HashMap::new();
        let all = sales.len();
        sales.retain(|sale| {
            let key = (sale.name().clone(), sale.price, sale.currency.as_str());
            let is_repeat = |day: &Day| sale.day.days_since(*day) <= REPEAT_DAYS;
            let repeats = last.get(&key).is_some_and(is_repeat);
            if !repeats {
                last.insert(key, sale.day);
            }
            !repeats
        });
        let repeats = (all - sales.len()) as u64;
        let mut markets: BTreeMap<_, Vec<Sale>> = BTreeMap::new();
        for sale in sales {
            markets.entry((sale.channel, sale.currency.as_str())).or_default().push(sale);
        }
        Sales { markets: markets.into_values().filter_map(Market::new).collect(), repeats }
    }

    /// Returns the comparable sales before a day, by market; markets without any are left out.
    pub fn comparables(&self, subject: &Likeness, before: Day) -> Vec<Comparables<'_>> {
        let found = self.markets.iter().map(|market| market.comparables(subject, before));
        found.filter(|found| !found.sales.is_empty()).collect()
    }
}

impl Market {
    /// Creates the market of sorted sales; `None` without any.
    fn new(sales: Vec<Sale>) -> Option<Market> {
        let Sale { channel, currency, .. } = *sales.first()?;
        let mut by_kin: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (at, sale) in sales.iter().enumerate() {
            by_kin.entry(sale.likeness.kin()).or_default().push(at);
        }
        let backtest = Backtest::default();
        let mut market = Market { channel, currency, sales, by_kin, backtest };
        let tested = (market.sales.len() * TESTED_PERCENT / 100).min(TESTED_MAX);
        let results = market.sales[market.sales.len() - tested..].iter().map(|sale| {
            let best = market.best(&sale.likeness, sale.day);
            (sale.price, market.range(&sale.likeness, &best).ok())
        });
        market.backtest = Backtest::new(results);
        Some(market)
    }

    /// Returns the number of sales.
    pub fn len(&self) -> usize {
        self.sales.len()
    }

    /// Returns true without sales, which no market is.
    pub fn is_empty(&self) -> bool {
        self.sales.is_empty()
    }

    /// Returns the comparable sales before a day, the heaviest first.
    pub fn comparables(&self, subject: &Likeness, before: Day) -> Comparables<'_> {
        let best = self.best(subject, before);
        let (range, reason) = match self.range(subject, &best) {
            Ok(range) => (Some(range), None),
            Err(reason) => (None, Some(reason)),
        };
        let comparable = |&(at, _): &(usize, f64)| {
            let sale = &self.sales[at];
            Comparable {
                domain: sale.name(),
                price: sale.price,
                date: sale.day,
                venue: sale.venue.as_deref(),
                reasons: subject.reasons(&sale.likeness),
            }
        };
        let sales: Vec<_> = best.iter().map(comparable).collect();
        let Market { channel, currency, ref backtest, .. } = *self;
        let (summary, count) = (String::new(), sales.len());
        let found =
            Comparables { channel, currency, summary, count, range, reason, sales, backtest };
        Comparables { summary: found.sentence(), ..found }
    }

    fn range(&self, subject: &Likeness, best: &[(usize, f64)]) -> Result<Range, NoRange> {
        let prices: Vec<_> =
            best.iter().map(|&(at, weight)| (self.sales[at].price, weight)).collect();
        Range::of(subject.shape, &prices)
    }

    /// Returns positions and weights of the heaviest sales before a day. Of equal weights, the newer sale comes
    /// first, then the one of the later name.
    fn best(&self, subject: &Likeness, before: Day) -> Vec<(usize, f64)> {
        let kin = self.by_kin.get(&subject.kin()).map_or(&[][..], Vec::as_slice);
        let earlier = kin.partition_point(|&at| self.sales[at].day < before);
        let weighed = kin[..earlier].iter().filter_map(|&at| {
            let sale = &self.sales[at];
            let weight = subject.weight(&sale.likeness);
            // Freshness is at most 1, and costs more than all other factors.
            let weight = Some(weight).filter(|weight| *weight > WEIGHT_MIN)?
                * freshness(before.days_since(sale.day));
            (weight > WEIGHT_MIN).then_some((at, weight))
        });
        let mut best: Vec<_> = weighed.collect();
        let heavier = |one: &(usize, f64), two: &(usize, f64)| {
            two.1.total_cmp(&one.1).then(two.0.cmp(&one.0))
        };
        // Sorting all of them would take most of the time of a back-test.
        if best.len() > SHOWN_MAX {
            best.select_nth_unstable_by(SHOWN_MAX, heavier);
        }
        best.truncate(SHOWN_MAX);
        best.sort_by(heavier);
        best
    }
}

impl Comparables<'_> {
    /// Says where the prices lie, and how often that holds; the reason instead if there is no range.
    fn sentence(&self) -> String {
        let count = self.count;
        let channel = match self.channel {
            Channel::Auction => " at auction",
            Channel::Retail => " in retail",
            Channel::Unknown => "",
        };
        let sales = if count == 1 { "sale" } else { "sales" };
        match (self.range, self.reason) {
            (Some(Range { low, high, .. }), _) => {
                let outside = match self.backtest.outside() {
                    Some(outside) => format!(" {outside} outside."),
                    None => " Too few sales to say how often a name falls outside.".to_owned(),
                };
                let (currency, years) = (self.currency.as_str(), self.years());
                format!(
                    "Similar names sold{channel} for {low} to {high} {currency} (middle half of {count} {sales}, \
                     {years}).{outside}"
                )
            }
            (None, reason) => {
                let reason = reason.map_or(String::new(), |reason| format!(": {reason}"));
                format!("{count} {sales} of similar names{channel}, {}{reason}.", self.years())
            }
        }
    }

    /// Returns the years of the sales: `2023-26`.
    fn years(&self) -> String {
        let years = self.sales.iter().map(|sale| sale.date.date().format("%Y").to_string());
        let (first, last) = (years.clone().min(), years.max());
        let (first, last) = (first.unwrap_or_default(), last.unwrap_or_default());
        match first == last {
            true => first,
            false if first[..2] == last[..2] => format!("{first}-{}", &last[2..]),
            false => format!("{first}-{last}"),
        }
    }
}
