//! `/alerts`: rules, what they would match, and what became of what they sent. Rules are judged, added
//! and changed as the API does it.

mod editor;
mod form;
mod list;
mod preview;
mod rule;
mod words;

use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use maud::Markup;

use crate::accounts::{ChangedRule, Rule, UserData};
use crate::http::alerts::{self, RulePatchRequest, deliveries};
use crate::http::body::Patch;
use crate::http::error::ApiError;
use crate::http::params::{Params, path_id};
use crate::http::response::added_id;
use crate::vocab::ids::{DeliveryId, RuleId};
use crate::vocab::limits::ENTRIES_OFFSET_MAX;
use crate::vocab::plan::Plan;
use crate::web::Web;
use crate::web::error::PageError;
use crate::web::field::FormError;
use crate::web::form::{Fields, Form};
use crate::web::fragment::{Wanted, vary, wanted};
use crate::web::notice::Notice;
use crate::web::owned::{ROW_LIMITS, idempotent_post, repeatable_post};
use crate::web::viewer::LoggedIn;
use editor::{Editor, PATH};
use form::{ChannelDefaults, RuleForm};
use rule::ShownSecret;

const ADDED: Notice =
    Notice::new("added", "The rule is at work: the next list is matched with it.");
const SAVED: Notice = Notice::new("saved", "The rule was saved.");
const PAUSED: Notice = Notice::new("paused", "The rule is paused: nothing is matched with it.");
const RESUMED: Notice = Notice::new("resumed", "The rule is at work again.");
const REMOVED: Notice = Notice::new("removed", "The rule was deleted.");
const TESTED: Notice = Notice::new("tested", "A test is on its way; its fate is shown below.");
const RETRIED: Notice = Notice::new("retried", "The message is tried again.");
const NOTICES: [Notice; 7] = [ADDED, SAVED, PAUSED, RESUMED, REMOVED, TESTED, RETRIED];

/// The routes of alert rules.
pub fn routes() -> Router<Web> {
    Router::new()
        .route(PATH, get(show))
        .route("/alerts/new", get(ask_new).post(add))
        .route("/alerts/preview", post(preview))
        .route("/alerts/{id}", get(show_rule).post(save))
        .route("/alerts/{id}/delete", get(ask_removal).post(remove))
        .route("/alerts/{id}/test", post(test))
        .route("/alerts/{id}/pause", post(pause))
        .route("/alerts/{id}/resume", post(resume))
        .route("/alerts/{id}/deliveries/{delivery}/retry", post(retry))
}

type RulePath = Result<Path<String>, PathRejection>;

/// `GET /alerts`: all rules, newest first.
async fn show(
    State(web): State<Web>,
    member: LoggedIn,
    RawQuery(query): RawQuery,
) -> Result<Markup, PageError> {
    let rows = Params::new(query.as_deref()).page(ROW_LIMITS, ENTRIES_OFFSET_MAX)?;
    let owned = web.user_data(&member);
    let limit = web.app.store.limits(&member.caller).active_rules;
    Ok(list::show(&member, &owned, limit, rows, query.as_deref()))
}

/// `GET /alerts/new`: an empty form, or one that a link fills.
async fn ask_new(State(web): State<Web>, member: LoggedIn, RawQuery(query): RawQuery) -> Markup {
    let caller = &member.caller;
    let profile = web.app.store.profile(caller, member.viewer.now.0);
    let usual = ChannelDefaults {
        email: web.app.channels.email
            && profile.as_ref().is_some_and(|profile| profile.is_verified),
        chat: profile
            .and_then(|profile| profile.telegram_chat)
            .filter(|_| caller.plan != Plan::Free && web.app.channels.telegram),
    };
    let form = RuleForm::from_link(&Fields::from_query(query.as_deref()), usual);
    EditorPage::for_new(web, member, form).page().await
}

/// `POST /alerts/new`: a rule that is at work from now on.
async fn add(
    State(web): State<Web>,
    member: LoggedIn,
    Form(fields): Form<Fields>,
) -> Result<Response, PageError> {
    let form = RuleForm::from_fields(&fields);
    let post = idempotent_post(&fields, member.viewer.now);
    let answered = match alerts::add(&web.app, &member.caller, form.sent(), post).await {
        Ok(answered) => answered,
        Err(err) => return Ok(EditorPage::for_new(web, member, form).refused(err).await),
    };
    let id = added_id(&answered, |rule| rule.id.get()).and_then(RuleId::new);
    let id = id.ok_or(ApiError::NotFound)?;
    let data = web.user_data(&member);
    let secrets = data.rule(id).map(|rule| rule.secrets.as_slice()).unwrap_or_default();
    let secrets: Vec<_> = secrets.iter().map(ShownSecret::from).collect();
    Ok(saved(&member, id, &secrets, ADDED))
}

/// `POST /alerts/preview`: what the rule of a form would match; a script gets that alone.
async fn preview(
    State(web): State<Web>,
    member: LoggedIn,
    headers: HeaderMap,
    Form(fields): Form<Fields>,
) -> Result<Response, PageError> {
    let form = RuleForm::from_fields(&fields);
    if wanted(&headers) == Wanted::Part {
        let found = preview::preview(&web, member.viewer.now, &form).await;
        let (status, shown) = preview::shown(found, true);
        return Ok(vary((status, shown).into_response()));
    }
    let desk = match RuleId::parse(fields.text("rule")) {
        Some(id) => EditorPage { form, ..EditorPage::for_rule(web, member, id)? },
        None => EditorPage::for_new(web, member, form),
    };
    Ok(desk.page().await.into_response())
}

/// `GET /alerts/{id}`.
async fn show_rule(
    State(web): State<Web>,
    member: LoggedIn,
    id: RulePath,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, PageError> {
    let desk =
        EditorPage { query, ..EditorPage::for_rule(web, member, path_id(id, RuleId::parse)?)? };
    match &desk.rule {
        Some(rule) if wanted(&headers) == Wanted::Part => {
            let deliveries = rule::deliveries(rule, &desk.owned);
            Ok(vary(deliveries.into_response()))
        }
        _ => Ok(desk.page().await.into_response()),
    }
}

/// `POST /alerts/{id}`: the rule as its form has it.
async fn save(
    State(web): State<Web>,
    member: LoggedIn,
    id: RulePath,
    Form(fields): Form<Fields>,
) -> Result<Response, PageError> {
    let id = path_id(id, RuleId::parse)?;
    let form = RuleForm::from_fields(&fields);
    let desk = EditorPage::for_rule(web, member, id)?;
    let patch = desk.rule.as_ref().map(|rule| form.patch(rule)).unwrap_or_default();
    match alerts::change(&desk.web.app, &desk.member.caller, id, patch).await {
        Ok(ChangedRule { new_secrets, .. }) => {
            let secrets: Vec<_> = new_secrets.iter().map(ShownSecret::from).collect();
            Ok(saved(&desk.member, id, &secrets, SAVED))
        }
        Err(err) => Ok(EditorPage { form, ..desk }.refused(err).await),
    }
}

/// `GET /alerts/{id}/delete`.
async fn ask_removal(
    State(web): State<Web>,
    member: LoggedIn,
    id: RulePath,
) -> Result<Markup, PageError> {
    let owned = web.user_data(&member);
    let rule = owned.rule(path_id(id, RuleId::parse)?).ok_or(ApiError::NotFound)?;
    Ok(rule::removal(&member, rule))
}

/// `POST /alerts/{id}/delete`.
async fn remove(
    State(web): State<Web>,
    member: LoggedIn,
    id: RulePath,
) -> Result<Redirect, PageError> {
    web.app.store.remove_rule(&member.caller, path_id(id, RuleId::parse)?).await?;
    Ok(REMOVED.at(PATH))
}

/// `POST /alerts/{id}/test`: a message that is marked as a test.
async fn test(
    State(web): State<Web>,
    member: LoggedIn,
    id: RulePath,
) -> Result<Response, PageError> {
    let id = path_id(id, RuleId::parse)?;
    let (caller, now) = (&member.caller, member.viewer.now);
    match deliveries::test(&web.app, caller, id, now, repeatable_post(now)).await {
        Ok(_) => Ok(TESTED.at(&format!("{PATH}/{id}")).into_response()),
        // The API says how it would be done there.
        Err(ApiError::Conflict(_)) => {
            let text = "Every channel of this rule is off. Save it with a channel that is to be used, then test it.";
            let fault = FormError::new(StatusCode::CONFLICT, None, text);
            Ok(EditorPage::for_rule(web, member, id)?.refused_action(fault).await)
        }
        Err(err) => {
            let fault = FormError::of(err, |_| None);
            Ok(EditorPage::for_rule(web, member, id)?.refused_action(fault).await)
        }
    }
}

/// `POST /alerts/{id}/pause`.
async fn pause(web: State<Web>, member: LoggedIn, id: RulePath) -> Result<Response, PageError> {
    set_active(web, member, id, false, PAUSED).await
}

/// `POST /alerts/{id}/resume`.
async fn resume(web: State<Web>, member: LoggedIn, id: RulePath) -> Result<Response, PageError> {
    set_active(web, member, id, true, RESUMED).await
}

async fn set_active(
    State(web): State<Web>,
    member: LoggedIn,
    id: RulePath,
    active: bool,
    done: Notice,
) -> Result<Response, PageError> {
    let id = path_id(id, RuleId::parse)?;
    let patch = RulePatchRequest { active: Patch::Value(active), ..RulePatchRequest::default() };
    match alerts::change(&web.app, &member.caller, id, patch).await {
        Ok(_) => Ok(done.at(&format!("{PATH}/{id}")).into_response()),
        Err(err) => {
            let fault = FormError::of(err, |_| None);
            Ok(EditorPage::for_rule(web, member, id)?.refused_action(fault).await)
        }
    }
}

/// `POST /alerts/{id}/deliveries/{delivery}/retry`.
async fn retry(
    State(web): State<Web>,
    member: LoggedIn,
    ids: Result<Path<(String, String)>, PathRejection>,
) -> Result<Response, PageError> {
    let Path((id, delivery)) = ids.map_err(|_| ApiError::NotFound)?;
    let id = RuleId::parse(&id).ok_or(ApiError::NotFound)?;
    let delivery = DeliveryId::parse(&delivery).ok_or(ApiError::NotFound)?;
    let (caller, post) = (&member.caller, repeatable_post(member.viewer.now));
    match deliveries::retry(&web.app, caller, id, delivery, post).await {
        Ok(_) => Ok(RETRIED.at(&format!("{PATH}/{id}")).into_response()),
        Err(ApiError::NotFound) => Err(ApiError::NotFound.into()),
        Err(err) => {
            let fault = FormError::of(err, |_| None);
            Ok(EditorPage::for_rule(web, member, id)?.refused_action(fault).await)
        }
    }
}

/// After a rule was saved: the secrets of its new webhooks, once, or its page.
fn saved(member: &LoggedIn, id: RuleId, secrets: &[ShownSecret], notice: Notice) -> Response {
    if secrets.is_empty() {
        return notice.at(&format!("{PATH}/{id}")).into_response();
    }
    rule::secrets(member, &id.to_string(), secrets).into_response()
}

/// What a page with an editor is made of.
struct EditorPage {
    web: Web,
    member: LoggedIn,
    /// All the account owns, at one moment.
    owned: Arc<UserData>,
    /// The rule that is changed; `None` for a new one.
    rule: Option<Rule>,
    form: RuleForm,
    query: Option<String>,
}

impl EditorPage {
    /// For a rule that is to be added.
    fn for_new(web: Web, member: LoggedIn, form: RuleForm) -> EditorPage {
        let owned = web.user_data(&member);
        EditorPage { web, member, owned, rule: None, form, query: None }
    }

    /// For a rule of the account, with a form of it as it is.
    fn for_rule(web: Web, member: LoggedIn, id: RuleId) -> Result<EditorPage, PageError> {
        let owned = web.user_data(&member);
        let rule = owned.rule(id).ok_or(ApiError::NotFound)?.clone();
        let form = RuleForm::for_rule(&rule);
        Ok(EditorPage { web, member, owned, rule: Some(rule), form, query: None })
    }

    /// The page, with what the form's rule would match.
    async fn page(&self) -> Markup {
        self.page_with(None, None).await
    }

    /// The same with what is wrong: with the form, and with something else.
    async fn page_with(&self, fault: Option<&FormError>, problem: Option<&FormError>) -> Markup {
        let found = preview::preview(&self.web, self.member.viewer.now, &self.form).await;
        let (_, preview) = preview::shown(found, fault.is_none());
        let editor = self.editor(fault, preview);
        match &self.rule {
            Some(rule) => rule::show(rule, &editor, problem, self.query.as_deref()),
            None => editor::new_page(&editor),
        }
    }

    /// The page again, since its form was refused.
    async fn refused(&self, err: ApiError) -> Response {
        let fault = match err {
            ApiError::IdempotencyConflict => {
                let text =
                    "This form was sent before, with other values. Look at them and send it again.";
                FormError::new(StatusCode::CONFLICT, None, text)
            }
            err => FormError::of(err, |member| self.form.field_of(member)),
        };
        let page = self.page_with(Some(&fault), None).await;
        fault.answer(page)
    }

    /// The page again, since a button of it did nothing.
    async fn refused_action(&self, fault: FormError) -> Response {
        let page = self.page_with(None, Some(&fault)).await;
        fault.answer(page)
    }

    fn editor<'a>(&'a self, fault: Option<&'a FormError>, preview: Markup) -> Editor<'a> {
        let EditorPage { web, member, form, owned, .. } = self;
        let profile = web.app.store.profile(&member.caller, member.viewer.now.0);
        let is_verified = profile.is_some_and(|profile| profile.is_verified);
        let rule = self.rule.as_ref();
        Editor { web, member, form, rule, owned, is_verified, fault, preview }
    }
}
