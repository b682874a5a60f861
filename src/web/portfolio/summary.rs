//! Cost and revenue of claims, in total and by status, registrar, TLD or alert rule.

use std::str::FromStr;

use rustc_hash::FxHashMap;

use crate::accounts::{Claim, UserData};
use crate::vocab::claim::ClaimStatus;
use crate::vocab::ids::RuleId;
use crate::vocab::money::Usd;
use crate::vocab::name::to_unicode;

/// Maximum groups. The last one sums all others.
const GROUPS_MAX: usize = 30;

/// Grouping of claims.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupBy {
    #[default]
    Status,
    Registrar,
    Tld,
    Rule,
}

impl GroupBy {
    pub const ALL: [GroupBy; 4] =
        [GroupBy::Status, GroupBy::Registrar, GroupBy::Tld, GroupBy::Rule];

    /// Value in the query string.
    pub fn as_str(self) -> &'static str {
        match self {
            GroupBy::Status => "status",
            GroupBy::Registrar => "registrar",
            GroupBy::Tld => "tld",
            GroupBy::Rule => "rule",
        }
    }

    /// Display name.
    pub fn label(self) -> &'static str {
        match self {
            GroupBy::Status => "Status",
            GroupBy::Registrar => "Registrar",
            GroupBy::Tld => "TLD",
            GroupBy::Rule => "Alert rule",
        }
    }
}

/// An unknown grouping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be one of status, registrar, tld, rule")]
pub struct GroupByError;

impl FromStr for GroupBy {
    type Err = GroupByError;

    fn from_str(text: &str) -> Result<GroupBy, GroupByError> {
        GroupBy::ALL.into_iter().find(|by| by.as_str() == text).ok_or(GroupByError)
    }
}

/// Sums of claims in cents. Missing prices count as 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    pub claims: usize,
    /// Caught, registered or sold.
    pub won: usize,
    pub lost: usize,
    pub sold: usize,
    pub cost: u64,
    /// Cost of the sold names.
    pub cost_of_sold: u64,
    pub revenue: u64,
}

impl Sums {
    fn add(&mut self, claim: &Claim) {
        let cents = |price: Option<Usd>| price.map_or(0, Usd::cents);
        let cost = cents(claim.acquired_price);
        self.claims += 1;
        self.cost += cost;
        self.revenue += cents(claim.resale_price);
        match claim.status {
            ClaimStatus::Attempted => {}
            ClaimStatus::Lost => self.lost += 1,
            ClaimStatus::Caught | ClaimStatus::Registered => self.won += 1,
            ClaimStatus::Sold => {
                (self.won, self.sold) = (self.won + 1, self.sold + 1);
                self.cost_of_sold += cost;
            }
        }
    }

    fn join(&mut self, other: &Sums) {
        self.claims += other.claims;
        self.won += other.won;
        self.lost += other.lost;
        self.sold += other.sold;
        self.cost += other.cost;
        self.cost_of_sold += other.cost_of_sold;
        self.revenue += other.revenue;
    }

    /// Revenue minus all costs.
    pub fn profit(&self) -> i64 {
        self.revenue as i64 - self.cost as i64
    }

    /// Profit on sold names relative to their cost, in tenths of a percent. `None` without cost.
    pub fn return_permille(&self) -> Option<i64> {
        let gain = i128::from(self.revenue) - i128::from(self.cost_of_sold);
        let permille = (gain * 1_000).checked_div(i128::from(self.cost_of_sold))?;
        Some(i64::try_from(permille).unwrap_or(i64::MAX))
    }

    /// Percentage won of all decided claims.
    pub fn won_percent(&self) -> Option<usize> {
        (self.won * 100).checked_div(self.won + self.lost)
    }
}

/// Sums of claims and of their groups.
pub struct Summary {
    pub all: Sums,
    /// Claims of each status, regardless of the filter, in the order of [`ClaimStatus::ALL`].
    pub of_status: [usize; ClaimStatus::ALL.len()],
    pub by: GroupBy,
    /// Sorted by money; the last may sum all others.
    pub groups: Vec<(String, Sums)>,
}

/// Identity of a group.
#[derive(PartialEq, Eq, Hash)]
enum Key<'a> {
    Status(ClaimStatus),
    /// A registrar or TLD.
    Text(&'a str),
    Rule(RuleId),
    None,
}

impl Summary {
    /// Sums `claims` in total and by group.
    pub fn new<'a>(
        claims: impl Iterator<Item = &'a Claim>,
        by: GroupBy,
        owned: &'a UserData,
    ) -> Summary {
        let mut all = Sums::default();
        let mut groups: FxHashMap<Key<'_>, (String, Sums)> = FxHashMap::default();
        for claim in claims {
            all.add(claim);
            let group = groups
                .entry(key(claim, by))
                .or_insert_with(|| (label(claim, by, owned), Sums::default()));
            group.1.add(claim);
        }
        let mut of_status = [0; ClaimStatus::ALL.len()];
        owned.claims().for_each(|claim| of_status[claim.status as usize] += 1);
        Summary { all, of_status, by, groups: sorted(groups.into_values().collect()) }
    }
}

fn key(claim: &Claim, by: GroupBy) -> Key<'_> {
    match by {
        GroupBy::Status => Key::Status(claim.status),
        GroupBy::Registrar => claim.registrar.as_deref().map_or(Key::None, Key::Text),
        GroupBy::Tld => Key::Text(claim.domain.tld()),
        GroupBy::Rule => claim.alert_rule.as_ref().map_or(Key::None, |rule| Key::Rule(rule.id)),
    }
}

fn label(claim: &Claim, by: GroupBy, owned: &UserData) -> String {
    match by {
        GroupBy::Status => status_word(claim.status).to_owned(),
        GroupBy::Registrar => claim.registrar.as_deref().unwrap_or("No registrar").to_owned(),
        GroupBy::Tld => format!(".{}", to_unicode(claim.domain.tld())),
        GroupBy::Rule => match &claim.alert_rule {
            None => "No alert rule".to_owned(),
            Some(of) => match owned.rule(of.id) {
                Some(rule) => rule.name.to_string(),
                None => format!("{} (deleted)", of.name),
            },
        },
    }
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
    let weight = |sums: &Sums| (sums.cost + sums.revenue, sums.claims);
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
    use super::*;

    #[test]
    fn the_return_covers_sold_names_only() {
        let sums = Sums {
            claims: 3,
            won: 2,
            lost: 1,
            sold: 1,
            cost: 30_00,
            cost_of_sold: 10_00,
            revenue: 25_00,
        };
        assert_eq!((sums.profit(), sums.return_permille()), (-5_00, Some(1_500)));
        assert_eq!(sums.won_percent(), Some(66));
        let none = Sums::default();
        assert_eq!((none.profit(), none.return_permille(), none.won_percent()), (0, None, None));
        let most = Sums { cost_of_sold: 1, revenue: 100_000 * 100_000_000_000, ..none };
        assert!(most.return_permille().is_some());
    }

    #[test]
    fn small_groups_are_summed_as_others() {
        let group = |at: u64| (at.to_string(), Sums { claims: 1, cost: at, ..Sums::default() });
        let groups = sorted((0..40).map(group).collect());
        assert_eq!(groups.len(), GROUPS_MAX);
        assert_eq!(groups[0].0, "39");
        let (name, others) = groups.last().expect("there are some");
        assert_eq!((name.as_str(), others.claims, others.cost), ("11 others", 11, (0..11).sum()));
    }
}
