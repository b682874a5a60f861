//! Cost and revenue of claims, in total and by venue, TLD, score, alert rule, registrar or status.

use std::collections::BTreeSet;
use std::str::FromStr;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::accounts::{Claim, MoneySettings, Price, UserData};
use crate::components::upper_first;
use crate::index::query::outcome_tables::ScoreBand;
use crate::vocab::claim::ClaimStatus;
use crate::vocab::dqs::Dqs;
use crate::vocab::expected_taken::ExpectedTaken;
use crate::vocab::ids::{ClaimId, RuleId};
use crate::vocab::money::{Amount, Currency};
use crate::vocab::name::{DomainName, to_unicode};
use crate::vocab::outcome::{ReturnTime, Share};

/// Maximum number of groups; the last one is the sum of all others.
const GROUPS_MAX: usize = 30;

/// Grouping of claims.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupBy {
    /// Venue of the bid; for claims without one, the registrar.
    #[default]
    Venue,
    Tld,
    /// The name's current score, in tens.
    Score,
    /// How soon the name was registered after its latest drop, by whomever ([`HowSoon`]).
    Taken,
    /// Percentage of names like it that were expected to be registered again, in tens.
    Expected,
    Rule,
    Registrar,
    Status,
}

impl GroupBy {
    pub const ALL: [GroupBy; 8] = [
        GroupBy::Venue,
        GroupBy::Tld,
        GroupBy::Score,
        GroupBy::Taken,
        GroupBy::Expected,
        GroupBy::Rule,
        GroupBy::Registrar,
        GroupBy::Status,
    ];

    /// Value in the query string.
    pub fn as_str(self) -> &'static str {
        match self {
            GroupBy::Venue => "venue",
            GroupBy::Tld => "tld",
            GroupBy::Score => "score",
            GroupBy::Taken => "taken",
            GroupBy::Expected => "expected",
            GroupBy::Rule => "rule",
            GroupBy::Registrar => "registrar",
            GroupBy::Status => "status",
        }
    }

    /// Display name.
    pub fn label(self) -> &'static str {
        match self {
            GroupBy::Venue => "Venue",
            GroupBy::Tld => "TLD",
            GroupBy::Score => "Score",
            GroupBy::Taken => "How soon taken",
            GroupBy::Expected => "Expectation",
            GroupBy::Rule => "Alert rule",
            GroupBy::Registrar => "Registrar",
            GroupBy::Status => "Status",
        }
    }
}

/// An unknown grouping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be one of venue, tld, score, taken, expected, rule, registrar, status")]
pub struct GroupByError;

impl FromStr for GroupBy {
    type Err = GroupByError;

    fn from_str(text: &str) -> Result<GroupBy, GroupByError> {
        GroupBy::ALL.into_iter().find(|by| by.as_str() == text).ok_or(GroupByError)
    }
}

/// Sums of claims in minor units of the account's currency. Missing prices count as 0. A bid becomes a cost only
/// when the name is won, and an unsold name is inventory, not a loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    pub claims: usize,
    /// Number of names caught, registered or sold.
    pub won: usize,
    pub lost: usize,
    pub sold: usize,
    /// Number of open bids.
    pub open: usize,
    /// Sum of the open bids.
    pub open_bids: u128,
    /// Cost of the names held.
    pub inventory: u128,
    /// Cost of the sold names, with the commissions of their sales.
    pub cost_of_sold: u128,
    pub revenue: u128,
    /// Number of claims with an amount in a currency without a rate. None of their amounts are in the sums.
    pub unrated: usize,
}

/// The amounts of a claim that count in sums, in minor units of the account's currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    Open {
        bid: u128,
    },
    /// A bid that was lost, or that a newer claim for the name decided.
    Decided,
    Held {
        cost: u128,
    },
    Sold {
        cost: u128,
        revenue: u128,
    },
}

impl Counted {
    /// Returns the amounts of a claim; the error is a currency without a rate.
    pub fn of(claim: &Claim, is_open: bool, money: &MoneySettings) -> Result<Counted, Currency> {
        let convert = |amount: Option<Amount>| match amount {
            Some(amount) => money.convert(amount).ok_or(amount.currency()),
            None => Ok(0),
        };
        let cost = || convert(claim.amount(Price::Acquired));
        Ok(match claim.status {
            ClaimStatus::Attempted if is_open => {
                Counted::Open { bid: convert(claim.amount(Price::Bid))? }
            }
            ClaimStatus::Attempted | ClaimStatus::Lost => Counted::Decided,
            ClaimStatus::Caught | ClaimStatus::Registered => Counted::Held { cost: cost()? },
            ClaimStatus::Sold => Counted::Sold {
                cost: cost()? + convert(claim.commission())?,
                revenue: convert(claim.amount(Price::Resale))?,
            },
        })
    }
}

impl Sums {
    fn add(&mut self, claim: &Claim, is_open: bool, money: &MoneySettings) {
        self.claims += 1;
        self.open += usize::from(is_open);
        match claim.status {
            ClaimStatus::Attempted => {}
            ClaimStatus::Lost => self.lost += 1,
            ClaimStatus::Caught | ClaimStatus::Registered => self.won += 1,
            ClaimStatus::Sold => (self.won, self.sold) = (self.won + 1, self.sold + 1),
        }
        match Counted::of(claim, is_open, money) {
            Ok(Counted::Open { bid }) => self.open_bids += bid,
            Ok(Counted::Decided) => {}
            Ok(Counted::Held { cost }) => self.inventory += cost,
            Ok(Counted::Sold { cost, revenue }) => {
                self.cost_of_sold += cost;
                self.revenue += revenue;
            }
            Err(_) => self.unrated += 1,
        }
    }

    fn join(&mut self, other: &Sums) {
        self.claims += other.claims;
        self.won += other.won;
        self.lost += other.lost;
        self.sold += other.sold;
        self.open += other.open;
        self.open_bids += other.open_bids;
        self.inventory += other.inventory;
        self.cost_of_sold += other.cost_of_sold;
        self.revenue += other.revenue;
        self.unrated += other.unrated;
    }

    /// Number of names that were won and are not sold.
    pub fn held(&self) -> usize {
        self.won - self.sold
    }

    /// Revenue minus the cost of the sold names.
    pub fn profit(&self) -> i128 {
        difference(self.revenue, self.cost_of_sold)
    }

    /// Revenue as a multiple of the cost of the sold names, in hundredths. `None` without cost.
    pub fn multiple(&self) -> Option<u64> {
        let multiple = (self.revenue * 100).checked_div(self.cost_of_sold)?;
        Some(u64::try_from(multiple).unwrap_or(u64::MAX))
    }

    /// The share of decided claims that were won, with its interval.
    pub fn win_rate(&self) -> Option<Share> {
        Share::of(self.won as u64, (self.won + self.lost) as u64)
    }

    /// Percentage of decided claims that were won.
    pub fn won_percent(&self) -> Option<usize> {
        (self.won * 100).checked_div(self.won + self.lost)
    }
}

/// Returns revenue minus cost. Both are far below the limits of their types.
pub fn difference(revenue: u128, cost: u128) -> i128 {
    revenue as i128 - cost as i128
}

/// Sums of claims, in total and by group.
pub struct Summary {
    pub all: Sums,
    /// Number of claims of each status, regardless of the filter, in the order of
    /// [`ClaimStatus::ALL`].
    pub of_status: [usize; ClaimStatus::ALL.len()],
    pub by: GroupBy,
    /// Groups, those with the most decided bids first; the last may be the sum of all others.
    pub groups: Vec<(String, Sums)>,
    /// Currencies of amounts that are not in the sums, because the owner gave no rate.
    pub unrated: Vec<Currency>,
}

/// Facts of the data about the name of a claim.
pub trait KnownName {
    /// The current score.
    fn score(&self, name: &DomainName) -> Option<Dqs>;
    /// How soon the name was registered after its latest drop.
    fn taken(&self, name: &DomainName) -> Option<HowSoon>;
    /// The expectation for names like it.
    fn expected(&self, name: &DomainName) -> Option<ExpectedTaken>;
}

/// How soon a name was registered after its release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HowSoon {
    /// The registry describes the registration, and the hour of the release is known.
    Minute,
    Hour,
    /// Only days are known, or it took longer.
    Days(ReturnTime),
}

impl HowSoon {
    /// Returns `None` for longer than an hour.
    pub fn of_seconds(seconds: u64) -> Option<HowSoon> {
        match seconds {
            ..=60 => Some(HowSoon::Minute),
            61..=3_600 => Some(HowSoon::Hour),
            _ => None,
        }
    }
}

/// Identity of a group.
#[derive(PartialEq, Eq, Hash)]
enum GroupKey<'a> {
    Status(ClaimStatus),
    /// A venue or registrar.
    Text(&'a str),
    Tld(&'a str),
    /// A score in tens; `None` for names that are not in our data.
    Score(Option<ScoreBand>),
    /// `None` if no list shows a registration.
    Taken(Option<HowSoon>),
    /// Tens of percent; `None` for suffixes without a model.
    Expected(Option<u8>),
    Rule(RuleId),
    None,
}

impl Summary {
    /// Sums `claims` in total and by group.
    pub fn new<'a>(
        claims: impl Iterator<Item = &'a Claim>,
        by: GroupBy,
        owned: &'a UserData,
        known: &impl KnownName,
    ) -> Summary {
        let mut all = Sums::default();
        let mut groups: FxHashMap<GroupKey<'_>, (String, Sums)> = FxHashMap::default();
        let (money, open) = (owned.money(), open_bids(owned.claims()));
        let mut unrated = BTreeSet::new();
        for claim in claims {
            let is_open = open.contains(&claim.id);
            unrated.extend(Counted::of(claim, is_open, money).err());
            all.add(claim, is_open, money);
            let key = key(claim, by, known);
            let label = || (label(claim, &key, owned), Sums::default());
            let label = (!groups.contains_key(&key)).then(label);
            let group = groups.entry(key).or_insert_with(|| label.expect("made for a new group"));
            group.1.add(claim, is_open, money);
        }
        let mut of_status = [0; ClaimStatus::ALL.len()];
        owned.claims().for_each(|claim| of_status[claim.status as usize] += 1);
        let groups = sorted(groups.into_values().collect());
        Summary { all, of_status, by, groups, unrated: unrated.into_iter().collect() }
    }
}

/// Returns the bids that are open: those for whose name no newer claim was decided.
fn open_bids<'a>(newest_first: impl Iterator<Item = &'a Claim>) -> FxHashSet<ClaimId> {
    let (mut open, mut decided) = (FxHashSet::default(), FxHashSet::default());
    for claim in newest_first {
        if claim.status != ClaimStatus::Attempted {
            decided.insert(&claim.domain);
        } else if !decided.contains(&claim.domain) {
            open.insert(claim.id);
        }
    }
    open
}

fn key<'a>(claim: &'a Claim, by: GroupBy, known: &impl KnownName) -> GroupKey<'a> {
    let registrar = claim.registrar.as_deref();
    match by {
        GroupBy::Status => GroupKey::Status(claim.status),
        GroupBy::Registrar => registrar.map_or(GroupKey::None, GroupKey::Text),
        GroupBy::Venue => {
            claim.venue.as_deref().or(registrar).map_or(GroupKey::None, GroupKey::Text)
        }
        GroupBy::Tld => GroupKey::Tld(claim.domain.tld()),
        GroupBy::Score => GroupKey::Score(known.score(&claim.domain).map(ScoreBand::of)),
        GroupBy::Taken => GroupKey::Taken(known.taken(&claim.domain)),
        GroupBy::Expected => {
            let tens = |it: ExpectedTaken| (it.percent() / 10).min(9);
            GroupKey::Expected(known.expected(&claim.domain).map(tens))
        }
        GroupBy::Rule => {
            claim.alert_rule.as_ref().map_or(GroupKey::None, |rule| GroupKey::Rule(rule.id))
        }
    }
}

fn label(claim: &Claim, key: &GroupKey<'_>, owned: &UserData) -> String {
    match key {
        GroupKey::Status(status) => status_word(*status).to_owned(),
        GroupKey::Text(text) => (*text).to_owned(),
        GroupKey::Tld(tld) => format!(".{}", to_unicode(tld)),
        GroupKey::Score(Some(band)) => band.as_str().to_owned(),
        GroupKey::Score(None) => "Not in our data".to_owned(),
        GroupKey::Taken(time) => taken_word(*time),
        GroupKey::Expected(Some(9)) => "90-100 %".to_owned(),
        GroupKey::Expected(Some(tens)) => format!("{}-{} %", tens * 10, tens * 10 + 9),
        GroupKey::Expected(None) => "No expectation".to_owned(),
        GroupKey::Rule(id) => match (owned.rule(*id), &claim.alert_rule) {
            (Some(rule), _) => rule.name.to_string(),
            (None, Some(of)) => format!("{} (deleted)", of.name),
            (None, None) => "Deleted".to_owned(),
        },
        GroupKey::None => "None".to_owned(),
    }
}

fn taken_word(how_soon: Option<HowSoon>) -> String {
    let word = match how_soon {
        Some(HowSoon::Minute) => "Within a minute",
        Some(HowSoon::Hour) => "Within an hour",
        Some(HowSoon::Days(ReturnTime::Renewed)) => "Renewed by its holder",
        Some(HowSoon::Days(ReturnTime::Within(horizon))) => return upper_first(horizon.words()),
        Some(HowSoon::Days(ReturnTime::Later)) => "Later",
        Some(HowSoon::Days(ReturnTime::Undated)) => "On an unknown day",
        None => "Not seen taken",
    };
    word.to_owned()
}

/// Display name of a status.
pub fn status_word(status: ClaimStatus) -> &'static str {
    match status {
        ClaimStatus::Attempted => "Attempted",
        ClaimStatus::Caught => "Caught",
        ClaimStatus::Registered => "Registered",
        ClaimStatus::Lost => "Lost",
        ClaimStatus::Sold => "Sold",
    }
}

fn sorted(mut groups: Vec<(String, Sums)>) -> Vec<(String, Sums)> {
    let weight = |sums: &Sums| (sums.won + sums.lost, sums.revenue, sums.claims);
    groups.sort_by(|(name, a), (other, b)| weight(b).cmp(&weight(a)).then_with(|| name.cmp(other)));
    if groups.len() > GROUPS_MAX {
        let rest = groups.split_off(GROUPS_MAX - 1);
        let mut others = Sums::default();
        rest.iter().for_each(|(_, sums)| others.join(sums));
        groups.push((format!("{} others", rest.len()), others));
    }
    groups
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::accounts::Commission;
    use crate::vocab::money::{Percent, Rate};
    use crate::vocab::time::UnixMs;

    fn currency(code: &str) -> Currency {
        Currency::parse(code).expect("a currency")
    }

    fn claim(id: u64, domain: &str, status: ClaimStatus) -> Claim {
        let at: UnixMs = "2026-03-15T12:00:00Z".parse().expect("an instant");
        let (id, name) = (ClaimId::new(id), DomainName::parse(domain));
        let claim = Claim::new(id.expect("an id"), name.expect("a name"), status, at);
        Claim { sold_at: (status == ClaimStatus::Sold).then_some(at), ..claim }
    }

    fn some_amount() -> impl Strategy<Value = Option<Amount>> {
        let code = proptest::sample::select(vec!["USD", "EUR", "JPY", "KWD", "GBP"]);
        proptest::option::of((code, 0..10_000_000_000u64))
            .prop_map(|it| it.and_then(|(code, minor)| Amount::new(currency(code), minor)))
    }

    fn some_claim() -> impl Strategy<Value = (Claim, usize)> {
        let status = proptest::sample::select(ClaimStatus::ALL.to_vec());
        let amounts = (some_amount(), some_amount(), some_amount(), 0..=10_000u16);
        (1..1_000u64, status, amounts, 0..4usize).prop_map(|(id, status, amounts, group)| {
            let (bid, cost, sale, percent) = amounts;
            let mut claim = claim(id, "a.com", status);
            claim.set_amount(Price::Bid, bid);
            claim.set_amount(Price::Acquired, cost);
            if status == ClaimStatus::Sold {
                claim.set_amount(Price::Resale, sale);
                let mut terms = claim.terms.take().unwrap_or_default();
                terms.commission = Percent::try_from(percent).ok().map(Commission::Percent);
                claim.set_terms(*terms);
            }
            (claim, group)
        })
    }

    proptest! {
        #[test]
        fn sums_are_the_sums_of_their_groups_and_rows(
            claims in proptest::collection::vec(some_claim(), 0..60),
            units in 1..1_000_000_000u64,
        ) {
            // There is no rate for GBP.
            let rate = |code, units| (currency(code), Rate::try_from(units).expect("a rate"));
            let rates = vec![rate("EUR", units), rate("JPY", units / 150 + 1), rate("KWD", units * 3)];
            let money = MoneySettings { rates, ..MoneySettings::default() };
            let (mut all, mut groups) = (Sums::default(), vec![Sums::default(); 4]);
            let (mut profit, mut unrated) = (0, 0);
            for (claim, group) in &claims {
                let is_open = claim.status == ClaimStatus::Attempted;
                all.add(claim, is_open, &money);
                groups[*group].add(claim, is_open, &money);
                match Counted::of(claim, is_open, &money) {
                    Ok(Counted::Sold { cost, revenue }) => profit += difference(revenue, cost),
                    Ok(_) => {}
                    Err(missing) => {
                        prop_assert_eq!(missing, currency("GBP"));
                        unrated += 1;
                    }
                }
            }
            let mut joined = Sums::default();
            groups.iter().for_each(|group| joined.join(group));
            prop_assert_eq!(joined, all);
            prop_assert_eq!((all.profit(), all.unrated), (profit, unrated));
            prop_assert_eq!(all.claims, claims.len());
        }
    }

    #[test]
    fn newer_results_close_bids_on_their_name() {
        use ClaimStatus::{Attempted, Caught, Lost, Sold};
        let newest_first = [
            (1, "again.com", Attempted),
            (2, "again.com", Sold),
            (3, "again.com", Attempted),
            (4, "lost.com", Lost),
            (5, "lost.com", Attempted),
            (6, "other.com", Attempted),
            (7, "held.com", Caught),
        ];
        let claims = newest_first.map(|(id, domain, status)| claim(id, domain, status));
        let open = open_bids(claims.iter());
        let mut open: Vec<_> = open.iter().map(|id| id.get()).collect();
        open.sort_unstable();
        assert_eq!(open, [1, 6]);
    }

    #[test]
    fn the_return_covers_sold_names_only() {
        let sums = Sums {
            claims: 3,
            won: 2,
            lost: 1,
            sold: 1,
            inventory: 20_00,
            cost_of_sold: 10_00,
            revenue: 25_00,
            ..Sums::default()
        };
        assert_eq!((sums.profit(), sums.multiple(), sums.held()), (15_00, Some(250), 1));
        assert_eq!(sums.won_percent(), Some(66));
        let none = Sums::default();
        assert_eq!((none.profit(), none.multiple(), none.won_percent()), (0, None, None));
        let most = Sums { cost_of_sold: 1, revenue: 100_000 * 100_000_000_000, ..none };
        assert_eq!(most.multiple(), Some(1_000_000_000_000_000_000));
    }

    #[test]
    fn a_minute_and_an_hour_end_with_their_last_second() {
        for (seconds, how_soon) in [
            (0, Some(HowSoon::Minute)),
            (60, Some(HowSoon::Minute)),
            (61, Some(HowSoon::Hour)),
            (3_600, Some(HowSoon::Hour)),
            (3_601, None),
        ] {
            assert_eq!(HowSoon::of_seconds(seconds), how_soon, "{seconds}");
        }
    }

    #[test]
    fn small_groups_are_summed_as_others() {
        let group = |at: u128| (at.to_string(), Sums { claims: 1, revenue: at, ..Sums::default() });
        let groups = sorted((0..40).map(group).collect());
        assert_eq!(groups.len(), GROUPS_MAX);
        assert_eq!(groups[0].0, "39");
        let (name, others) = groups.last().expect("there are some");
        assert_eq!(
            (name.as_str(), others.claims, others.revenue),
            ("11 others", 11, (0..11).sum())
        );
    }
}
