//! `/alerts`: alert rules, the preview of their matches, and their deliveries. Rules are validated and
//! changed as in the API.

mod backtest;
mod channels;
mod editor;
mod form;
mod list;
mod preview;
mod rule;
mod watchlist;
mod words;

use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRequestParts, Path, RawQuery, State};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use maud::Markup;

use crate::Web;
use crate::accounts::{
    Caller, ChangedRule, Channel, Delivery, Post, Rule, RulePatch, UserData, WebhookSecret,
    WriteError,
};
use crate::error::PageError;
use crate::field::FormError;
use crate::form::{Fields, Form, LargeForm};
use crate::fragment::{Wanted, vary, wanted};
use crate::logged_in::LoggedIn;
use crate::notice::Notice;
use crate::outbound::alert::settings_page;
use crate::owned::{ROW_LIMITS, idempotent_post, path_param, repeatable_post};
use crate::query::params::Params;
use crate::service::error::ApiError;
use crate::service::receipt::{self, added_id};
use crate::service::rules;
use crate::undo::Acting;
use crate::vocab::ids::{DeliveryId, RuleId};
use crate::vocab::limits::ENTRIES_OFFSET_MAX;
use crate::vocab::plan::Plan;
use crate::vocab::url::HostRules;
use editor::{Editor, PATH};
use form::{ChannelDefaults, RuleForm};

const ADDED: Notice = Notice::new("added", "Rule created. It applies from the next list on.");
const SAVED: Notice = Notice::new("saved", "Rule saved.");
const PAUSED: Notice = Notice::new("paused", "Rule paused. You will not receive alerts for it.");
const RESUMED: Notice = Notice::new("resumed", "Rule resumed.");
const REMOVED: Notice = Notice::new("removed", "Rule deleted.");
const TESTED: Notice =
    Notice::new("tested", "Test message queued. See its status under Deliveries.");
const RETRIED: Notice = Notice::new("retried", "Message queued again.");
const NOTICES: [Notice; 7] = [ADDED, SAVED, PAUSED, RESUMED, REMOVED, TESTED, RETRIED];

/// Path of a rule that is tried on past releases.
pub const BACKTEST: &str = "/alerts/backtest";
/// Path of the preview of a rule.
pub const PREVIEW: &str = "/alerts/preview";

/// Routes of alert rules.
pub fn routes() -> Router<Web> {
    Router::new()
        .route(PATH, get(list_rules))
        .route("/alerts/new", get(new_rule).post(add))
        .route(PREVIEW, post(preview))
        .route(BACKTEST, post(try_on_past))
        .route("/alerts/{id}", get(show_rule).post(save))
        .route("/alerts/{id}/delete", get(confirm_delete).post(remove))
        .route("/alerts/{id}/test", post(test))
        .route("/alerts/{id}/secrets", post(replace_secrets))
        .route("/alerts/{id}/pause", post(pause))
        .route("/alerts/{id}/resume", post(resume))
        .route("/alerts/{id}/deliveries/{delivery}/retry", post(retry))
        .merge(watchlist::routes())
}

/// A page with the rule editor, for a new rule or the rule in the path.
struct EditorPage {
    web: Web,
    member: LoggedIn,
    owned: Arc<UserData>,
    /// The rule that is edited; `None` for a new one.
    rule: Option<Rule>,
    form: RuleForm,
    query: Option<String>,
    /// The result of the form on past releases, if it was asked for.
    tried: Option<Markup>,
}

impl FromRequestParts<Web> for EditorPage {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, web: &Web) -> Result<EditorPage, PageError> {
        let member = LoggedIn::from_request_parts(parts, web).await?;
        let id = path_param(parts, "id", RuleId::parse).await?;
        let page = EditorPage::for_rule(web.clone(), member, id)?;
        Ok(EditorPage { query: parts.uri.query().map(str::to_owned), ..page })
    }
}

impl EditorPage {
    fn for_new(web: Web, member: LoggedIn, form: RuleForm) -> EditorPage {
        let owned = web.user_data(&member);
        EditorPage { web, member, owned, rule: None, form, query: None, tried: None }
    }

    /// The form as sent, for a new rule or the one that it names.
    fn of(
        web: Web,
        member: LoggedIn,
        rule: Option<RuleId>,
        form: RuleForm,
    ) -> Result<EditorPage, PageError> {
        Ok(match rule {
            Some(id) => EditorPage { form, ..EditorPage::for_rule(web, member, id)? },
            None => EditorPage::for_new(web, member, form),
        })
    }

    fn for_rule(web: Web, member: LoggedIn, id: RuleId) -> Result<EditorPage, PageError> {
        let owned = web.user_data(&member);
        let rule = owned.rule(id).ok_or(ApiError::NotFound)?.clone();
        let form = RuleForm::for_rule(&rule);
        Ok(EditorPage { web, member, owned, rule: Some(rule), form, query: None, tried: None })
    }

    /// The rule in the path.
    fn rule(&self) -> Result<&Rule, ApiError> {
        self.rule.as_ref().ok_or(ApiError::NotFound)
    }

    /// Renders the page with a preview of the form.
    async fn page(&self) -> Markup {
        self.page_with(None, None).await
    }

    /// Renders the page with an error of the form or of an action.
    async fn page_with(
        &self,
        form_error: Option<&FormError>,
        action_error: Option<&FormError>,
    ) -> Markup {
        let found = preview::preview(&self.web, self.member.viewer.now, &self.form).await;
        let (_, preview) = preview::show(found, form_error.is_none());
        let editor = Editor { page: self, error: form_error, preview };
        match &self.rule {
            Some(rule) => rule::show(rule, &editor, action_error, self.query.as_deref()),
            None => editor::new_page(&editor),
        }
    }

    /// Shows the rejected form with its error.
    async fn rejected(&self, err: ApiError) -> Response {
        let error = FormError::new(err, |property| self.form.field_of(property));
        let page = self.page_with(Some(&error), None).await;
        error.into_page(page)
    }

    /// Redirects to the rule after an action, or shows the page with the error.
    async fn finish<T>(
        self,
        result: Result<T, ApiError>,
        notice: Notice,
    ) -> Result<Response, PageError> {
        match result {
            Ok(_) => Ok(notice.at(&format!("{PATH}/{}", self.rule()?.id)).into_response()),
            Err(err) => self.refused(err).await,
        }
    }

    /// Shows the page with the error of an action.
    async fn refused(self, err: ApiError) -> Result<Response, PageError> {
        if matches!(err, ApiError::NotFound) {
            return Err(err.into());
        }
        let error = FormError::new(err, |_| None);
        let page = self.page_with(None, Some(&error)).await;
        Ok(error.into_page(page))
    }

    async fn set_active(self, active: bool, notice: Notice) -> Result<Response, PageError> {
        let patch = RulePatch { active: Some(active), ..RulePatch::default() };
        let id = self.rule()?.id;
        let changed = self.web.app.store.change_rule(&self.member.caller, id, patch).await;
        self.finish(changed.map_err(ApiError::from), notice).await
    }
}

/// `GET /alerts`: all rules, newest first.
async fn list_rules(
    State(web): State<Web>,
    member: LoggedIn,
    RawQuery(query): RawQuery,
) -> Result<Markup, PageError> {
    let rows = Params::new(query.as_deref()).page(ROW_LIMITS, ENTRIES_OFFSET_MAX)?;
    let limit = web.app.store.limits(&member.caller).active_rules;
    Ok(list::show(&member, &web.user_data(&member), limit, rows, query.as_deref()))
}

/// `GET /alerts/new`: an empty form, or one filled from the link.
async fn new_rule(State(web): State<Web>, member: LoggedIn, RawQuery(query): RawQuery) -> Markup {
    let profile = web.app.store.profile(&member.caller, member.viewer.now.0);
    let configured = web.app.reach.channels;
    let defaults = ChannelDefaults {
        email: configured.email && profile.as_ref().is_some_and(|profile| profile.is_verified),
        chat: profile
            .and_then(|profile| profile.telegram_chat)
            .filter(|_| member.caller.plan != Plan::Free && configured.telegram),
    };
    let owned = web.user_data(&member);
    let form = RuleForm::from_link(Fields::from_query(query.as_deref()), defaults, &owned);
    EditorPage::for_new(web, member, form).page().await
}

/// `POST /alerts/new`: creates a rule.
async fn add(
    State(web): State<Web>,
    member: LoggedIn,
    Form(fields): LargeForm<Fields>,
) -> Result<Response, PageError> {
    let post = idempotent_post(&fields, member.viewer.now);
    let form = RuleForm::new(fields);
    let id = match add_rule(&web, &member, &form, post).await {
        Ok(id) => id,
        Err(err) => return Ok(EditorPage::for_new(web, member, form).rejected(err).await),
    };
    let data = web.user_data(&member);
    let secrets = data.rule(id).map(|rule| rule.secrets.as_slice()).unwrap_or_default();
    Ok(saved(&member, id, secrets, ADDED))
}

async fn add_rule(
    web: &Web,
    member: &LoggedIn,
    form: &RuleForm,
    post: Post,
) -> Result<RuleId, ApiError> {
    form.check()?;
    let read = form.clone();
    let parse =
        move |owned: &UserData, hosts: &HostRules, today| read.new_rule(owned, hosts, today);
    let draft = rules::add(&web.app, &member.caller, form.compiles(), parse, post).await?;
    let answered = draft.respond(|rule| receipt::of_id(rule.id.get())).await?;
    let id = added_id(&answered, |rule| rule.id.get()).and_then(RuleId::new);
    id.ok_or(ApiError::NotFound)
}

/// `POST /alerts/preview`: the matches of the form. Scripts get the preview only.
async fn preview(
    State(web): State<Web>,
    member: LoggedIn,
    headers: HeaderMap,
    Form(fields): LargeForm<Fields>,
) -> Result<Response, PageError> {
    let rule = RuleId::parse(fields.text("rule"));
    let form = RuleForm::new(fields);
    if wanted(&headers) == Wanted::Part {
        let found = preview::preview(&web, member.viewer.now, &form).await;
        return Ok(vary(preview::show(found, true).into_response()));
    }
    let page = EditorPage::of(web, member, rule, form)?;
    Ok(page.page().await.into_response())
}

/// `POST /alerts/backtest`: the form, tried on the releases of the last year.
async fn try_on_past(
    State(web): State<Web>,
    member: LoggedIn,
    headers: HeaderMap,
    Form(fields): LargeForm<Fields>,
) -> Result<Response, PageError> {
    let rule = RuleId::parse(fields.text("rule"));
    let form = RuleForm::new(fields);
    let found = backtest::backtest(&web, member.viewer.now, &member.caller, &form).await;
    let tried = backtest::show(found);
    if wanted(&headers) == Wanted::Part {
        return Ok(vary(tried.into_response()));
    }
    let page = EditorPage::of(web, member, rule, form)?;
    Ok(EditorPage { tried: Some(tried.1), ..page }.page().await.into_response())
}

/// `GET /alerts/{id}`. Scripts get the deliveries only.
async fn show_rule(page: EditorPage, headers: HeaderMap) -> Response {
    match &page.rule {
        Some(rule) if wanted(&headers) == Wanted::Part => {
            vary(rule::deliveries(rule.id, &page.owned, &page.member).into_response())
        }
        _ => page.page().await.into_response(),
    }
}

/// `POST /alerts/{id}`: saves the form.
async fn save(page: EditorPage, Form(fields): LargeForm<Fields>) -> Result<Response, PageError> {
    let page = EditorPage { form: RuleForm::new(fields), ..page };
    let rule = page.rule()?;
    let changed = match page.form.check() {
        Ok(()) => {
            let (form, of) = (page.form.clone(), rule.clone());
            let parse = move |before: &[Channel], hosts: &HostRules, today| {
                form.patch(&of, before, hosts, today)
            };
            let compiles = page.form.compiles();
            rules::change(&page.web.app, &page.member.caller, rule.id, compiles, parse).await
        }
        Err(err) => Err(err),
    };
    match changed {
        Ok(ChangedRule { new_secrets, .. }) => {
            Ok(saved(&page.member, rule.id, &new_secrets, SAVED))
        }
        Err(err) => Ok(page.rejected(err).await),
    }
}

/// `GET /alerts/{id}/delete`.
async fn confirm_delete(page: EditorPage) -> Result<Markup, PageError> {
    Ok(rule::confirm_delete(&page.member, page.rule()?))
}

/// `POST /alerts/{id}/delete`.
async fn remove(page: EditorPage) -> Result<Response, PageError> {
    let acting = Acting::new(&page.web, &page.member)?;
    page.web.app.store.remove_rule(&acting.caller, page.rule()?.id).await?;
    Ok(acting.redirect(PATH, &[REMOVED.parameter()]))
}

/// `POST /alerts/{id}/test`: sends a test message.
async fn test(page: EditorPage) -> Result<Response, PageError> {
    let (app, now, id) = (&page.web.app, page.member.viewer.now, page.rule()?.id);
    let post = repeatable_post(now);
    let queued = match rules::draft_test(app, &page.member.caller, id, now, post).await {
        Ok(draft) => draft.finish().await.map_err(ApiError::from),
        Err(err) => Err(err),
    };
    // The API's message names the request that enables a channel, but the page has a form for it.
    let queued = queued.map_err(|err| match err {
        ApiError::Write(WriteError::Conflict(_)) => ApiError::Write(WriteError::Conflict(
            "every channel of this rule is off; save it with an enabled channel, then send a test"
                .to_owned(),
        )),
        err => err,
    });
    page.finish(queued, TESTED).await
}

/// `POST /alerts/{id}/secrets`: replaces the secrets of the webhooks, and shows the new ones.
async fn replace_secrets(page: EditorPage) -> Result<Response, PageError> {
    let rule = page.rule()?.id;
    match replaced(&page.web, &page.member, rule).await {
        Ok(response) => Ok(response),
        Err(err) => page.refused(err).await,
    }
}

/// Replaces the secrets of a rule or the watchlist.
async fn replaced(web: &Web, member: &LoggedIn, rule: RuleId) -> Result<Response, ApiError> {
    let post = repeatable_post(member.viewer.now);
    let draft = web.app.store.replace_secrets(&member.caller, rule, post).await?;
    Ok(rule::secrets(member, rule, &draft.finish().await?).into_response())
}

/// `POST /alerts/{id}/pause`.
async fn pause(page: EditorPage) -> Result<Response, PageError> {
    page.set_active(false, PAUSED).await
}

/// `POST /alerts/{id}/resume`.
async fn resume(page: EditorPage) -> Result<Response, PageError> {
    page.set_active(true, RESUMED).await
}

/// `POST /alerts/{id}/deliveries/{delivery}/retry`.
async fn retry(
    page: EditorPage,
    Path((_, delivery)): Path<(String, String)>,
) -> Result<Response, PageError> {
    let delivery = DeliveryId::parse(&delivery).ok_or(ApiError::NotFound)?;
    let (caller, id) = (&page.member.caller, page.rule()?.id);
    let post = repeatable_post(page.member.viewer.now);
    let queued = requeue(&page.web, caller, id, delivery, post).await;
    page.finish(queued, RETRIED).await
}

/// Queues a failed message of a rule or the watchlist again.
async fn requeue(
    web: &Web,
    caller: &Caller,
    rule: RuleId,
    delivery: DeliveryId,
    post: Post,
) -> Result<Delivery, ApiError> {
    Ok(web.app.store.requeue(caller, rule, delivery, post).await?.finish().await?)
}

/// Response after saving a rule or the watchlist's settings: the secrets of new webhooks, shown once, or
/// a redirect to the page.
fn saved(member: &LoggedIn, id: RuleId, secrets: &[WebhookSecret], notice: Notice) -> Response {
    if secrets.is_empty() {
        return notice.at(&settings_page("", id)).into_response();
    }
    rule::secrets(member, id, secrets).into_response()
}
