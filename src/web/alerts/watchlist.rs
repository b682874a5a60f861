//! `/watchlist/alerts`: alert settings of watched names, and their messages. Settings are
//! validated and changed as in the API.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use maud::{Markup, html};

use super::channels::Channels;
use super::form::RuleForm;
use super::{list, replaced, requeue, rule, saved};
use crate::Web;
use crate::accounts::UserData;
use crate::components::{counted, kind_word};
use crate::error::PageError;
use crate::field::{Field, FormError, Input};
use crate::form::{Fields, Form, LargeForm};
use crate::fragment::{Wanted, vary, wanted};
use crate::layout::{NavItem, Page};
use crate::logged_in::LoggedIn;
use crate::notice::{self, Notice};
use crate::owned::{STYLES, repeatable_post};
use crate::service::error::ApiError;
use crate::service::watch_alerts;
use crate::service::watchlist::usable_channels;
use crate::vocab::change::ChangeKind;
use crate::vocab::ids::{DeliveryId, RuleId};
use crate::vocab::zone::{Hour, Zone};

/// Path of the settings.
const PATH: &str = "/watchlist/alerts";

const SAVED: Notice = Notice::new("saved", "Saved. These settings hold for all names you watch.");
const TESTED: Notice =
    Notice::new("tested", "Test message queued. See its status under Deliveries.");
const RETRIED: Notice = Notice::new("retried", "Message queued again.");
const NOTICES: [Notice; 3] = [SAVED, TESTED, RETRIED];

/// Routes of the settings.
pub fn routes() -> Router<Web> {
    Router::new()
        .route(PATH, get(show).post(save))
        .route("/watchlist/alerts/test", post(test))
        .route("/watchlist/alerts/secrets", post(replace_secrets))
        .route("/watchlist/alerts/deliveries/{delivery}/retry", post(retry))
}

/// The page with its form.
struct WatchAlertsPage {
    web: Web,
    member: LoggedIn,
    owned: Arc<UserData>,
    form: RuleForm,
}

impl WatchAlertsPage {
    /// Creates the page with the current settings.
    fn new(web: Web, member: LoggedIn) -> WatchAlertsPage {
        let owned = web.user_data(&member);
        let now = member.viewer.now;
        let channels = usable_channels(&web.app, &member.caller, &owned, now);
        let form = RuleForm::for_watchlist(&owned.watch_sender().alerts, channels);
        WatchAlertsPage { web, member, owned, form }
    }

    fn page(&self, error: Option<&FormError>, query: Option<&str>) -> Markup {
        let WatchAlertsPage { member, owned, .. } = self;
        let sender = &owned.watch_sender().rule;
        let is_empty = owned.watch_count() == 0;
        Page::new("Watch alerts", "Choose which changes of watched names you hear about, when and where.")
            .at(NavItem::Watchlist)
            .styles(STYLES)
            .scripts(&["alerts.js"])
            .show(
                Some(&member.viewer),
                html! {
                    p.trail { a href="/watchlist" { "Watchlist" } }
                    div.head {
                        h1 { "Watch alerts" }
                        div.actions {
                            form method="post" action="/watchlist/alerts/test" { button.quiet type="submit" { "Send test" } }
                            (rule::new_secret(sender, "/watchlist/alerts/secrets"))
                        }
                    }
                    (notice::shown(&NOTICES, query))
                    @if let Some(error) = error { (error.shown()) }
                    p.lead {
                        "You get a message when a name on your watchlist changes. "
                        @if is_empty { "Your watchlist is empty. " a href="/watchlist" { "Add names" } }
                        @else { "You watch " (counted(owned.watch_count() as u32, "name")) "." }
                    }
                    @if !owned.has_watch_sender() {
                        p.hint { "These are the defaults. They hold for names that you add from now on. Save them to hear about names that you watched before, too." }
                    }
                    @if owned.has_watch_sender() { (list::channels(sender, owned, member.caller.plan)) }
                    (rule::deliveries(RuleId::WATCHLIST, owned, member))
                    h2 #edit { "Settings" }
                    (self.fields(error))
                },
            )
    }

    fn fields(&self, error: Option<&FormError>) -> Markup {
        let WatchAlertsPage { web, member, owned, form } = self;
        let sender = &owned.watch_sender().rule;
        let off = |it| owned.switched_off(RuleId::WATCHLIST, it).is_some();
        let is_off = sender.channels.iter().any(off);
        let chosen = form.filled("kind");
        let kinds_error = error.and_then(|error| error.about("kinds"));
        let zone =
            Input { longest: Some(64), list: Some("zones"), is_required: true, ..Input::TEXT };
        let zone_help = "The hours above are in this time zone, for example Europe/Berlin.";
        html! {
            form.panel.middling method="post" action=(PATH) {
                fieldset.field #kinds {
                    legend { "Tell me when a name" }
                    div.chips {
                        @for kind in ChangeKind::ALL {
                            label.chip {
                                input type="checkbox" name="kind" value=(kind) checked[chosen.contains(&kind.as_str())];
                                span { (kind_word(kind)) }
                            }
                        }
                    }
                    p.help { "For a single name, choose on its page, or mute it with the bell in the " a href="/watchlist" { "watchlist" } "." }
                    @if let Some(error) = kinds_error { p.error { (error) } }
                }
                fieldset.group {
                    legend { "When" }
                    (self.hours(error, "digest", "Send", "At once", |hour| format!("Once a day at {hour}")))
                    div.pair {
                        (self.hours(error, "quiet_from", "Quiet from", "No quiet hours", |hour| hour.to_string()))
                        (self.hours(error, "quiet_to", "Quiet until", "No quiet hours", |hour| hour.to_string()))
                    }
                    p.help { "Messages due in quiet hours are sent when they end." }
                    (Field::new("zone", "Time zone").error(error).help(zone_help).input(form.text("zone"), zone))
                    datalist #zones { @for name in Zone::names() { option value=(name) {} } }
                }
                (Channels { web, member, form, error, least: 0, is_off }.fields())
                p.send { button type="submit" { "Save" } }
            }
        }
    }

    fn hours(
        &self,
        error: Option<&FormError>,
        id: &str,
        label: &str,
        none: &str,
        word: impl Fn(Hour) -> String,
    ) -> Markup {
        let chosen = self.form.text(id);
        let error = error.and_then(|error| error.about(id));
        html! {
            div.field {
                label for=(id) { (label) }
                select id=(id) name=(id) aria-invalid=[error.map(|_| "true")] {
                    option value="" { (none) }
                    @for hour in Hour::all() {
                        option value=(hour.get()) selected[chosen == hour.get().to_string()] { (word(hour)) }
                    }
                }
                @if let Some(error) = error { p.error { (error) } }
            }
        }
    }

    /// Redirects to the page after an action, or renders it with the error.
    fn finish<T>(self, result: Result<T, ApiError>, notice: Notice) -> Result<Response, PageError> {
        match result {
            Ok(_) => Ok(notice.at(PATH).into_response()),
            Err(ApiError::NotFound) => Err(ApiError::NotFound.into()),
            Err(err) => Ok(self.rejected(err)),
        }
    }

    fn rejected(&self, err: ApiError) -> Response {
        let error = FormError::new(err, |property| self.form.field_of(property));
        let page = self.page(Some(&error), None);
        error.into_page(page)
    }
}

/// `GET /watchlist/alerts`. Scripts get the deliveries only.
async fn show(
    State(web): State<Web>,
    member: LoggedIn,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Response {
    let page = WatchAlertsPage::new(web, member);
    if wanted(&headers) == Wanted::Part {
        let sent = rule::deliveries(RuleId::WATCHLIST, &page.owned, &page.member);
        return vary(sent.into_response());
    }
    page.page(None, query.as_deref()).into_response()
}

/// `POST /watchlist/alerts`: saves the settings.
async fn save(
    State(web): State<Web>,
    member: LoggedIn,
    Form(fields): LargeForm<Fields>,
) -> Response {
    let before = WatchAlertsPage::new(web, member);
    let page = WatchAlertsPage { form: RuleForm::new(fields), ..before };
    let sender = page.owned.watch_sender();
    let old = RuleForm::for_watchlist(&sender.alerts, &sender.rule.channels);
    let switch_on = page.form.is_on("switch_on") || page.form.has_other_channels(&old);
    let (caller, now) = (&page.member.caller, page.member.viewer.now);
    let result = match page.form.watch_alerts() {
        Ok(alerts) => watch_alerts::save(&page.web.app, caller, alerts, switch_on, now).await,
        Err(err) => Err(err),
    };
    match result {
        Ok(secrets) => saved(&page.member, RuleId::WATCHLIST, &secrets, SAVED),
        Err(err) => page.rejected(err),
    }
}

/// `POST /watchlist/alerts/test`: sends a test message.
async fn test(State(web): State<Web>, member: LoggedIn) -> Result<Response, PageError> {
    let page = WatchAlertsPage::new(web, member);
    let post = repeatable_post(page.member.viewer.now);
    let app = &page.web.app;
    let has_mail = app.reach.channels.email;
    let queued = match app.store.queue_watch_test(&page.member.caller, has_mail, post).await {
        Ok(draft) => draft.finish().await,
        Err(err) => Err(err),
    };
    page.finish(queued.map_err(ApiError::from), TESTED)
}

/// `POST /watchlist/alerts/secrets`: replaces the secrets of the webhooks, and shows the new ones.
async fn replace_secrets(State(web): State<Web>, member: LoggedIn) -> Response {
    let page = WatchAlertsPage::new(web, member);
    let shown = replaced(&page.web, &page.member, RuleId::WATCHLIST).await;
    shown.unwrap_or_else(|err| page.rejected(err))
}

/// `POST /watchlist/alerts/deliveries/{delivery}/retry`.
async fn retry(
    State(web): State<Web>,
    member: LoggedIn,
    Path(delivery): Path<String>,
) -> Result<Response, PageError> {
    let delivery = DeliveryId::parse(&delivery).ok_or(ApiError::NotFound)?;
    let page = WatchAlertsPage::new(web, member);
    let post = repeatable_post(page.member.viewer.now);
    let caller = &page.member.caller;
    let queued = requeue(&page.web, caller, RuleId::WATCHLIST, delivery, post).await;
    page.finish(queued, RETRIED)
}
