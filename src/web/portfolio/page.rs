//! Markup of the portfolio: claims, sums and the claim form.

use maud::{Markup, html};

use super::form::ClaimForm;
use super::summary::{GroupBy, Summary, Sums, status_word};
use super::{EditorPage, List, NOTICES, PATH};
use crate::accounts::{Claim, UserData};
use crate::vocab::claim::ClaimStatus;
use crate::vocab::limits::{NOTES_CHARS_MAX, REGISTRAR_CHARS_MAX};
use crate::vocab::money::Usd;
use crate::vocab::name::NAME_OCTETS_MAX;
use crate::web::components::Column::{self, Hidden, Number, Text};
use crate::web::components::{grouped, name_linked, table};
use crate::web::field::{Field, FormError, Input};
use crate::web::layout::{NavItem, Page};
use crate::web::logged_in::LoggedIn;
use crate::web::notice;
use crate::web::owned::{Deletion, STYLES, csv, day, idempotency_field, nothing, pager, tile};

const CLAIM_COLUMNS: [Column<'_>; 8] = [
    Text("Name"),
    Text("Status"),
    Text("Registrar"),
    Number("Cost"),
    Number("Sold for"),
    Number("Profit"),
    Text("Added"),
    Hidden("Edit"),
];
/// Maximum groups in the chart. The table below it has all.
const BARS_MAX: usize = 8;
/// Characters of a note shown in a row.
const NOTE_CHARS: usize = 80;
/// Maximum registrars the form suggests.
const REGISTRARS_MAX: usize = 50;

/// The whole page.
pub fn show(member: &LoggedIn, list: &List, query: Option<&str>) -> Markup {
    let has_claims = list.owned.claim_count() > 0;
    let csv_address = list.address("/api/export/portfolio", None, 0);
    Page::new("Portfolio", "Your backorder claims with their outcome, cost and revenue.")
        .at(NavItem::Portfolio)
        .styles(STYLES)
        .scripts(&["portfolio.js"])
        .show(
            Some(&member.viewer),
            html! {
                div.head {
                    h1 { "Portfolio" }
                    @if has_claims {
                        p.buttons {
                            (csv(member.caller.plan, &csv_address))
                            " " a.button href="/portfolio/new" { "Add claim" }
                        }
                    }
                }
                (notice::shown(&NOTICES, query))
                @if has_claims {
                    (filter(list))
                    (totals(&list.summary.all))
                    (groups(list))
                    (claims(list))
                } @else {
                    div.panel.empty {
                        h2 { "Track your backorders" }
                        p { "Add a claim for each name you try to catch, with its outcome, cost and sale. You will see which registrars, TLDs and alert rules pay off." }
                        p { a.button href="/portfolio/new" { "Add your first claim" } }
                    }
                }
            },
        )
}

fn totals(all: &Sums) -> Markup {
    html! {
        dl.tiles {
            (tile("Claims", html! { (grouped(all.claims as u64)) @if let Some(won) = all.won_percent() { span.of { " " (won) " % won" } } }))
            (tile("Cost", dollars(all.cost)))
            (tile("Revenue", dollars(all.revenue)))
            (tile("Profit", signed(all.profit())))
            (tile("Return on sold names", returned(all)))
        }
    }
}

/// Filter form. Several statuses can be selected.
fn filter(list: &List) -> Markup {
    html! {
        form #filter.filter method="get" action=(PATH) {
            @if list.by != GroupBy::default() { input type="hidden" name="by" value=(list.by.as_str()); }
            fieldset.chips {
                legend.hidden { "Status" }
                @for status in ClaimStatus::ALL {
                    label.chip {
                        input type="checkbox" name="status" value=(status) checked[list.filter.statuses().contains(&status)];
                        span { (status_word(status)) " " small { (grouped(list.summary.of_status[status as usize] as u64)) } }
                    }
                }
            }
            div.dates {
                label for="from" { "Added from" }
                input #from type="date" name="from" value=(list.from);
                label for="to" { "to (exclusive)" }
                input #to type="date" name="to" value=(list.to);
                button.quiet type="submit" { "Apply" }
                @if list.is_filtered() { a href=(PATH) { "Clear filters" } }
            }
        }
    }
}

fn claims(list: &List) -> Markup {
    let total = list.summary.all.claims;
    html! {
        @if list.claims.is_empty() {
            p.panel.empty { "No claims match this filter." }
        } @else {
            (table("Claims", "cards", &CLAIM_COLUMNS, html! { tbody { @for claim in &list.claims { (row(claim)) } } }))
            (pager(list.filter.page(), total, |offset| list.address(PATH, Some(list.by), offset)))
        }
    }
}

fn row(claim: &Claim) -> Markup {
    let result = claim
        .resale_price
        .map(|sold| sold.cents() as i64 - claim.acquired_price.map_or(0, Usd::cents) as i64);
    html! {
        tr {
            th scope="row" {
                (name_linked(claim.domain.as_str(), claim.domain.tld()))
                @if let Some(rule) = &claim.alert_rule { div.why { "by " (rule.name) } }
                @if let Some(notes) = &claim.user_notes { div.why.note { (short(notes)) } }
            }
            td data-label="Status" {
                (status_badge(claim.status))
                @if let Some(sold) = claim.sold_at { " " span.frees { (day(sold)) } }
            }
            td data-label="Registrar" { @match &claim.registrar { Some(registrar) => { (registrar) } None => { (nothing()) } } }
            td.number data-label="Cost" { (price(claim.acquired_price)) }
            td.number data-label="Sold for" { (price(claim.resale_price)) }
            td.number data-label="Profit" { @if let Some(result) = result { (signed(result)) } @else { (nothing()) } }
            td data-label="Added" { (day(claim.reported_at)) }
            td.do { a.button.quiet.small href={ (PATH) "/" (claim.id) } aria-label={ "Edit " (claim.domain.unicode()) } { "Edit" } }
        }
    }
}

fn status_badge(status: ClaimStatus) -> Markup {
    let class = match status {
        ClaimStatus::Attempted => "info",
        ClaimStatus::Caught | ClaimStatus::Registered => "good",
        ClaimStatus::Lost => "bad",
        ClaimStatus::Sold => "warn",
    };
    html! { span.badge.(class) { (status) } }
}

/// First line of a note, shortened.
fn short(notes: &str) -> String {
    let line = notes.trim().lines().next().unwrap_or_default();
    match line.char_indices().nth(NOTE_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None if line.len() < notes.trim().len() => format!("{line} …"),
        None => line.to_owned(),
    }
}

/// Sums by group, as a chart and a table.
fn groups(list: &List) -> Markup {
    let Summary { by, groups, .. } = &list.summary;
    let numbers = ["Claims", "Won", "Sold", "Cost", "Revenue", "Profit", "Return"].map(Number);
    let head: Vec<_> = std::iter::once(Text(by.label())).chain(numbers).collect();
    html! {
        section.panel #groups aria-labelledby="groups-title" {
            h2 #groups-title { "Cost and revenue" }
            ul.tabs {
                @for tab in GroupBy::ALL {
                    li {
                        a href={ (list.address(PATH, Some(tab), 0)) "#groups" } aria-current=[(tab == *by).then_some("true")] {
                            "By " (tab.label().to_lowercase().replace("tld", "TLD"))
                        }
                    }
                }
            }
            (chart(groups))
            details {
                summary { "Show as table" }
                (table("Table of sums", "cards", &head, html! {
                    tbody { @for (label, sums) in groups { (sums_row(label, sums)) } }
                    tfoot { (sums_row("All", &list.summary.all)) }
                }))
                p.soft.small { "Profit is revenue minus all costs. Return is the profit on sold names relative to their cost." }
            }
        }
    }
}

fn sums_row(label: &str, sums: &Sums) -> Markup {
    let number = |number: usize| grouped(number as u64);
    html! {
        tr {
            th scope="row" { (label) }
            td.number data-label="Claims" { (number(sums.claims)) }
            td.number data-label="Won" { (number(sums.won)) }
            td.number data-label="Sold" { (number(sums.sold)) }
            td.number data-label="Cost" { (dollars(sums.cost)) }
            td.number data-label="Revenue" { (dollars(sums.revenue)) }
            td.number data-label="Profit" { (signed(sums.profit())) }
            td.number data-label="Return" { (returned(sums)) }
        }
    }
}

/// Bars of cost and revenue on one scale, in thousandths of the longest bar.
fn chart(groups: &[(String, Sums)]) -> Markup {
    let most = groups.iter().flat_map(|(_, sums)| [sums.cost, sums.revenue]).max().unwrap_or(0);
    let wide = |cents: u64| (u128::from(cents) * 1_000).checked_div(u128::from(most)).unwrap_or(0);
    html! {
        @if most > 0 {
            figure.bars {
                figcaption {
                    span.key.cost { "Cost" } " " span.key.revenue { "Revenue" }
                }
                @for (label, sums) in groups.iter().take(BARS_MAX).filter(|(_, sums)| sums.cost + sums.revenue > 0) {
                    div.bar-row {
                        span.bar-label { (label) }
                        svg viewBox="0 0 1000 22" preserveAspectRatio="none" width="100%" height="22" role="img"
                            aria-label={ (label) ": cost " (money(sums.cost)) ", revenue " (money(sums.revenue)) } {
                            rect.cost width=(wide(sums.cost)) height="9" y="1" {}
                            rect.revenue width=(wide(sums.revenue)) height="9" y="12" {}
                        }
                        span.bar-figures { (signed(sums.profit())) }
                    }
                }
                @if groups.len() > BARS_MAX { p.soft.small { "The chart shows the " (BARS_MAX) " largest groups. The table has all." } }
            }
        } @else {
            p.soft { "Enter costs and sale prices to see a chart." }
        }
    }
}

/// The form of a new or an existing claim.
pub fn editor(page: &EditorPage, error: Option<&FormError>) -> Markup {
    let EditorPage { member, owned, form, .. } = page;
    let claim = page.claim.as_ref();
    let title = if claim.is_some() { "Edit claim" } else { "Add claim" };
    let action =
        claim.map_or_else(|| format!("{PATH}/new"), |claim| format!("{PATH}/{}", claim.id));
    let field = |id, label| Field::new(id, label).error(error);
    let price = Input { mode: Some("decimal"), placeholder: Some("0.00"), ..Input::TEXT };
    let text = Input::TEXT;
    let statuses = ClaimStatus::ALL.map(|status| (status.as_str(), status_word(status)));
    Page::new(title, "A name you try to catch: its status, registrar, cost, sale and notes.")
        .at(NavItem::Portfolio)
        .styles(STYLES)
        .scripts(&["portfolio.js"])
        .show(
            Some(&member.viewer),
            html! {
                section.middling {
                    p.trail { a href=(PATH) { "Portfolio" } }
                    h1 { (title) @if let Some(claim) = claim { " " span.soft { (claim.domain.unicode()) } } }
                    @if let Some(error) = error { (error.shown()) }
                    form #claim.panel method="post" action=(action) {
                        @if claim.is_none() {
                            (idempotency_field())
                            (field("domain", "Name").input(form.text("domain"), Input { longest: Some(NAME_OCTETS_MAX + 1), is_required: true, placeholder: Some("example.com"), ..text }))
                        }
                        div.pair {
                            (field("status", "Status").select(form.text("status"), &statuses))
                            (field("registrar", "Registrar").input(form.text("registrar"), Input { longest: Some(REGISTRAR_CHARS_MAX), list: Some("registrars"), ..text }))
                        }
                        datalist #registrars { @for registrar in registrars(owned) { option value=(registrar) {} } }
                        div.pair {
                            (field("acquired", "Cost (USD)").input(form.text("acquired"), price))
                        }
                        fieldset.group #sale {
                            legend { "Sale" }
                            p.help { "For sold names only. Changing the status removes the sale." }
                            div.pair {
                                (field("resale", "Sold for (USD)").input(form.text("resale"), price))
                                (field("sold_on", "Sold on").help("Leave empty for today.").input(form.text("sold_on"), Input { kind: "date", ..text }))
                            }
                        }
                        (rule(owned, form, claim, error))
                        (field("notes", "Notes").textarea(form.text("notes"), 4, Some(NOTES_CHARS_MAX)))
                        p.send {
                            button type="submit" { @if claim.is_some() { "Save" } @else { "Add claim" } }
                            a.button.quiet href=(PATH) { "Cancel" }
                            @if let Some(claim) = claim { a.button.danger.apart href={ (PATH) "/" (claim.id) "/delete" } { "Delete" } }
                        }
                    }
                    @if let Some(claim) = claim {
                        p.soft { "Added " (day(claim.reported_at)) ", last changed " (day(claim.updated_at)) ". " a href={ "/domain/" (claim.domain) } { "View " (claim.domain.unicode()) } }
                    }
                }
            },
        )
}

/// The alert rule of a claim. A deleted rule stays selectable for the claim that names it.
fn rule(
    owned: &UserData,
    form: &ClaimForm,
    claim: Option<&Claim>,
    error: Option<&FormError>,
) -> Markup {
    let named = claim.and_then(|claim| claim.alert_rule.as_deref());
    let gone = named.filter(|named| owned.rule(named.id).is_none());
    let gone = gone.map(|gone| (gone.id.to_string(), format!("{} (deleted)", gone.name)));
    let rules = owned.rules().map(|rule| (rule.id.to_string(), rule.name.to_string()));
    let rules: Vec<_> = gone.into_iter().chain(rules).collect();
    let options = rules.iter().map(|(id, name)| (id.as_str(), name.as_str()));
    let options: Vec<_> = std::iter::once(("", "None")).chain(options).collect();
    Field::new("rule", "Alert rule").error(error).select(form.text("rule"), &options)
}

/// Registrars of recent claims, latest first.
fn registrars(owned: &UserData) -> Vec<&str> {
    let mut seen = Vec::new();
    // Only recent claims: reading all of them would be slow.
    for registrar in owned.claims().take(1_000).filter_map(|claim| claim.registrar.as_deref()) {
        if seen.len() < REGISTRARS_MAX && !seen.contains(&registrar) {
            seen.push(registrar);
        }
    }
    seen
}

/// Asks for confirmation before a claim is deleted.
pub fn confirm_delete(member: &LoggedIn, claim: &Claim) -> Markup {
    let deletion = Deletion {
        item: NavItem::Portfolio,
        noun: "claim",
        path: &format!("{PATH}/{}", claim.id),
        description: html! { p { b { (claim.domain.unicode()) } " " (status_badge(claim.status)) } },
        consequence: "Its cost and revenue are removed from your portfolio.",
    };
    deletion.page(member)
}

/// `$1,234.50`.
fn money(cents: u64) -> String {
    let dollars = grouped(cents / 100);
    match cents % 100 {
        0 => format!("${dollars}"),
        rest => format!("${dollars}.{rest:02}"),
    }
}

fn dollars(cents: u64) -> Markup {
    html! { (money(cents)) }
}

fn price(price: Option<Usd>) -> Markup {
    price.map_or_else(nothing, |price| dollars(price.cents()))
}

/// A profit or loss in its colour.
fn signed(cents: i64) -> Markup {
    let text = money(cents.unsigned_abs());
    html! {
        @match cents {
            0 => { (text) }
            1.. => { span.gain { "+" (text) } }
            _ => { span.loss { "−" (text) } }
        }
    }
}

fn returned(sums: &Sums) -> Markup {
    let Some(permille) = sums.return_permille() else { return nothing() };
    let percent = grouped(permille.unsigned_abs() / 10);
    html! {
        @match permille {
            0 => { "0 %" }
            1.. => { span.gain { "+" (percent) " %" } }
            _ => { span.loss { "−" (percent) " %" } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_has_thousands_separators() {
        for (cents, text) in
            [(0, "$0"), (5, "$0.05"), (123_450, "$1,234.50"), (100_000_000, "$1,000,000")]
        {
            assert_eq!(money(cents), text);
        }
        assert_eq!(signed(-250).into_string(), "<span class=\"loss\">−$2.50</span>");
    }

    #[test]
    fn notes_are_shortened_at_characters() {
        assert_eq!(short("one\ntwo"), "one …");
        assert_eq!(short(" one "), "one");
        assert_eq!(short(&"é".repeat(200)).chars().count(), NOTE_CHARS + 1);
    }
}
