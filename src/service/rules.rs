//! Alert rules: adding, changing and testing them.

use std::sync::Arc;

use crate::accounts::{
    Caller, ChangedRule, Channel, Delivery, Draft, MatchedName, NewRule, Post, Rule, RulePatch,
    UserData,
};
use crate::app::{App, Now};
use crate::channels;
use crate::error::ApiError;
use crate::index::Index;
use crate::index::filter::AsOf;
use crate::index::rules::preview::Preview;
use crate::query::stored::Conditions;
use crate::vocab::day::Day;
use crate::vocab::dropped_name::DroppedName;
use crate::vocab::ids::RuleId;
use crate::vocab::name::DomainName;
use crate::vocab::url::HostRules;
use crate::work;

/// Adds an active rule. `parse` reads the rule, given the account's data, the allowed webhook
/// hosts, and today. `compiles` states whether `parse` compiles a regular expression.
///
/// # Errors
/// The rule or a channel is refused, the plan's limit is reached, or the write fails.
pub async fn add<'a>(
    app: &'a App,
    caller: &Caller,
    compiles: bool,
    parse: impl FnOnce(&UserData, &HostRules, Day) -> Result<NewRule, ApiError> + Send + 'static,
    post: Post,
) -> Result<Draft<'a, Rule>, ApiError> {
    let (of_app, owned) = (app.clone(), app.store.user_data(caller));
    let today = app.as_of(Now(post.now)).today;
    let parse = move || parse(&owned, of_app.reach.guard.rules(), today);
    let rule = work::run_or_scan(compiles, 0, parse).await?;
    channels::check(app, &rule.channels).await?;
    Ok(app.store.add_rule(caller, rule, post).await?)
}

/// Changes a rule. `parse` reads the change, given the rule's current channels.
///
/// # Errors
/// The errors of [`add`], or the rule does not exist.
pub async fn change(
    app: &App,
    caller: &Caller,
    id: RuleId,
    compiles: bool,
    parse: impl FnOnce(&[Channel], &HostRules, Day) -> Result<RulePatch, ApiError> + Send + 'static,
) -> Result<ChangedRule, ApiError> {
    let (of_app, today) = (app.clone(), app.clock.today());
    let owned = app.store.user_data(caller);
    let parse = move || {
        let before = owned.rule(id).map(|rule| rule.channels.as_slice()).unwrap_or_default();
        parse(before, of_app.reach.guard.rules(), today)
    };
    let patch = work::run_or_scan(compiles, 0, parse).await?;
    channels::check(app, patch.channels.as_deref().unwrap_or_default()).await?;
    Ok(app.store.change_rule(caller, id, patch).await?)
}

/// Queues a test message of a rule, with some names that match now.
///
/// # Errors
/// The rule does not exist, or it cannot be tested now.
pub async fn draft_test<'a>(
    app: &'a App,
    caller: &Caller,
    id: RuleId,
    now: Now,
    post: Post,
) -> Result<Draft<'a, Vec<Delivery>>, ApiError> {
    let filter = app.store.user_data(caller).rule(id).ok_or(ApiError::NotFound)?.filter.clone();
    let (index, as_of) = (app.live.current(), app.as_of(now));
    let cost_us = index.preview_cost_us(as_of);
    let scans = filter.reads_text();
    let of_app = app.clone();
    let work = move || samples(&of_app, &filter, &index, as_of);
    let (names, total) = work::run_or_scan(scans, cost_us, work).await?;
    Ok(app.store.queue_test(caller, id, &names, total, post).await?)
}

/// Samples of the names that match now, and their number.
fn samples(
    app: &App,
    filter: &Conditions,
    index: &Arc<Index>,
    as_of: AsOf,
) -> Result<(Vec<MatchedName>, u32), ApiError> {
    let mut query = filter.rule(as_of.today)?;
    app.apply_facts(index, &mut query.common, as_of.today)?;
    let preview = index.preview_moving(&query, filter.releases(&query), as_of)?;
    let samples = matched_samples(&preview, index, as_of).into_iter().map(MatchedName);
    Ok((samples.collect(), preview.today))
}

/// Converts the samples of a preview to the form of alert messages.
pub fn matched_samples(preview: &Preview<'_>, index: &Index, as_of: AsOf) -> Vec<DroppedName> {
    let mut names = Vec::new();
    preview.for_each_sample(|row| names.extend(DomainName::parse(row.name).ok()));
    let matched = |name: DomainName| {
        let facts = index.facts(&name, as_of)?;
        let (stage, drop_date, release) = (facts.stage?, facts.latest_drop?, facts.release?);
        Some(DroppedName {
            name,
            dqs: facts.dqs,
            drop_date,
            release: release.day,
            release_second: release.second(),
            stage,
        })
    };
    names.into_iter().filter_map(matched).collect()
}
