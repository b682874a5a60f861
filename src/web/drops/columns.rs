//! The columns of the list besides name and score. The choice is stored in the account or, without one,
//! in a cookie.

use axum::extract::State as WebState;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Redirect, Response};
use axum_extra::extract::CookieJar;
use axum_extra::extract::cookie::{Cookie, SameSite};
use maud::{Markup, html};
use time::Duration;

use crate::Web;
use crate::accounts::UserData;
use crate::components::{
    ago, date_text, exit_word, fact_value, grouped, seen_class, seen_word, typo_of,
};
use crate::drops::Shown;
use crate::drops::state::{COLUMNS, DropsParams, FACTS};
use crate::drops::why::why;
use crate::error::PageError;
use crate::form::{Fields, Form};
use crate::index::filter::SortKey;
use crate::index::query::rows::{DropRow, Lifecycle};
use crate::next::local_path;
use crate::service::checks::Checked;
use crate::service::error::ApiError;
use crate::service::fact_book::{FactValue, SourceColumn};
use crate::viewer::Viewer;
use crate::vocab::columns::{Column, Columns};
use crate::vocab::day::Day;
use crate::vocab::fact::FactType;
use crate::vocab::name::to_unicode;
use crate::vocab::observation::Observation;
use crate::vocab::release_time::Certainty;
use crate::vocab::stage::Stage;

/// Name of the cookie, which contains nothing about the visitor.
const COOKIE: &str = "columns";
/// Lifetime of the cookie: the maximum that browsers allow (RFC 6265bis §5.5).
const KEPT: Duration = Duration::days(400);

/// Returns the columns chosen by a viewer, in the account `owned` or in this browser.
pub fn chosen(owned: Option<&UserData>, headers: &HeaderMap) -> Columns {
    let of_account = owned.and_then(UserData::columns).cloned();
    let of_browser = || {
        let jar = CookieJar::from_headers(headers);
        Some(Columns::from(jar.get(COOKIE)?.value().to_owned()))
    };
    of_account.or_else(of_browser).unwrap_or_default()
}

/// Heading of the column.
pub fn word(column: Column) -> &'static str {
    match column {
        Column::Why => "Why",
        Column::Length => "Length",
        Column::Tlds => "Other TLDs",
        Column::Words => "Words",
        Column::Language => "Language",
        Column::Kind => "Kind",
        Column::Drops => "Drops so far",
        Column::Popularity => "Popularity rank",
        Column::SuffixRank => "Within its TLD",
        Column::ExpectedTaken => "Taken soon",
        Column::Dropped => "Left the zone",
        Column::Listed => "First listed",
        Column::Days => "Days to drop",
        Column::Due => "Drops",
        Column::State => "Registry",
        Column::Checked => "Checked",
    }
}

/// Tooltip of the column's heading.
pub fn about(column: Column) -> Option<&'static str> {
    match column {
        Column::Due => Some("Expected by the calendar; hours are UTC"),
        Column::State => Some("Stage by the calendar, or what the registry said if you asked"),
        Column::ExpectedTaken => {
            Some("Share of names like it that are expected to be registered again within a week")
        }
        Column::Checked => Some("What registries and the DNS said in the last hours, if you asked"),
        _ => None,
    }
}

/// The sort order that the column's heading links to.
pub fn sort(column: Column) -> Option<SortKey> {
    match column {
        Column::Length => Some(SortKey::Length),
        Column::Tlds => Some(SortKey::Tlds),
        Column::Popularity => Some(SortKey::Rank),
        Column::SuffixRank => Some(SortKey::SuffixRank),
        Column::ExpectedTaken => Some(SortKey::ExpectedTaken),
        Column::Dropped => Some(SortKey::Dropped),
        Column::Listed => Some(SortKey::Listed),
        Column::Due | Column::Days => Some(SortKey::Release),
        _ => None,
    }
}

/// CSS class of the column's heading and cells.
pub fn class(column: Column) -> &'static str {
    match column {
        Column::Why => "why",
        Column::Length => "length",
        Column::Tlds => "tlds",
        Column::Drops | Column::Popularity | Column::Days | Column::ExpectedTaken => "n",
        Column::Due => "due",
        Column::State => "state",
        Column::Words | Column::SuffixRank | Column::Checked => "text",
        Column::Language | Column::Kind | Column::Dropped | Column::Listed => "short",
    }
}

pub fn cell(column: Column, drop: &DropRow<'_>, place: Lifecycle, shown: &Shown) -> Markup {
    let today = shown.today;
    let missing = || html! { span.soft { "–" } };
    match column {
        Column::Due => return due(drop, place.release.day, shown),
        Column::State => return state_of(place, shown.checked(drop.name), shown),
        _ => {}
    }
    html! {
        td class=(class(column)) {
            @match column {
                Column::Why => {
                    @if let Some(popular) = drop.typo_of { (typo_of(popular)) ". " }
                    (why(drop, &shown.state))
                },
                Column::Length => (drop.length),
                Column::Tlds => (drop.other_tlds),
                Column::Words => {
                    @for (at, word) in drop.signals.words.iter().enumerate() { @if at > 0 { " " } (word) }
                },
                Column::Language => @match drop.signals.language { Some(code) => (code), None => (missing()) },
                Column::Kind => (drop.signals.kind.as_str()),
                Column::Drops => (drop.drop_count),
                Column::Popularity => @match drop.popularity_rank { Some(rank) => (grouped(rank.get().into())), None => (missing()) },
                Column::SuffixRank => @match drop.suffix_rank { Some(rank) => { "best " (rank) " % of ." (to_unicode(drop.tld)) }, None => (missing()) },
                Column::ExpectedTaken => @match drop.expected_taken { Some(expected) => { (expected) " %" }, None => (missing()) },
                Column::Dropped => (day(place.dropped, today)),
                Column::Listed => @match Day::from_instant(drop.listed_at.instant()) { Some(listed) => (day(listed, today)), None => (missing()) },
                Column::Days => (drop.days_to_release),
                Column::Checked => @match shown.checked(drop.name) {
                    Some(Checked::Seen(seen)) => (said(&seen, shown)),
                    Some(Checked::Failed) => "no response",
                    None => (missing()),
                },
                Column::Due | Column::State => {}
            }
        }
    }
}

/// CSS class of the heading and the cells of a fact.
pub fn fact_class(fact: &SourceColumn) -> &'static str {
    match fact.stored().kind {
        FactType::Enum | FactType::Text => "text",
        FactType::Bool | FactType::Date => "short",
        FactType::Money => "n amount",
        FactType::Int | FactType::Dec | FactType::Year => "n",
    }
}

/// Heading of a fact, which may break after the source and between words.
pub fn fact_word(fact: &SourceColumn) -> String {
    fact.name.to_string().replace('.', ".\u{200b}").replace('_', "_\u{200b}")
}

/// Renders the facts of a name.
pub fn fact_cells(name: &str, shown: &Shown) -> Markup {
    if shown.facts.is_empty() {
        return html! {};
    }
    let values = shown.facts.of(name);
    let texts = shown.facts.columns().iter().zip(&values).map(|(fact, value)| {
        let known = value.as_ref()?;
        Some((known, fact_value(&known.value, fact.stored(), shown.today)))
    });
    let texts: Vec<_> = texts.collect();
    let mut line: Vec<_> = shown.facts.columns().iter().zip(&texts).collect();
    // A phone has room for one line, which begins with the fact that sorts the list.
    let sort = shown.state.get("sort").strip_prefix("fact:");
    line.sort_by_key(|(fact, _)| sort != Some(fact.name.as_str()));
    let line = line.into_iter().filter_map(|(fact, text)| {
        let ((_, text), column) = (text.as_ref()?, fact.stored());
        Some(match column.kind {
            FactType::Enum | FactType::Money => text.clone(),
            _ => format!("{} {text}", column.name.replace('_', " ")),
        })
    });
    let line: Vec<_> = line.collect();
    html! {
        @for (fact, text) in shown.facts.columns().iter().zip(&texts) {
            @match text {
                Some((known, text)) => td.(fact_class(fact)).old[known.is_outdated(shown.today)] title=(known_since(known, shown.today)) { (text) },
                None => td class=(fact_class(fact)) { span.soft { "–" } },
            }
        }
        td.line { @if line.is_empty() { "–" } @else { (line.join(" · ")) } }
    }
}

/// Tooltip of a fact.
fn known_since(fact: &FactValue, today: Day) -> String {
    let age = if fact.is_outdated(today) { ", outdated" } else { "" };
    format!("as of {}{age}", fact.as_of)
}

fn day(day: Day, today: Day) -> Markup {
    html! { time datetime=(day) title=(day) { (date_text(day, today)) } }
}

/// Renders the expected release, with a disc that fills as the day approaches: its date or, where a heading
/// or a filter says the day, its hour.
fn due(drop: &DropRow<'_>, release: Day, shown: &Shown) -> Markup {
    let (state, today) = (&shown.state, shown.today);
    let is_day_known = state.is_digest() || shown.release_day().is_some();
    let hour = drop.release_at.filter(|_| is_day_known).map(|at| {
        let about = if drop.release_certainty == Certainty::Window { "~" } else { "" };
        format!("{about}{}", at.instant().format("%H:%M"))
    });
    let ahead = release.days_since(today);
    let class = match ahead {
        ..=0 => "past".to_owned(),
        1..=4 => format!("d{ahead}"),
        _ => "later".to_owned(),
    };
    html! { td.due.(class) { @match hour { Some(hour) => (hour), None => (date_text(release, today)) } } }
}

/// Renders what the registry said, and when.
fn said(seen: &Observation, shown: &Shown) -> Markup {
    html! { span.badge.(seen_class(seen)) { (seen_word(seen)) } " " (ago(seen.at, shown.now)) }
}

/// Renders what the registry said, or else the stage by the calendar. A restorable name stands out unless all
/// names of the list are.
fn state_of(place: Lifecycle, checked: Option<Checked>, shown: &Shown) -> Markup {
    let today = shown.today;
    if let Some(Checked::Seen(seen)) = checked {
        return html! {
            td.state { (said(&seen, shown)) }
        };
    }
    let are_all_restorable = shown.state.get("stage") == Stage::Redemption.as_str();
    html! {
        @match place.stage {
            Stage::Redemption => td.state.restorable[!are_all_restorable] title={ "until " (place.pending_delete) } { "restorable" },
            Stage::PendingDelete => td.state { "pending delete" },
            Stage::Catchable => td.state.free title={ "Expected to be available since " (place.release.day) ", not verified" } { "expected free" },
            Stage::Released => td.state.gone title={ (exit_word(&place)) " on " (date_text(place.dropped, today)) } { "released" },
        }
    }
}

/// Renders the form that chooses columns and facts. Works without scripts.
pub fn picker(shown: &Shown) -> Markup {
    let chosen = &shown.columns;
    let is_shown = |name: &str| shown.facts.columns().iter().any(|fact| fact.name.as_str() == name);
    html! {
        details.menu.picker {
            summary { "Columns" }
            form method="post" action="/columns" {
                input type="hidden" name="next" value=(shown.state.path());
                @for column in Column::ALL {
                    label {
                        input type="checkbox" name="column" value=(column.as_str()) checked[chosen.as_slice().contains(&column)];
                        (word(column))
                    }
                }
                @let known = shown.visible.names();
                @if !known.is_empty() {
                    b { "Facts" }
                    @for name in &known {
                        label {
                            input type="checkbox" name="fact" value=(name) checked[is_shown(name)];
                            (name)
                        }
                    }
                }
                button.small { "Show these" }
                button.quiet.small name="reset" value="yes" { "Reset" }
            }
        }
    }
}

/// `POST /columns`: stores the chosen columns in the account or, without one, in a cookie, and returns to
/// the list with the chosen facts, which its address holds. If the address holds the other columns too, they
/// are changed there, and the stored choice stays as it was.
pub async fn choose(
    WebState(web): WebState<Web>,
    viewer: Viewer,
    Form(sent): Form<Fields>,
) -> Result<Response, PageError> {
    let is_reset = sent.text("reset") == "yes";
    let columns = Columns::named(sent.all("column"));
    let facts = if is_reset { String::new() } else { sent.filled("fact").join(",") };
    let next = local_path(Some(sent.text("next")));
    let is_list = next == "/" || next.starts_with("/?");
    let state = is_list.then(|| DropsParams::of(&Fields::from_query(next.strip_prefix("/?"))));
    let to = |columns: &str| match &state {
        Some(state) => {
            let offset = ("offset", state.get("offset"));
            Redirect::to(&state.with(&[(FACTS, &facts), (COLUMNS, columns), offset]).path())
        }
        None => Redirect::to(next),
    };
    if !is_reset && state.as_ref().is_some_and(|state| state.columns().is_some()) {
        return Ok(to(&columns.to_string()).into_response());
    }
    let cookie = Cookie::build((COOKIE, columns.to_string())).path("/").http_only(true);
    let mut cookie = cookie.same_site(SameSite::Lax).build();
    if let Some(member) = &viewer.member {
        let chosen = (!is_reset).then_some(columns);
        web.app.store.set_columns(&member.caller, chosen).await.map_err(ApiError::from)?;
    }
    // Otherwise, choosing the defaults would restore the columns that were chosen before the
    // log-in.
    if is_reset || viewer.member.is_some() {
        cookie.make_removal();
    } else {
        cookie.set_max_age(KEPT);
    }
    Ok((CookieJar::new().add(cookie), to("")).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cookie_chooses_columns() {
        let chosen = |cookie: &str| {
            let headers = HeaderMap::from_iter([(
                axum::http::header::COOKIE,
                cookie.parse().expect("ASCII"),
            )]);
            chosen(None, &headers)
        };
        assert_eq!(chosen("other=1"), Columns::default());
        assert_eq!(chosen("columns=state.length.gone").to_string(), "length.state");
        assert_eq!(chosen("columns=").as_slice(), []);
    }
}
