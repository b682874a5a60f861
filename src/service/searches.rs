//! Saved searches: adding them, and counting the names that they find.

use utoipa::ToSchema;

use crate::accounts::{Caller, Draft, NewSearch, Post, SavedSearch};
use crate::app::{App, Now};
use crate::error::ApiError;
use crate::index::filter::{AsOf, SortKey};
use crate::index::{Index, Total};
use crate::query::request::FACT_SORT;
use crate::query::stored::Conditions;
use crate::vocab::budget;
use crate::vocab::day::Day;
use crate::vocab::fact::FactName;
use crate::vocab::named::{named_enum, parse_named};
use crate::work;

named_enum! {
    /// Direction of an order.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, ToSchema)]
    #[schema(rename_all = "lowercase")]
    pub enum Order {
        Asc = "asc",
        Desc = "desc",
    }
}
parse_named!(Order);

/// Numbers of names that a saved search finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchCounts {
    pub total: Total,
    /// Names from lists that the owner has not seen.
    pub new: Total,
}

impl SearchCounts {
    /// Counts the names that a search finds, unless they were counted today on this generation. Returns
    /// `None` if the request's time does not suffice.
    ///
    /// # Errors
    /// 500 for a stored condition that this version does not accept.
    pub fn in_time(
        app: &App,
        index: &Index,
        search: &SavedSearch,
        as_of: AsOf,
    ) -> Result<Option<SearchCounts>, ApiError> {
        budget::in_time(|| SearchCounts::new(app, index, search, as_of)).transpose()
    }

    fn new(
        app: &App,
        index: &Index,
        search: &SavedSearch,
        as_of: AsOf,
    ) -> Result<SearchCounts, ApiError> {
        let total = count(app, index, &search.conditions, None, as_of)?;
        let is_seen = search.seen >= index.manifest().batches;
        let new = match is_seen {
            true => Total::Exact(0),
            false => count(app, index, &search.conditions, Some(search.seen), as_of)?,
        };
        Ok(SearchCounts { total, new })
    }
}

fn count(
    app: &App,
    index: &Index,
    conditions: &Conditions,
    after_batch: Option<u64>,
    as_of: AsOf,
) -> Result<Total, ApiError> {
    let mut filter = conditions.drops(as_of.today).map_err(|err| {
        ApiError::Internal(anyhow::anyhow!("a stored search is no longer valid: {err}"))
    })?;
    filter.common.drop.after_batch = after_batch;
    app.apply_facts(index, &mut filter.common, as_of.today)?;
    Ok(index.estimate_drops(&filter, as_of)?)
}

/// The conditions of a search: filters, and the order of the list.
///
/// # Errors
/// An unknown order.
pub fn ordered(
    filters: &Conditions,
    sort: Option<String>,
    order: Option<String>,
) -> Result<Conditions, ApiError> {
    if let Some(name) = sort.as_deref().and_then(|sort| sort.strip_prefix(FACT_SORT)) {
        name.parse::<FactName>().map_err(|err| ApiError::parameter("sort", err))?;
    } else if let Some(sort) = &sort {
        sort.parse::<SortKey>().map_err(|err| ApiError::parameter("sort", err))?;
    }
    let order: Option<Order> = order
        .map(|order| order.parse().map_err(|err| ApiError::parameter("order", err)))
        .transpose()?;
    let key = sort.as_deref().map(|sort| ("sort", sort));
    let order = order.map(|order| ("order", order.as_str()));
    Ok(Conditions::new(filters.pairs().chain(key).chain(order)))
}

/// Saves a search. `parse` reads the name and conditions of the search, as of the given day. Also
/// returns the number of names that it finds, if time suffices to count them.
///
/// # Errors
/// The search is refused, or the write fails.
pub async fn add<'a>(
    app: &'a App,
    caller: &Caller,
    parse: impl FnOnce(Day) -> Result<(String, Conditions), ApiError> + Send + 'static,
    post: Post,
) -> Result<(Draft<'a, SavedSearch>, Option<Total>), ApiError> {
    let (index, as_of) = (app.live.current(), app.as_of(Now(post.now)));
    let seen = index.manifest().batches;
    let counted = app.clone();
    let (search, total) = work::scan(move || {
        let (name, conditions) = parse(as_of.today)?;
        let total =
            budget::in_time(|| count(&counted, &index, &conditions, None, as_of)).transpose()?;
        Ok((NewSearch { name, conditions, seen }, total))
    })
    .await?;
    Ok((app.store.add_search(caller, search, post).await?, total))
}
