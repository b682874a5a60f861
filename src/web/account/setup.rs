//! `/setup`: the page of a new server. It asks for the first account, the contact for publishers and the lists
//! to fetch, and then shows how far the lists are, until there is an index.

use axum::extract::{RawQuery, Request, State};
use axum::http::header::{HeaderName, HeaderValue};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use chrono::{DateTime, Utc};
use maud::{Markup, html};

use super::welcome::{FirstVisit, judge_parts, let_in_owner, lock_choice, makes_owner};
use crate::Web;
use crate::account::login::{begin_first, plain_warning};
use crate::account::wait_text;
use crate::accounts::{Attempt, Email, Password, Person};
use crate::components::{counted, grouped};
use crate::edge::local::Local;
use crate::error::{PageError, sentence};
use crate::field::{Field, Input};
use crate::form::{Fields, Form};
use crate::layout::Page;
use crate::peer::Peer;
use crate::service::error::ApiError;
use crate::service::site::{Setup, Site};
use crate::sources::presets::{Class, Content};
use crate::sources::settings::Contact;
use crate::sources::state::View;
use crate::telemetry::security::{self, SecurityEvent};
use crate::throttle::Wait;
use crate::viewer::Viewer;
use crate::vocab::secret::Secret;

pub const PATH: &str = "/setup";
const REFRESH: HeaderName = HeaderName::from_static("refresh");
/// Seconds between two reloads of the page that shows the progress.
const REFRESH_SECONDS: HeaderValue = HeaderValue::from_static("3");
/// Query strings: the owner changes the choice; the page does not reload.
const CHOOSE: &str = "choose";
const STILL: &str = "still";
/// Hexadecimal digits of the setup code, which is 40 bits.
const CODE_DIGITS: usize = 10;

/// Who may set the server up.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Who {
    /// The browser on the machine of a single-user server without an account.
    FirstVisit,
    /// No account exists, so the visitor needs the code that the server printed.
    Holder,
    /// The owner, whose account exists.
    Owner,
}

/// State of the setup for a visitor.
enum Stage {
    /// There is an index, or the visitor may not set the server up.
    Closed,
    /// No source is enabled yet.
    Asking(Who),
    /// The owner waits for the first index.
    Fetching,
}

impl Stage {
    fn of(web: &Web, who: Option<Who>) -> Stage {
        if web.app.site.setup.is_none() || web.app.has_lists() {
            return Stage::Closed;
        }
        let is_fetching = web.app.status.sources.views().iter().any(View::is_enabled);
        match who {
            Some(Who::Owner) if is_fetching => Stage::Fetching,
            Some(who) => Stage::Asking(who),
            None => Stage::Closed,
        }
    }
}

fn who(web: &Web, member: Option<&Person>, is_first: bool) -> Option<Who> {
    match member {
        Some(member) => member.is_owner.then_some(Who::Owner),
        None if is_first => Some(Who::FirstVisit),
        None => asks_code(web).then_some(Who::Holder),
    }
}

/// Whether the first account is created with the setup code.
pub fn asks_code(web: &Web) -> bool {
    let is_new = !web.app.has_lists() && !web.app.store.has_accounts();
    web.app.site.setup.is_some() && is_new && !makes_owner(web)
}

/// The setup code, which changes with each start.
pub fn code(site: &Site) -> String {
    let digits = site.owner_link.digest().public_id()[..CODE_DIGITS].to_uppercase();
    let (one, other) = digits.split_at(CODE_DIGITS / 2);
    format!("{one}-{other}")
}

/// Leads visitors of `/`, and first ones of `/welcome`, to the setup while it waits for them.
pub async fn lead(State(web): State<Web>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let is_start = matches!(parts.uri.path(), "/" | "/welcome") && parts.uri.query().is_none();
    if is_start && parts.method == Method::GET && !web.app.has_lists() {
        let is_first = makes_owner(&web) && judge_parts(&web, &parts) == Local::Yes;
        let stage = Stage::of(&web, who(&web, parts.extensions.get::<Person>(), is_first));
        if matches!(stage, Stage::Asking(Who::FirstVisit | Who::Holder) | Stage::Fetching) {
            return Redirect::to(PATH).into_response();
        }
    }
    next.run(Request::from_parts(parts, body)).await
}

/// Errors of the form by field.
#[derive(Default)]
struct Problems {
    email: Option<String>,
    password: Option<String>,
    code: Option<String>,
    contact: Option<String>,
    sources: Option<String>,
}

impl Problems {
    fn is_none(&self) -> bool {
        [&self.email, &self.password, &self.code, &self.contact, &self.sources]
            .iter()
            .all(|problem| problem.is_none())
    }
}

/// The account of the owner, as the form has it.
enum Owner {
    Exists,
    /// The owner of a single-user server, with or without a password.
    Here(Option<Password>),
    Named(Email, Password),
}

/// `GET /setup`: the form or, while lists are fetched, the progress.
pub async fn ask(
    State(web): State<Web>,
    viewer: Viewer,
    first: FirstVisit,
    RawQuery(query): RawQuery,
    parts: Parts,
) -> Response {
    let who = who(&web, viewer.member.as_ref(), first.0);
    match Stage::of(&web, who) {
        Stage::Closed => Redirect::to("/").into_response(),
        Stage::Fetching if query.as_deref() != Some(CHOOSE) => {
            let reloads = query.as_deref() != Some(STILL);
            let mut response = progress(&web, &viewer, reloads).into_response();
            if reloads {
                response.headers_mut().insert(REFRESH, REFRESH_SECONDS);
            }
            response
        }
        stage => {
            let who = if let Stage::Asking(who) = stage { who } else { Who::Owner };
            let plain = plain_warning(&web, &parts);
            let sent = Fields::default();
            page(&web, &viewer, who, &plain, &sent, &Problems::default()).into_response()
        }
    }
}

/// `POST /setup`: creates the owner's account on the first visit, and enables the chosen sources.
pub async fn start(
    State(web): State<Web>,
    viewer: Viewer,
    first: FirstVisit,
    peer: Peer,
    headers: HeaderMap,
    Form(sent): Form<Fields>,
) -> Result<Response, PageError> {
    let who = who(&web, viewer.member.as_ref(), first.0).filter(|_| !web.app.has_lists());
    let (Some(who), Some(setup)) = (who, &web.app.site.setup) else {
        return Err(ApiError::NotFound.into());
    };
    let mut problems = Problems::default();
    let owner = owner(&web, who, peer, &sent, &mut problems);
    let contact = Some(sent.text("contact").trim()).filter(|text| !text.is_empty());
    let contact = contact.map(|text| Contact::try_from(text.to_owned())).transpose();
    let contact = contact.unwrap_or_else(|why| {
        problems.contact = Some(sentence(&why));
        None
    });
    let views = web.app.status.sources.views();
    let chosen = chosen(&views, &sent).unwrap_or_else(|why| {
        problems.sources = Some(why);
        Vec::new()
    });
    let Some(owner) = owner.filter(|_| problems.is_none()) else {
        let page = page(&web, &viewer, who, &html! {}, &sent, &problems);
        return Ok((StatusCode::BAD_REQUEST, page).into_response());
    };
    let to = if chosen.is_empty() { "/" } else { PATH };
    let Some(response) =
        open(&web, owner, &headers, sent.text("password"), to, viewer.now.0).await?
    else {
        return Err(ApiError::NotFound.into());
    };
    // Afterwards, so that the owner can choose again if this fails.
    let (folder, now) = (setup.sources.clone(), viewer.now.0);
    let saved = tokio::task::spawn_blocking(move || {
        contact.iter().try_for_each(|contact| folder.set_contact(contact))?;
        folder.enable(&chosen, now).map(|()| chosen)
    });
    let saved = saved.await.map_err(|err| ApiError::Internal(err.into()))?;
    let chosen = saved.map_err(ApiError::Internal)?;
    web.app.status.sources.enabled(&chosen, now);
    Ok(response)
}

/// Parses the account of the owner.
fn owner(web: &Web, who: Who, peer: Peer, sent: &Fields, problems: &mut Problems) -> Option<Owner> {
    let password = || Secret::new(sent.text("password").to_owned());
    let mut chosen = |email: Option<&Email>| {
        Password::chosen(password(), email)
            .map_err(|err| problems.password = Some(sentence(&err.to_string())))
            .ok()
    };
    match who {
        Who::Owner => Some(Owner::Exists),
        Who::FirstVisit if sent.text("lock") != "password" => Some(Owner::Here(None)),
        Who::FirstVisit => Some(Owner::Here(Some(chosen(None)?))),
        Who::Holder => {
            let email = sent.text("email").parse::<Email>();
            let password = chosen(email.as_ref().ok());
            let email = email.map_err(|err| problems.email = Some(sentence(&err.to_string())));
            problems.code = code_problem(web, peer, sent.text("code")).err();
            Some(Owner::Named(email.ok()?, password?))
        }
    }
}

/// Compares a setup code.
///
/// # Errors
/// A sentence.
fn code_problem(web: &Web, peer: Peer, sent: &str) -> Result<(), String> {
    web.throttle.sign_up(peer).map_err(|wait: Wait| wait_text(wait))?;
    let digits = |text: &str| -> String {
        text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_uppercase()
    };
    if digits(sent) == digits(&code(&web.app.site)) {
        return Ok(());
    }
    Err("This is not the code that the server printed at its last start.".to_owned())
}

/// Creates the account on the first visit, and logs its owner in. `None` if another browser did it before.
async fn open(
    web: &Web,
    owner: Owner,
    headers: &HeaderMap,
    typed: &str,
    to: &str,
    now: DateTime<Utc>,
) -> Result<Option<Response>, PageError> {
    let (email, password) = match owner {
        Owner::Exists => return Ok(Some(Redirect::to(to).into_response())),
        Owner::Here(None) => return Ok(let_in_owner(web, to, now).await?),
        Owner::Here(Some(password)) => (None, password),
        Owner::Named(email, password) => (Some(email), password),
    };
    let (first, store) = (Attempt::FIRST_VISIT, &web.app.store);
    let Some(email) = store.add_owner(email, Some(password), first, now).await? else {
        return Ok(None);
    };
    security::record(SecurityEvent::SignUp, email.as_str());
    let typed = Secret::new(typed.to_owned());
    Ok(Some(begin_first(web, headers, &email, typed, first, now, to).await?))
}

/// Whether a page may enable the source: it needs no account, and the settings do not decide.
fn is_offered(view: &View) -> bool {
    let needs_account = view.source.class == Class::Account;
    view.source.enabled.is_none() && (!needs_account || view.source.login.is_some())
}

/// Returns the chosen sources.
fn chosen(views: &[View], sent: &Fields) -> Result<Vec<View>, String> {
    let named = |name: &str| {
        let view = views.iter().find(|view| view.source.name == name && is_offered(view));
        view.cloned().ok_or_else(|| format!("The server has no list {name}. Choose again."))
    };
    sent.filled("source").into_iter().map(named).collect()
}

fn page(
    web: &Web,
    viewer: &Viewer,
    who: Who,
    plain: &Markup,
    sent: &Fields,
    problems: &Problems,
) -> Markup {
    let views = web.app.status.sources.views();
    let offered = || views.iter().filter(|view| is_offered(view) && !view.is_enabled());
    let free: Vec<_> = offered().filter(|view| view.source.class == Class::Free).collect();
    let others: Vec<_> = offered().filter(|view| view.source.class != Class::Free).collect();
    let fixed: Vec<_> = views.iter().filter(|view| view.is_enabled()).collect();
    let is_first = sent.iter().next().is_none();
    let is_checked = |view: &View, default: bool| match is_first {
        true => default,
        false => sent.all("source").any(|name| name == view.source.name),
    };
    let lists = free.iter().filter(|view| view.source.content == Content::Names).count();
    let button = match who {
        Who::Owner => "Fetch the lists",
        Who::FirstVisit | Who::Holder => "Create account and fetch",
    };
    Page::new("Set up", "The first account of this server, and the lists that it fetches.")
        .styles(&["account.css", "setup.css"])
        .scripts(&["account.js", "setup.js"])
        .show(
            Some(viewer),
            html! {
                div.head.setup-head {
                    h1 { "Set up dropdex" }
                    p.soft { "Choose who opens it and which lists it fetches; the ranked list follows when they are in. Everything stays on this machine." }
                }
                (plain)
                form.setup method="post" action=(PATH) {
                    div {
                        @match who {
                            Who::Owner => {}
                            Who::FirstVisit => section.panel { (lock_choice(problems.password.as_deref(), sent.text("lock") == "password")) }
                            Who::Holder => (account_fields(sent, problems)),
                        }
                        @if setup_of(web).contact.is_none() {
                            section.panel {
                                (Field::new("contact", "Contact for publishers of lists (optional)").help("An address such as https://example.com/about or ops@example.com. It is sent with each download, so that a registry can reach you.").problem(problems.contact.as_deref()).input(sent.text("contact"), Input { autocomplete: "email", longest: Some(100), ..Input::TEXT }))
                            }
                        }
                        fieldset.panel.lists {
                            legend { "Which lists?" }
                            p.soft { "Public lists that need no account. " code { "dropdex sources" } " changes the choice at any time." }
                            @if let Some(problem) = &problems.sources { p.error { (problem) } }
                            @for view in fixed { (fixed_row(view)) }
                            @for view in &free { (row(view, is_checked(view, true))) }
                            @if !others.is_empty() {
                                details open[!is_first && others.iter().any(|view| is_checked(view, false))] {
                                    summary { "Lists with terms of their own (" (others.len()) ")" }
                                    p.soft { "Ticking a list accepts the terms beside it. " a href="/docs/sources" { "What they are" } }
                                    @for view in others { (row(view, is_checked(view, false))) }
                                }
                            }
                        }
                    }
                    aside.panel {
                        h2 { (counted(u32::try_from(free.len()).unwrap_or(u32::MAX), "public list")) }
                        @if lists < free.len() { p { (lists) " of them have names; the others are tables." } }
                        p.soft { "They are fetched at once, then by their schedules. The first ranking follows when they are in; most of the time is the download." }
                        button type="submit" { (button) }
                        p.soft { "Without a list, put files into the inbox later: " a href="/docs/sources" { "Drop lists" } "." }
                        p.soft { "Just looking? " code { "dropdex demo" } " serves sample data until it is stopped." }
                    }
                }
            },
        )
}

fn setup_of(web: &Web) -> &Setup {
    web.app.site.setup.as_ref().expect("checked by the caller")
}

fn account_fields(sent: &Fields, problems: &Problems) -> Markup {
    html! {
        section.panel aria-labelledby="owner" {
            div.head { h2 #owner { "Your account" } p.soft { "the first account runs this server" } }
            div.pair {
                (Field::email(sent.text("email"), problems.email.as_deref()))
                (Field::new_password("Password", problems.password.as_deref()))
            }
            (Field::new("code", "Setup code").help("The server printed it when it started: see its output or log.").problem(problems.code.as_deref()).input(sent.text("code"), Input { longest: Some(20), is_required: true, ..Input::TEXT }))
        }
    }
}

fn row(view: &View, is_checked: bool) -> Markup {
    let source = &view.source;
    html! {
        label.choice {
            input type="checkbox" name="source" value=(source.name) checked[is_checked];
            span {
                b { (source.about) }
                small { (source.name) " · " (source.schedule) " · " (source.terms.text) @if source.terms.internal { " Internal use only." } }
            }
        }
    }
}

fn fixed_row(view: &View) -> Markup {
    html! {
        label.choice {
            input type="checkbox" checked disabled;
            span { b { (view.source.about) } small { (view.source.name) " · already enabled" } }
        }
    }
}

/// Renders how far the first lists are.
fn progress(web: &Web, viewer: &Viewer, reloads: bool) -> Markup {
    let (views, running) = (web.app.status.sources.views(), web.app.status.sources.running());
    let enabled: Vec<_> = views.iter().filter(|view| view.is_enabled()).collect();
    let is_in = |view: &View| view.state.last_success.is_some() && view.state.problem.is_none();
    let done = enabled.iter().filter(|view| is_in(view)).count();
    let failed = enabled.iter().filter(|view| view.state.problem.is_some()).count();
    let rows: u64 = enabled.iter().map(|view| view.state.rows).sum();
    let is_over = done + failed == enabled.len();
    Page::new("First lists", "How far the first lists of this server are.")
        .styles(&["account.css", "setup.css"])
        .show(
            Some(viewer),
            html! {
                div.head.setup-head {
                    h1 { "Fetching your first lists" }
                    p.soft { "You can close this page: the server continues, and this address shows its progress." }
                }
                div.setup {
                    div {
                        section.panel aria-labelledby="lists" {
                            div.head {
                                h2 #lists { "Lists" }
                                p.soft { (done) " of " (enabled.len()) " in" @if failed > 0 { ", " (failed) " failed" } }
                            }
                            progress max=(enabled.len()) value=(done + failed) aria-label="Lists that are done" {}
                            table.progress {
                                tbody {
                                    @for view in &enabled {
                                        tr {
                                            th scope="row" { (view.source.name) }
                                            td { (state_of(view, running.contains(&view.source.name))) }
                                        }
                                    }
                                }
                            }
                        }
                        section.panel aria-labelledby="index" {
                            h2 #index { "Index" }
                            p {
                                @match web.app.status.jobs.problem() {
                                    Some(problem) => { "It could not be built: " (problem.text) ". Next try at " (problem.next_try.format("%H:%M UTC")) "." }
                                    None if is_over && rows > 0 => { "It is being built from all lists; the list opens by itself." }
                                    None => { "It is built when the lists are in, at the latest a minute after the first one." }
                                }
                            }
                        }
                    }
                    aside.panel {
                        h2 { (grouped(rows)) " names read" }
                        @if reloads {
                            p.soft { "The list opens by itself: this page reloads every few seconds. " a href={ (PATH) "?" (STILL) } { "Stop reloading" } }
                        } @else {
                            p.soft { a href=(PATH) { "Reload every few seconds" } " until the list opens." }
                        }
                        @if is_over && done == 0 {
                            p.problem { "No list could be fetched. The reasons stand beside the lists; the server tries again by itself." }
                        }
                        p { a href={ (PATH) "?" (CHOOSE) } { "Choose other lists" } }
                        p { "While you wait:" }
                        ul {
                            li { a href="/account/security" { "Set a password" } }
                            li { a href="/account/notifications" { "Choose where alerts go" } }
                            li { a href="/alerts" { "Make a first alert" } }
                            li { a href="/docs/getting-started" { "Getting started" } }
                        }
                    }
                }
            },
        )
}

fn state_of(view: &View, is_running: bool) -> Markup {
    let state = &view.state;
    html! {
        @match &state.problem {
            _ if is_running => { "being fetched" }
            Some(problem) => {
                span.badge.warn { "failed" } " " (sentence(&problem.text))
                @match state.next_run {
                    Some(next) if !problem.waits => { " Next try at " (next.format("%H:%M UTC")) ". " }
                    _ => { " " }
                }
                "The others go on."
            }
            None if state.last_success.is_some() => {
                (grouped(state.rows)) " rows read"
                @if state.rejected > 0 { ", " (grouped(state.rejected)) " refused" }
            }
            None => { span.soft { "waits" } }
        }
    }
}
