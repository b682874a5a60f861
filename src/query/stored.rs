//! Conditions as rules and saved searches store them: parameters of the drops list and their
//! values, which were valid when they were stored. The conditions are resolved to a
//! [`Filter`](crate::filter::Filter) on the day of use, since the meaning of `tomorrow` and `+3d`
//! depends on the day.

use std::fmt::Display;

use compact_str::CompactString;
use serde::{Deserialize, Serialize};

use crate::conditions::{CONDITIONS, Condition, Kind, Parsed, known};
use crate::error::{BadParameter, ParameterCode};
use crate::filter::{Adult, ReleaseRange};
use crate::list;
use crate::request::{DropFilter, RuleQuery};
use crate::text::Substring;
use crate::vocab::day::Day;
use crate::vocab::limits::RULE_TLDS_MAX;
use crate::vocab::tld::{fold_tld, is_suffix};

/// The parameter whose absence is stored as its default. Conditions stored before it existed lack it and
/// still select every name, so that they keep their meaning.
const ADULT: &str = "adult";

/// Parameters and their values, each parameter at most once. A saved search also has `sort` and `order`.
/// The default selects every name, including adult names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Conditions(Vec<(CompactString, CompactString)>);

/// The value of a condition, as sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Number(i64),
    Text(String),
    List(Vec<String>),
}

impl Value {
    /// Converts the text that a form sends to the value of a condition.
    pub fn of_text(condition: &Condition, text: &str) -> Value {
        let listed = |items: Vec<&str>| Value::List(items.into_iter().map(str::to_owned).collect());
        match condition.kind {
            // Text that is not a number becomes a number out of range, so that the error states the
            // range.
            Kind::Number { .. } => Value::Number(text.parse().unwrap_or(i64::MAX)),
            Kind::Tlds(_) | Kind::SomeOf(..) => listed(list::plain(text).collect()),
            Kind::Texts(..) | Kind::Facts(_) => {
                match list::quoted(text).collect::<Result<Vec<_>, _>>() {
                    Ok(texts) => Value::List(texts.into_iter().map(Into::into).collect()),
                    Err(_) => listed(vec![text]),
                }
            }
            _ => Value::Text(text.to_owned()),
        }
    }
}

impl Conditions {
    /// Conditions of validated parameters. Empty values are left out.
    pub fn new<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Conditions {
        let set = pairs.into_iter().filter(|(_, value)| !value.is_empty());
        Conditions::of(set.map(|(name, value)| (name.into(), value.into())).collect())
    }

    fn of(mut pairs: Vec<(CompactString, CompactString)>) -> Conditions {
        let (included, excluded) = (Adult::Include.as_str(), Adult::Exclude.as_str());
        let includes = pairs.iter().any(|(name, value)| name == ADULT && value == included);
        pairs.retain(|(name, _)| name != ADULT);
        pairs.extend((!includes).then(|| (ADULT.into(), excluded.into())));
        Conditions(pairs)
    }

    /// Parses values. Errors name the member: `filter.tlds[1]`.
    ///
    /// # Errors
    /// The first invalid one.
    pub fn parse(
        values: impl IntoIterator<Item = (&'static Condition, Value)>,
        today: Day,
    ) -> Result<Conditions, BadParameter> {
        let mut pairs: Vec<(CompactString, CompactString)> = Vec::new();
        for (condition, value) in values {
            let (parameter, text) = text_of(condition, value)?;
            if pairs.iter().any(|(name, _)| name == parameter) {
                return Err(of_member(BadParameter::repeated(parameter)));
            }
            pairs.push((parameter.into(), text.into()));
        }
        let conditions = Conditions::of(pairs);
        conditions.parsed(today).map_err(of_member)?;
        Ok(conditions)
    }

    /// Parses the parameters of a form; unknown parameters are ignored.
    ///
    /// # Errors
    /// As [`Conditions::parse`].
    pub fn of_form<'a, 'b>(
        pairs: impl Iterator<Item = (&'a str, &'b str)>,
        today: Day,
    ) -> Result<Conditions, BadParameter> {
        let set = pairs.filter(|(_, text)| !text.is_empty()).filter_map(|(name, text)| {
            let condition = Condition::of_parameter(name)?;
            Some((condition, Value::of_text(condition, text)))
        });
        Conditions::parse(set, today)
    }

    /// Returns the parameters with values other than the default, in the order in which they were given.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        let stored = self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let excludes = self.0.iter().any(|(name, _)| name == ADULT);
        let included = (!excludes).then_some((ADULT, Adult::Include.as_str()));
        stored.filter(|(name, _)| *name != ADULT).chain(included)
    }

    /// Returns the value of a parameter; empty if it is not set.
    pub fn get(&self, name: &str) -> &str {
        self.pairs().find(|(set, _)| *set == name).map_or("", |(_, value)| value)
    }

    pub fn is_empty(&self) -> bool {
        self.pairs().next().is_none()
    }

    /// Returns true if a condition reads the text of names.
    pub fn reads_text(&self) -> bool {
        let reads = |condition: &Condition| condition.kind.reads_text();
        self.pairs().any(|(name, _)| Condition::of_parameter(name).is_some_and(reads))
    }

    /// Returns the conditions without the order of a saved search.
    #[must_use]
    pub fn unordered(&self) -> Conditions {
        Conditions::new(self.pairs().filter(|(name, _)| Condition::of_parameter(name).is_some()))
    }

    /// Resolves the values on a day.
    ///
    /// # Errors
    /// A stored condition that this version does not accept.
    fn parsed(&self, today: Day) -> Result<Parsed, BadParameter> {
        Parsed::new(CONDITIONS, today, |name| {
            Ok(Some(self.get(name)).filter(|value| !value.is_empty()))
        })
    }

    /// Returns the query of the drops list.
    ///
    /// # Errors
    /// A stored condition that this version does not accept.
    pub fn drops(&self, today: Day) -> Result<DropFilter, BadParameter> {
        self.parsed(today).map(DropFilter::of)
    }

    /// Returns the query of a rule.
    ///
    /// # Errors
    /// A stored condition that this version does not accept.
    pub fn rule(&self, today: Day) -> Result<RuleQuery, BadParameter> {
        self.parsed(today).map(RuleQuery::of)
    }

    /// Returns the range of effective releases on a day. Relative bounds move with the day. `query` may have been resolved on any day.
    pub fn releases(&self, query: &RuleQuery) -> impl Fn(Day) -> ReleaseRange {
        let open = query.common.drop.release;
        move |day| match open.is_open() {
            true => open,
            false => self.rule(day).map_or(open, |query| query.common.drop.release),
        }
    }

    /// Approximate size in memory.
    pub fn bytes(&self) -> u64 {
        let bytes = |(name, value): &(CompactString, CompactString)| {
            2 * size_of::<CompactString>() + name.len() + value.len()
        };
        self.0.iter().map(bytes).sum::<usize>() as u64
    }
}

/// Returns the parameter of a value, and its text without repeated items.
fn text_of(
    condition: &'static Condition,
    value: Value,
) -> Result<(&'static str, String), BadParameter> {
    let name = format!("filter.{}", condition.member);
    let wrong = |what: &dyn Display| BadParameter::new(name.clone(), what);
    let item = |at: usize, what: &dyn Display| BadParameter::new(format!("{name}[{at}]"), what);
    let mut items: Vec<CompactString> = Vec::new();
    match (condition.kind, value) {
        (_, Value::Number(number)) => return Ok((condition.parameter, number.to_string())),
        // A single text instead of a list is a part of the whole name.
        (Kind::NamePart | Kind::Texts(..), Value::Text(text)) => {
            let text = Substring::of_name(&text).map_err(|err| wrong(&err))?;
            return Ok(("q", text.as_str().to_owned()));
        }
        (_, Value::Text(text)) => match text.trim() {
            "" => return Err(wrong(&"must not be empty")),
            text => return Ok((condition.parameter, text.to_owned())),
        },
        (Kind::Tlds(_), Value::List(tlds)) => {
            if tlds.len() > RULE_TLDS_MAX {
                return Err(wrong(&format!("must have at most {RULE_TLDS_MAX} items")));
            }
            for (at, text) in tlds.iter().enumerate() {
                // An unknown suffix is valid and matches nothing yet; a malformed one is an error.
                let tld = fold_tld(text).filter(|tld| is_suffix(tld));
                let what = "must be a public suffix, such as com or co.uk";
                items.push(tld.ok_or_else(|| item(at, &what))?);
            }
        }
        (Kind::SomeOf(words, _), Value::List(list)) => {
            for (at, text) in list.iter().enumerate() {
                items.push(known(words, text).map_err(|what| item(at, &what))?.into());
            }
        }
        (Kind::Facts(read), Value::List(list)) => {
            for (at, text) in list.iter().enumerate() {
                let fact = read(text).map_err(|what| item(at, &what))?;
                items.push(list::quote(&fact.to_string()).into());
            }
        }
        (_, Value::List(texts)) => {
            for (at, text) in texts.iter().enumerate() {
                let text = Substring::parse(text).map_err(|err| item(at, &err))?;
                items.push(list::quote(text.as_str()).into());
            }
        }
    }
    let mut distinct: Vec<&str> = Vec::new();
    for item in &items {
        if matches!(condition.kind, Kind::Texts(..)) || !distinct.contains(&item.as_str()) {
            distinct.push(item);
        }
    }
    Ok((condition.parameter, distinct.join(",")))
}

/// Converts an error about a parameter to one about its member.
fn of_member(err: BadParameter) -> BadParameter {
    let BadParameter { name, what, code } = err;
    let of = |name: &str| Condition::of_parameter(name).map_or("", |condition| condition.member);
    let what = match (code, what.rsplit_once(' ')) {
        (ParameterCode::CrossedRange, Some((start, high))) => format!("{start} {}", of(high)),
        _ => what,
    };
    BadParameter { name: format!("filter.{}", of(&name)).into(), what, code }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TODAY: Day = Day::MIN;

    fn parsed(pairs: &[(&'static str, &str)]) -> Result<String, String> {
        let parsed = Conditions::of_form(pairs.iter().copied(), TODAY);
        let shown = |(name, value): (&str, &str)| format!("{name}={value}");
        let shown = |set: Conditions| set.pairs().map(shown).collect::<Vec<_>>().join("&");
        parsed.map(shown).map_err(|err| err.to_string())
    }

    #[test]
    fn values_are_stored_in_one_spelling() {
        for (sent, stored) in [
            (("tld", ".COM, de,com"), "tld=com,de"),
            (("stage", "catchable,redemption,catchable"), "stage=catchable,redemption"),
            (("contains", "Solar,\"a,b\""), "contains=solar,\"a,b\""),
            (("q", " SHOP "), "q=shop"),
            (("max_len", "08"), "max_len=8"),
            (("release_to", " +3d "), "release_to=+3d"),
            (("sort", "name"), ""),
            (("digits", ""), ""),
        ] {
            assert_eq!(parsed(&[sent]), Ok(stored.to_owned()), "{sent:?}");
        }
    }

    #[test]
    fn errors_name_the_member() {
        let many = ["com"; RULE_TLDS_MAX + 1].join(",");
        for (sent, error) in [
            (vec![("tld", many.as_str())], "filter.tlds: must have at most 100 items"),
            (
                vec![("tld", "com,-")],
                "filter.tlds[1]: must be a public suffix, such as com or co.uk",
            ),
            (vec![("max_len", "64")], "filter.maxLength: must be an integer from 1 to 63"),
            (vec![("max_len", "0")], "filter.maxLength: must be an integer from 1 to 63"),
            (vec![("min_dqs", "9"), ("max_dqs", "8")], "filter.minDqs: must not be above maxDqs"),
            (vec![("q", "a"), ("q", "b")], "filter.q: is given more than once"),
        ] {
            assert_eq!(parsed(&sent), Err(error.to_owned()));
        }
    }

    #[test]
    fn conditions_stored_before_adult_names_were_excluded_include_them() {
        let old = Conditions(vec![("max_len".into(), "4".into())]);
        let adult = |of: &Conditions| of.rule(TODAY).expect("valid").common.adult;
        assert_eq!((adult(&old), old.get(ADULT)), (Adult::Include, "include"));
        assert_eq!(adult(&Conditions::default()), Adult::Include);
        assert_eq!(Conditions::new(old.pairs()), old);
        let new = Conditions::new([("max_len", "4")]);
        assert_eq!((adult(&new), new.get(ADULT), new.pairs().count()), (Adult::Exclude, "", 1));
        assert_eq!(Conditions::new([("max_len", "4"), (ADULT, "exclude")]), new);
        assert_eq!(Conditions::new([(ADULT, "include"), ("max_len", "4")]), old);
        assert_eq!(new.0.last(), Some(&("adult".into(), "exclude".into())));
    }

    #[test]
    fn a_range_of_releases_moves_with_the_day() {
        let moving = Conditions::new([("release_from", "tomorrow"), ("sort", "name")]);
        let query = moving.rule(TODAY).expect("valid");
        let from = |day: Day| moving.releases(&query)(day).from;
        assert_eq!(from(TODAY), Some(TODAY.plus(1).into()));
        assert_eq!(from(TODAY.plus(7)), Some(TODAY.plus(8).into()));
        assert_eq!(moving.unordered().get("sort"), "");
    }
}
