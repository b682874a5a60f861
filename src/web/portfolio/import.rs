//! `/portfolio/import`: claims from an export of a registrar or market. The file is shown first, with what each
//! row would do, and saved once its owner confirms it.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};

use super::{IMPORT_PATH, IMPORTED, PATH};
use crate::Web;
use crate::account::facts::{DATE_ORDERS, choices};
use crate::accounts::{FileClaim, Import};
use crate::components::Column::{Number, Text};
use crate::components::{amount, counted, date, name_linked, table};
use crate::error::{PageError, sentence};
use crate::facts_file::{Choices, Refusal};
use crate::field::{Field, FormError, Input};
use crate::form::{Fields, FileForm};
use crate::layout::{NavItem, Page};
use crate::logged_in::LoggedIn;
use crate::owned::{STYLES, nothing};
use crate::service::error::ApiError;
use crate::service::imports::{self, ImportFile};
use crate::undo::Acting;
use crate::vocab::day::Day;
use crate::vocab::limits::IMPORT_ROWS_MAX;
use crate::vocab::money::Amount;
use crate::vocab::time::UnixMs;

/// `GET /portfolio/import`.
pub async fn show(State(web): State<Web>, member: LoggedIn) -> Markup {
    let mut fields = Fields::default();
    fields.push("currency", web.user_data(&member).money().currency.as_str());
    form(&member, &fields, None)
}

/// `POST /portfolio/import`: shows what a file would do.
pub async fn preview(
    State(web): State<Web>,
    member: LoggedIn,
    FileForm { file, fields }: FileForm,
) -> Result<Response, PageError> {
    let usual = web.user_data(&member).money().currency;
    let read = match choices(&fields) {
        Ok(choices) => {
            let choices = Choices { currency: choices.currency.or(Some(usual)), ..choices };
            imports::read(&web.app, &member.caller, file, choices).await
        }
        Err(err) => Err(err),
    };
    let read = match read {
        Ok(read) => read,
        Err(err) => {
            let field_of = |name: &str| Some(if name == "body" { "file" } else { name }.to_owned());
            let error = FormError::new(err, field_of);
            let page = form(&member, &fields, Some(&error));
            return Ok(error.into_page(page));
        }
    };
    let claims: Vec<_> = read.rows.iter().map(|(_, claim)| claim.clone()).collect();
    let now = UnixMs::from_instant(member.viewer.now.0);
    let results = web.user_data(&member).preview_import(&claims, now).map_err(ApiError::from)?;
    Ok(shown(&member, &read, &claims, &results).into_response())
}

/// `POST /portfolio/import/save`: saves the rows that were shown.
pub async fn save(
    State(web): State<Web>,
    member: LoggedIn,
    FileForm { file, .. }: FileForm,
) -> Result<Response, PageError> {
    let rows: Vec<FileClaim> = serde_json::from_slice(&file)
        .map_err(|_| ApiError::parameter("file", "is not a list of rows; choose the file again"))?;
    if rows.len() > IMPORT_ROWS_MAX {
        let what = format!("has more than {IMPORT_ROWS_MAX} rows");
        return Err(ApiError::parameter("file", what).into());
    }
    let acting = Acting::new(&web, &member)?;
    let saved = web.app.store.import_claims(&acting.caller, &rows, member.viewer.now.0).await;
    saved.map_err(ApiError::from)?;
    Ok(acting.redirect(PATH, &[IMPORTED.parameter()]))
}

fn form(member: &LoggedIn, fields: &Fields, error: Option<&FormError>) -> Markup {
    let file = "The list of domains of GoDaddy, Namecheap, Dynadot, Porkbun, Sav or Park.io, or the portfolio of Efty, as it was downloaded. You see what it changes before it is saved.";
    let code = Input { longest: Some(3), is_required: true, ..Input::TEXT };
    Page::new("Import", "Claims from a file of your registrar.")
        .at(NavItem::Portfolio)
        .styles(STYLES)
        .show(
            Some(&member.viewer),
            html! {
                section.narrow {
                    p.trail { a href=(PATH) { "Portfolio" } }
                    h1 { "Import a file" }
                    @if let Some(error) = error { (error.shown()) }
                    form.panel method="post" action=(IMPORT_PATH) enctype="multipart/form-data" {
                        (Field::new("file", "File").help(file).error(error).input("", Input { kind: "file", is_required: true, ..Input::TEXT }))
                        (Field::new("currency", "Currency of amounts that state none").error(error).input(fields.text("currency"), code))
                        (Field::new("date_order", "Dates").error(error).select(fields.text("date_order"), &DATE_ORDERS))
                        p.send {
                            button type="submit" { "Show what changes" }
                            a.button.quiet href=(PATH) { "Cancel" }
                        }
                    }
                    p.soft.small { "Other files: " a href="/account/facts" { "describe their columns" } " once, for example as " code { "a.expires:date" } " and " code { "a.renewal_price:money" } "." }
                }
            },
        )
}

/// Renders what the rows of a file would do, and the form that saves them.
fn shown(member: &LoggedIn, read: &ImportFile, claims: &[FileClaim], results: &[Import]) -> Markup {
    let today = Day::nearest(member.viewer.now.0);
    let count = |is: fn(&Import) -> bool| results.iter().filter(|it| is(it)).count() as u32;
    let refused = read.refused.iter().filter(|it| it.column.is_none()).count() as u32;
    let counts = [
        (count(|it| *it == Import::Added), "to add"),
        (count(|it| *it == Import::Completed), "to complete"),
        (count(|it| *it == Import::Sold), "to mark as sold"),
        (count(|it| *it == Import::Unchanged), "as in your portfolio"),
        (count(|it| matches!(it, Import::SoldBefore(_))), "left out, because you sold them"),
        (refused, "not read"),
    ];
    let changes: u32 = counts[..3].iter().map(|(count, _)| count).sum();
    let rows = serde_json::to_string(claims).unwrap_or_default();
    let head = [
        Number("Line"),
        Text("Name"),
        Text("Result"),
        Text("Renews"),
        Number("Fee"),
        Number("Cost"),
        Text("Sold"),
    ];
    Page::new("Import", "What the file changes.")
        .at(NavItem::Portfolio)
        .styles(STYLES)
        .show(
            Some(&member.viewer),
            html! {
                p.trail { a href=(IMPORT_PATH) { "Another file" } }
                h1 { "Check before it is saved" }
                ul {
                    @for (count, words) in counts {
                        @if count > 0 { li { b { (counted(count, "name")) } " " (words) } }
                    }
                }
                form.actions method="post" action={ (IMPORT_PATH) "/save" } enctype="multipart/form-data" {
                    input type="hidden" name="file" value=(rows);
                    @if changes > 0 { button type="submit" { "Save " (counted(changes, "claim")) } }
                    @else { p { "Your portfolio has all of it already." } }
                    a.button.quiet href=(PATH) { "Cancel" }
                }
                @if !read.refused.is_empty() { (not_read(&read.refused)) }
                @if !read.unused.is_empty() { p.soft.small { "Columns not used: " (read.unused.join(", ")) } }
                @if !read.dropped.is_empty() { p.soft.small { "Columns not read, because they may hold personal data: " (read.dropped.join(", ")) } }
                (table("Rows of the file", "cards", &head, html! {
                    tbody { @for ((line, claim), result) in read.rows.iter().zip(results) { (row(*line, claim, *result, today)) } }
                }))
            },
        )
}

fn row(line: u64, claim: &FileClaim, result: Import, today: Day) -> Markup {
    let sum = |it: Option<Amount>| it.map_or_else(nothing, |it| html! { (amount(it)) });
    html! {
        tr {
            td.number data-label="Line" { (line) }
            th scope="row" { (name_linked(claim.domain.as_str(), claim.domain.tld())) }
            td data-label="Result" {
                @match result {
                    Import::Added => { "added" }
                    Import::Completed => { "completed" }
                    Import::Sold => { "marked as sold" }
                    Import::Unchanged => { span.soft { "as it is" } }
                    Import::SoldBefore(on) => { span.warn { "left out: you sold it on " (date(on, today)) } }
                }
            }
            td data-label="Renews" { @if let Some(day) = claim.renews_on { (date(day, today)) } @else { (nothing()) } }
            td.number data-label="Fee" { (sum(claim.renewal)) }
            td.number data-label="Cost" { (sum(claim.acquired_price)) }
            td data-label="Sold" {
                @match &claim.sale {
                    Some(sale) => { (date(sale.on, today)) @if let Some(price) = sale.price { ", " (amount(price)) } @if let Some(venue) = &sale.venue { " at " (venue) } }
                    None => { (nothing()) }
                }
            }
        }
    }
}

/// Renders rows and cells that cannot be used, with the reasons.
fn not_read(refused: &[Refusal]) -> Markup {
    html! {
        section.report.hint {
            h2 { "Not read" }
            (table("Rows and cells that are not read", "cards", &[Number("Line"), Text("Column"), Text("Reason")], html! {
                tbody {
                    @for Refusal { line, column, reason } in refused {
                        tr {
                            td.number data-label="Line" { (line) }
                            th scope="row" { @match column { Some(column) => { (column) } None => { "whole row" } } }
                            td { (sentence(reason)) }
                        }
                    }
                }
            }))
        }
    }
}
