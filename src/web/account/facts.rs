//! `/account/facts`: files of facts that the account adds, and the sources of facts of the server.

use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};

use crate::Web;
use crate::account::{Tab, tab_page};
use crate::accounts::{FactsRow, WriteError};
use crate::components::Column::{Hidden, Number, Text};
use crate::components::{date, grouped, table};
use crate::error::PageError;
use crate::facts_file::store::SourceMeta;
use crate::facts_file::{Choices, FactsError, Report};
use crate::field::{Field, FormError, Input};
use crate::form::{Fields, FileForm, Form};
use crate::logged_in::LoggedIn;
use crate::notice::{self, Notice};
use crate::owned::{day, nothing};
use crate::service::error::ApiError;
use crate::service::facts::{self, ReadFile};
use crate::vocab::limits::FACTS_ROWS_MAX;
use crate::vocab::money::Currency;

const PATH: &str = "/account/facts";
const REMOVED: Notice = Notice::new("removed", "The facts are removed.");
const GONE: Notice = Notice::new("gone", "These facts were already removed.");
const MAPPED: Notice = Notice::new("mapped", "Saved. Choose the file again to add it.");
const NOTICES: [Notice; 3] = [REMOVED, GONE, MAPPED];
/// Orders of day and month, with the empty choice.
pub(crate) const DATE_ORDERS: [(&str, &str); 3] = [
    ("", "As the file shows"),
    ("dmy", "Day first (31/12/2026)"),
    ("mdy", "Month first (12/31/2026)"),
];

/// `GET /account/facts`.
pub async fn show(State(web): State<Web>, member: LoggedIn, RawQuery(query): RawQuery) -> Markup {
    let notice = notice::shown(&NOTICES, query.as_deref());
    page(&web, &member, &notice, (&Fields::default(), None))
}

/// `POST /account/facts`: adds a file. Files with unknown columns are answered with a form for them.
pub async fn add(
    State(web): State<Web>,
    member: LoggedIn,
    FileForm { file, fields }: FileForm,
) -> Result<Response, PageError> {
    let again = |err: ApiError| {
        let field_of = |name: &str| Some(if name == "body" { "file" } else { name }.to_owned());
        let error = FormError::new(err, field_of);
        let page = page(&web, &member, &html! {}, (&fields, Some(&error)));
        error.into_page(page)
    };
    let choices = match choices(&fields) {
        Ok(choices) => choices,
        Err(err) => return Ok(again(err)),
    };
    let now = member.viewer.now;
    match facts::add(&web.app, &member.caller, file, choices, now, false).await {
        Ok(Ok(read)) => Ok(result_page(&member, &read).into_response()),
        Ok(Err(FactsError::Unmapped { fingerprint, columns })) => {
            let columns: Vec<_> = columns.iter().map(|header| (header.as_str(), "")).collect();
            Ok(mapping_page(&member, &fingerprint.to_string(), &columns, None).into_response())
        }
        Ok(Err(err)) => Ok(again(facts::unreadable(err))),
        Err(err) => Ok(again(err)),
    }
}

/// Reads the choices of a form with a file.
///
/// # Errors
/// 400 for an unknown order or currency.
pub(crate) fn choices(fields: &Fields) -> Result<Choices, ApiError> {
    let date_order = match fields.text("date_order") {
        "" => None,
        order => Some(
            order.parse().map_err(|_| ApiError::parameter("date_order", "must be dmy or mdy"))?,
        ),
    };
    let currency = match fields.text("currency").trim() {
        "" => None,
        code => Some(Currency::parse(&code.to_uppercase()).ok_or_else(|| {
            ApiError::parameter("currency", "must be the code of a currency in use, such as EUR")
        })?),
    };
    Ok(Choices { date_order, currency, ..Choices::default() })
}

/// `POST /account/facts/mapping`: remembers what the columns of a file are.
pub async fn map(
    State(web): State<Web>,
    member: LoggedIn,
    Form(fields): Form<Fields>,
) -> Result<Response, PageError> {
    let print = fields.text("fingerprint");
    let columns: Vec<String> = fields.all("column").map(str::to_owned).collect();
    let text = match facts::mapping_text(print, &columns) {
        Ok(text) => text,
        Err(err @ ApiError::BadParameter { .. }) => {
            let error = FormError::new(err, |_| None);
            let sent = columns.iter().map(String::as_str);
            let columns: Vec<_> = fields.all("header").zip(sent).collect();
            let page = mapping_page(&member, print, &columns, Some(&error));
            return Ok(error.into_page(page));
        }
        Err(err) => return Err(err.into()),
    };
    web.app.store.map_facts(&member.caller, print.into(), Some(text.into())).await?;
    Ok(MAPPED.at(PATH).into_response())
}

/// `POST /account/facts/remove`: removes an own source.
pub async fn remove(
    State(web): State<Web>,
    member: LoggedIn,
    Form(fields): Form<Fields>,
) -> Result<Redirect, PageError> {
    let notice = match web.app.store.remove_facts(&member.caller, fields.text("source")).await {
        Ok(()) => REMOVED,
        Err(WriteError::NotFound) => GONE,
        Err(err) => return Err(err.into()),
    };
    Ok(notice.at(PATH))
}

/// Renders the page, with the fields and the error of a refused file.
fn page(
    web: &Web,
    member: &LoggedIn,
    notice: &Markup,
    (fields, error): (&Fields, Option<&FormError>),
) -> Markup {
    let owned = web.user_data(member);
    let visible = web.app.facts.visible(Some(&owned));
    let today = web.app.as_of(member.viewer.now).today;
    let rows: u64 = owned.facts().sources().map(|it| it.row.rows).sum();
    let (own, of_server): (Vec<_>, Vec<_>) = visible.sources().iter().partition(|it| it.is_own);
    let own_head = [
        Text("Source"),
        Text("Facts"),
        Number("Rows"),
        Text("Added"),
        Text("Last file"),
        Hidden("Actions"),
    ];
    let server_head = [
        Text("Source"),
        Text("Facts"),
        Number("Rows"),
        Text("As of"),
        Text("Licence"),
        Text("Attribution"),
    ];
    let main = html! {
        section.panel {
            h2 { "Your facts" }
            p {
                "Facts from your own files filter, sort and fill columns of drops. Only you see them. "
                a href="/docs/facts" { "Which files are read" }
            }
            @if own.is_empty() {
                p.soft { "You have not added a file yet." }
            } @else {
                (table("Your facts", "cards", &own_head, html! {
                    tbody {
                        @for source in own {
                            @let meta = source.edition.meta();
                            @let row = owned.facts().source(&meta.id).map(|it| &it.row);
                            tr {
                                th scope="row" { (meta.title) }
                                td data-label="Facts" { (names(meta)) }
                                td.number data-label="Rows" { (grouped(source.edition.rows())) }
                                td data-label="Added" {
                                    @match row { Some(row) => (day(row.added_at)), None => (nothing()) }
                                }
                                td data-label="Last file" {
                                    @match row { Some(row) => (last_file(row)), None => (nothing()) }
                                }
                                td {
                                    form method="post" action="/account/facts/remove" data-confirm="Rules and searches that use these facts match nothing until they are back. Remove them?" {
                                        input type="hidden" name="source" value=(meta.id);
                                        button.quiet.small type="submit" aria-label={ "Remove " (meta.id) } { "Remove" }
                                    }
                                }
                            }
                        }
                    }
                }))
                p.soft { (grouped(rows)) " of " (grouped(FACTS_ROWS_MAX)) " rows are in use." }
            }
        }
        (upload_form(fields, error))
        @if !of_server.is_empty() {
            section.panel {
                h2 { "Facts of this server" }
                (table("Facts of this server", "cards", &server_head, html! {
                    tbody {
                        @for source in of_server {
                            @let meta = source.edition.meta();
                            tr {
                                th scope="row" { (meta.title) }
                                td data-label="Facts" { (names(meta)) }
                                td.number data-label="Rows" { (grouped(source.edition.rows())) }
                                td data-label="As of" { (date(meta.as_of, today)) }
                                td data-label="Licence" { (meta.licence) }
                                td data-label="Attribution" {
                                    @match &meta.attribution { Some(line) => (line), None => (nothing()) }
                                }
                            }
                        }
                    }
                }))
            }
        }
    };
    tab_page(&member.viewer, Tab::Facts, notice, &main)
}

/// Rows of the last file of a source. Sources of a file have the rows of all of it.
fn last_file(row: &FactsRow) -> String {
    let (rows, new, refused) = (row.file_rows, row.from_file, row.refused);
    let word = if rows == 1 { "row" } else { "rows" };
    let (rows, new) = (grouped(rows), grouped(new));
    format!("{rows} {word}: {new} new or replaced, {} refused", grouped(refused))
}

/// Names of the facts of a source.
fn names(meta: &SourceMeta) -> String {
    let names = meta.columns.iter().map(|column| format!("{}.{}", meta.id, column.name));
    names.collect::<Vec<_>>().join(", ")
}

fn upload_form(fields: &Fields, error: Option<&FormError>) -> Markup {
    let currency = Input { longest: Some(3), placeholder: Some("EUR"), ..Input::TEXT };
    html! {
        form.panel method="post" action=(PATH) enctype="multipart/form-data" {
            h2 { "Add a file" }
            @if let Some(error) = error { (error.shown()) }
            (Field::new("file", "File").help("CSV, at most 64 MiB and 100,000 rows. Rows replace those of the same name.").error(error).file())
            (Field::new("date_order", "Day and month").error(error).select(fields.text("date_order"), &DATE_ORDERS))
            (Field::new("currency", "Currency").help("Of amounts for which the file states none.").error(error).input(fields.text("currency"), currency))
            button type="submit" { "Add file" }
        }
    }
}

/// Renders what was read from a file.
fn result_page(member: &LoggedIn, read: &ReadFile) -> Markup {
    let Report { refused, ambiguous, .. } = &read.report;
    let counts = [
        ("Rows", read.report.rows),
        ("Usable rows", read.report.usable),
        ("Refused rows", read.report.refused_rows),
        ("Refused cells", read.report.refused_cells),
        ("Merged rows", read.report.merged),
    ];
    let main = html! {
        p.notice role="status" { "The file is added." }
        section.panel {
            h2 { "What was read" }
            dl.facts { @for (word, count) in counts { dt { (word) } dd { (grouped(count)) } } }
            @for source in &read.sources {
                @let meta = source.source.edition.meta();
                p {
                    b { (meta.title) } ": " (names(meta)) ". " (grouped(source.matched)) " of "
                    (grouped(source.rows)) " rows are about names in the data; the others wait until theirs appear."
                }
            }
            (headers("Ignored columns", &read.report.ignored))
            (headers("Dropped columns, which may hold personal data or secrets", &read.report.dropped))
        }
        @if !ambiguous.is_empty() {
            section.panel {
                h2 { "Columns that were not read" }
                p { "They can be read in several ways. Choose one, and add the file again." }
                dl.facts { @for column in ambiguous { dt { (column.header) } dd { (column.choose) } } }
            }
        }
        @if !refused.is_empty() {
            section.panel {
                h2 { "Refused" }
                (table("Refused", "cards", &[Number("Line"), Text("Column"), Text("Reason")], html! {
                    tbody {
                        @for it in refused {
                            tr {
                                td.number data-label="Line" { (it.line) }
                                td data-label="Column" { (it.column.as_deref().unwrap_or("whole row")) }
                                td data-label="Reason" { (it.reason) }
                            }
                        }
                    }
                }))
            }
        }
        p { a href=(PATH) { "Back to your facts" } }
    };
    tab_page(&member.viewer, Tab::Facts, &html! {}, &main)
}

fn headers(word: &str, headers: &[String]) -> Markup {
    html! { @if !headers.is_empty() { p.soft { (word) ": " (headers.join(", ")) } } }
}

/// Renders the form for the columns of an unknown file: its headers, and no cell, which may be private.
fn mapping_page(
    member: &LoggedIn,
    print: &str,
    columns: &[(&str, &str)],
    error: Option<&FormError>,
) -> Markup {
    let main = html! {
        form.panel method="post" action="/account/facts/mapping" {
            h2 { "Describe the columns" }
            @if let Some(error) = error { (error.shown()) }
            p {
                "This is not a known export. One column is " code { "domain" } ", " code { "label" } " or "
                code { "word" } ". Facts are written as " code { "acme.rank:int" }
                "; leave the columns empty that are not to be read. "
                a href="/docs/facts#all-other-files" { "How columns are described" }
            }
            input type="hidden" name="fingerprint" value=(print);
            @for (number, (header, column)) in columns.iter().enumerate() {
                input type="hidden" name="header" value=(header);
                (Field::new(&format!("column-{number}"), header).named("column").input(column, Input { list: Some("forms"), ..Input::TEXT }))
            }
            datalist #forms {
                @for form in ["domain", "label", "word", "as_of", "acme.rank:int", "acme.price:money:EUR", "acme.seen:date", "acme.listed:bool", "acme.kind:enum", "acme.note:text"] {
                    option value=(form) {}
                }
            }
            button type="submit" { "Save" }
            " " a.button.quiet href=(PATH) { "Cancel" }
        }
    };
    tab_page(&member.viewer, Tab::Facts, &html! {}, &main)
}
