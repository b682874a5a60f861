//! The columns of the list beside name and score. The browser keeps the choice in a cookie.

use axum::http::HeaderMap;
use axum::response::{IntoResponse, Redirect, Response};
use axum_extra::extract::CookieJar;
use axum_extra::extract::cookie::{Cookie, SameSite};
use maud::{Markup, html};

use crate::index::filter::SortKey;
use crate::index::query::rows::{DropRow, Lifecycle};
use crate::vocab::day::Day;
use crate::vocab::named::named_enum;
use crate::vocab::stage::Stage;
use crate::web::components::date_text;
use crate::web::form::{Fields, Form};
use crate::web::next::local_path;

/// Name of the cookie. It says nothing about the visitor.
const COOKIE: &str = "columns";

named_enum! {
    /// A column of the list.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Column {
        Why = "why",
        Length = "length",
        Tlds = "tlds",
        Words = "words",
        Language = "language",
        Kind = "kind",
        /// Number of drops on record.
        Drops = "drops",
        Dropped = "dropped",
        Listed = "listed",
        /// Days to the release.
        Days = "days",
        Due = "due",
        State = "state",
    }
}

impl Column {
    const DEFAULT: [Column; 5] =
        [Column::Why, Column::Length, Column::Tlds, Column::Due, Column::State];

    /// The columns chosen in this browser, in the order of the table.
    pub fn chosen(headers: &HeaderMap) -> Vec<Column> {
        let jar = CookieJar::from_headers(headers);
        let Some(cookie) = jar.get(COOKIE) else { return Column::DEFAULT.to_vec() };
        let keys: Vec<_> = cookie.value().split('.').collect();
        Column::ALL.into_iter().filter(|column| keys.contains(&column.as_str())).collect()
    }

    pub fn word(self) -> &'static str {
        match self {
            Column::Why => "Why",
            Column::Length => "Length",
            Column::Tlds => "Other TLDs",
            Column::Words => "Words",
            Column::Language => "Language",
            Column::Kind => "Kind",
            Column::Drops => "Drops so far",
            Column::Dropped => "Left the zone",
            Column::Listed => "First listed",
            Column::Days => "Days to drop",
            Column::Due => "Drops",
            Column::State => "State",
        }
    }

    /// The order that the column's head leads to.
    pub fn sort(self) -> Option<SortKey> {
        match self {
            Column::Length => Some(SortKey::Length),
            Column::Tlds => Some(SortKey::Tlds),
            Column::Dropped => Some(SortKey::Dropped),
            Column::Listed => Some(SortKey::Listed),
            Column::Due | Column::Days => Some(SortKey::Release),
            _ => None,
        }
    }

    /// Class of the column, its head and its cells.
    pub fn class(self) -> &'static str {
        match self {
            Column::Why => "why",
            Column::Length => "n length",
            Column::Tlds => "n tlds",
            Column::Drops | Column::Days => "n",
            Column::Due => "due",
            Column::State => "state",
            Column::Words => "text",
            Column::Language | Column::Kind | Column::Dropped | Column::Listed => "short",
        }
    }

    pub fn cell(self, drop: &DropRow<'_>, place: Lifecycle, today: Day) -> Markup {
        let missing = || html! { span.soft { "–" } };
        html! {
            td class=(self.class()) {
                @match self {
                    Column::Why => button.reason type="button" title=(drop.explanation) { (drop.explanation) },
                    Column::Length => (drop.length),
                    Column::Tlds => (drop.other_tlds),
                    Column::Words => {
                        @for (at, word) in drop.signals.words.iter().enumerate() { @if at > 0 { " " } (word) }
                    },
                    Column::Language => @match drop.signals.language { Some(code) => (code), None => (missing()) },
                    Column::Kind => (drop.signals.kind.as_str()),
                    Column::Drops => (drop.drop_count),
                    Column::Dropped => (day(place.dropped, today)),
                    Column::Listed => @match Day::from_instant(drop.listed_at.instant()) { Some(listed) => (day(listed, today)), None => (missing()) },
                    Column::Days => (drop.days_to_release),
                    Column::Due => (due(place.release, today)),
                    Column::State => (state_of(place, today)),
                }
            }
        }
    }
}

fn day(day: Day, today: Day) -> Markup {
    html! { time datetime=(day) title=(day) { (date_text(day, today)) } }
}

/// The release date, with a disc that fills as the day comes near.
fn due(release: Day, today: Day) -> Markup {
    let ahead = release.days_since(today);
    let class = match ahead {
        ..=0 => "free".to_owned(),
        1..=4 => format!("d{ahead}"),
        _ => "later".to_owned(),
    };
    let says = match ahead {
        1 => "tomorrow".to_owned(),
        0 => "today".to_owned(),
        2.. => format!("in {ahead} days"),
        _ => format!("{} days ago", -ahead),
    };
    html! { time.due.(class) datetime=(release) title={ (release) ", " (says) ", expected" } { (date_text(release, today)) } }
}

/// The state of a name by the calendar, which no registry confirmed.
fn state_of(place: Lifecycle, today: Day) -> Markup {
    html! {
        @match place.stage {
            Stage::Redemption => span.stage.restorable title={ "The owner can restore it until " (place.pending_delete) } { "restorable" },
            Stage::PendingDelete => span.stage.pending-delete { "pending delete" },
            Stage::Catchable => span.stage.catchable title={ "Expected to be available since " (place.release) ", not verified" } { "expected free" },
            Stage::Released => span.stage.released title={ "Left the zone on " (date_text(place.dropped, today)) } { "released" },
        }
    }
}

/// The form that chooses columns. Works without scripts.
pub fn picker(chosen: &[Column], next: &str) -> Markup {
    html! {
        details.columns {
            summary { "Columns" }
            form method="post" action="/columns" {
                input type="hidden" name="next" value=(next);
                @for column in Column::ALL {
                    label {
                        input type="checkbox" name="column" value=(column.as_str()) checked[chosen.contains(&column)];
                        (column.word())
                    }
                }
                button.small type="submit" { "Show these" }
                button.quiet.small type="submit" name="reset" value="yes" { "Reset" }
            }
        }
    }
}

/// `POST /columns`: keeps the chosen columns in the browser and returns to the list.
pub async fn choose(Form(sent): Form<Fields>) -> Response {
    let keys: Vec<_> = sent.all("column").filter(|key| Column::NAMES.contains(key)).collect();
    let cookie = Cookie::build((COOKIE, keys.join("."))).path("/").http_only(true);
    let mut cookie = cookie.same_site(SameSite::Lax).build();
    if sent.text("reset") == "yes" {
        cookie.make_removal();
    } else {
        cookie.make_permanent();
    }
    (CookieJar::new().add(cookie), Redirect::to(local_path(Some(sent.text("next")))))
        .into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cookie_chooses_columns_in_the_order_of_the_table() {
        let chosen = |cookie: &str| {
            let headers = HeaderMap::from_iter([(
                axum::http::header::COOKIE,
                cookie.parse().expect("ASCII"),
            )]);
            Column::chosen(&headers)
        };
        assert_eq!(chosen("other=1"), Column::DEFAULT);
        assert_eq!(chosen("columns=state.length.gone"), [Column::Length, Column::State]);
        assert_eq!(chosen("columns="), []);
    }
}
