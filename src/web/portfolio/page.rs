//! Markup of the portfolio: claims, sums and the claim form.

use maud::{Markup, html};

use super::form::ClaimForm;
use super::summary::{Counted, GroupBy, Summary, Sums, difference, status_word};
use super::{CURRENCY_PATH, ClaimsPage, EditorPage, IMPORT_PATH, NOTICES, PATH, PRICES, Period};
use crate::accounts::{Claim, Commission, MoneySettings, Price, UserData};
use crate::components::Column::{self, Hidden, Number, Text};
use crate::components::{
    amount, counted, date, date_text, grouped, name_linked, sum_of_money, table,
};
use crate::field::{Field, FormError, Input};
use crate::layout::{NavItem, Page};
use crate::logged_in::LoggedIn;
use crate::notice;
use crate::owned::{Deletion, STYLES, csv, day, idempotency_field, menu, nothing, pager, tile};
use crate::vocab::claim::ClaimStatus;
use crate::vocab::day::Day;
use crate::vocab::limits::{NOTES_CHARS_MAX, REGISTRAR_CHARS_MAX, VENUE_CHARS_MAX};
use crate::vocab::money::{Amount, Currency};
use crate::vocab::name::NAME_OCTETS_MAX;
use crate::vocab::outcome::Share;
use crate::vocab::time::UnixMs;

const CLAIM_COLUMNS: [Column<'_>; 10] = [
    Text("Name"),
    Text("Status"),
    Text("Venue"),
    Number("Your bid"),
    Number("Cost"),
    Number("Sold for"),
    Number("Profit"),
    Text("Renews"),
    Text("Held for"),
    Hidden("Edit"),
];
/// Maximum groups in the chart; the table below it has all.
const BARS_MAX: usize = 8;
/// Win rates of fewer decided bids are grey.
const BIDS_MIN: usize = 10;
/// Characters of a note shown in a row.
const NOTE_CHARS: usize = 80;
/// Days before a renewal from which a row asks for a decision.
const DECIDE_DAYS: i32 = 60;
/// Maximum registrars suggested by the form.
const REGISTRARS_MAX: usize = 50;

/// Renders the whole page.
pub fn show(member: &LoggedIn, list: &ClaimsPage, query: Option<&str>) -> Markup {
    let has_claims = list.owned.claim_count() > 0;
    let csv_address = list.address("/api/export/portfolio", None, 0);
    Page::new("Portfolio", "Your bids with their outcome, cost and sales.")
        .at(NavItem::Portfolio)
        .styles(STYLES)
        .scripts(&["portfolio.js"])
        .show(
            Some(&member.viewer),
            html! {
                div.head {
                    h1 { "Portfolio" }
                    @if has_claims {
                        div.buttons {
                            (menu("More", html! {
                                a.button.quiet href=(IMPORT_PATH) { "Import a file" }
                                (csv(member.caller.plan, &csv_address))
                                a.button.quiet href=(CURRENCY_PATH) { "Currency" }
                            }))
                            a.button href="/portfolio/new" { "Add claim" }
                        }
                    }
                }
                (notice::undoable(&NOTICES, query, PATH))
                @if has_claims {
                    (filter(list))
                    (totals(list))
                    (groups(list))
                    (claims(list))
                } @else {
                    div.panel.empty {
                        h2 { "Track your backorders" }
                        p { "Add a claim for each name you try to catch, with its outcome, cost and sale. You will see which venues, TLDs and alert rules pay off." }
                        p { a.button href="/portfolio/new" { "Add your first claim" } " " a.button.quiet href=(IMPORT_PATH) { "Import a file" } }
                    }
                }
            },
        )
}

/// Renders sales − cost of the sold names = profit, then the names held and the open bids.
fn totals(list: &ClaimsPage) -> Markup {
    let (all, currency) = (&list.summary.all, list.owned.money().currency);
    let names = |count: usize| counted(count as u32, "name");
    let sum = |minor: u128| sum_of_money(minor, currency);
    let unrated = list.summary.unrated.iter().map(|currency| currency.as_str());
    html! {
        dl.equation.panel {
            (tile("Sales", html! { (sum(all.revenue)) span.of { (names(all.sold)) } }))
            (operated("−", "Cost of names sold", html! { (sum(all.cost_of_sold)) span.of { "prices and commissions" } }))
            (operated("=", "Realised profit", html! { (signed(all.profit(), currency)) span.of { @if let Some(multiple) = all.multiple() { (times(multiple)) " on names sold" } @else { "no sale yet" } } }))
            (tile("Inventory at cost", html! { (sum(all.inventory)) span.of { (names(all.held())) " held. Unsold is not a loss." } }))
            (tile("Open bids", html! { (sum(all.open_bids)) span.of { (counted(all.open as u32, "bid")) ". Not a cost until you win." } }))
        }
        @if all.unrated > 0 {
            p.hint {
                (counted(all.unrated as u32, "claim")) " in " (unrated.collect::<Vec<_>>().join(", ")) " not in these sums: "
                a href=(CURRENCY_PATH) { "give a rate" } "."
            }
        }
    }
}

/// Renders a figure with the operator before it.
fn operated(operator: &str, label: &str, figure: Markup) -> Markup {
    html! { div.tile data-op=(operator) { dt { (label) } dd { (figure) } } }
}

/// Formats a multiple given in hundredths: `2.8×`.
fn times(hundredths: u64) -> String {
    let tenths = hundredths.saturating_add(5) / 10;
    format!("{}.{}×", grouped(tenths / 10), tenths % 10)
}

/// Renders the filter form, in which several statuses can be selected, and the periods.
fn filter(list: &ClaimsPage) -> Markup {
    let Period { from, through } = list.period;
    let field = |day: Option<Day>| day.map(|day| day.to_string()).unwrap_or_default();
    let hidden = |name: &str, day: Option<Day>| html! { @if let Some(day) = day { input type="hidden" name=(name) value=(day); } };
    html! {
        div.filters {
        form #filter.filter method="get" action=(PATH) {
            @if list.by != GroupBy::default() { input type="hidden" name="by" value=(list.by.as_str()); }
            (hidden("from", from)) (hidden("through", through))
            fieldset.chips {
                legend.hidden { "Status" }
                @for status in ClaimStatus::ALL {
                    label.chip {
                        input type="checkbox" name="status" value=(status) checked[list.filter.statuses().contains(&status)];
                        span { (status_word(status)) " " small { (grouped(list.summary.of_status[status as usize] as u64)) } }
                    }
                }
            }
            noscript { button.quiet type="submit" { "Apply" } }
            @if list.is_filtered() { a href=(PATH) { "Clear filters" } }
        }
        (periods(list))
        details.range open[list.is_custom()] {
            summary { "Other days" }
            form.dates method="get" action=(PATH) {
                @if list.by != GroupBy::default() { input type="hidden" name="by" value=(list.by.as_str()); }
                @for status in list.filter.statuses() { input type="hidden" name="status" value=(status); }
                label for="from" { "Added from" }
                input #from type="date" name="from" value=(field(from));
                label for="through" { "through" }
                input #through type="date" name="through" value=(field(through));
                button.quiet type="submit" { "Apply" }
            }
        }
        }
    }
}

/// Renders links to the claims of the month, of the year and of all time.
fn periods(list: &ClaimsPage) -> Markup {
    let at = |period| list.address_in(period, PATH, Some(list.by), 0);
    let all = list.usual_periods();
    html! {
        nav.periods aria-label="Period" {
            ul.picks {
                @for (word, period) in all {
                    li { a.pick href=(at(period)) aria-current=[(period == list.period).then_some("true")] { (word) } }
                }
            }
            p.soft { (in_words(list.period, list.today)) }
        }
    }
}

/// Describes the days of a period.
fn in_words(Period { from, through }: Period, today: Day) -> String {
    let day = |day| date_text(day, today);
    match (from, through) {
        (None, None) => "Added at any time".to_owned(),
        (Some(from), Some(through)) if from == through => format!("Added on {}", day(from)),
        (Some(from), Some(through)) => format!("Added from {} to {}", day(from), day(through)),
        (Some(from), None) => format!("Added since {}", day(from)),
        (None, Some(through)) => format!("Added until {}", day(through)),
    }
}

fn claims(list: &ClaimsPage) -> Markup {
    let total = list.summary.all.claims;
    html! {
        @if list.claims.is_empty() {
            p.panel.empty { "No claims match this filter." }
        } @else {
            (table("Claims", "cards claims", &CLAIM_COLUMNS, html! { tbody { @for claim in &list.claims { (row(claim, list.owned.money(), list.today)) } } }))
            (pager(list.filter.page(), total, |offset| list.address(PATH, Some(list.by), offset)))
        }
    }
}

fn row(claim: &Claim, money: &MoneySettings, today: Day) -> Markup {
    let is_held = claim.is_held();
    let is_won = is_held || claim.status == ClaimStatus::Sold;
    let day_of = |at: UnixMs| Day::from_instant(at.instant());
    let until = claim.sold_at.and_then(day_of).unwrap_or(today);
    let held_days = day_of(claim.reported_at).filter(|_| is_won).map(|from| until.days_since(from));
    let held_days = held_days.map(|days| days.max(0).unsigned_abs());
    let result = match Counted::of(claim, false, money) {
        Ok(Counted::Sold { cost, revenue }) => {
            claim.amount(Price::Resale).map(|_| difference(revenue, cost))
        }
        _ => None,
    };
    let (commission, sold_venue) = claim.sale_terms();
    let commission = commission.map(|commission| match commission {
        Commission::Percent(percent) => format!("less {percent} %"),
        Commission::Amount(fee) => format!("less {}", amount(fee)),
    });
    let terms = [sold_venue.map(|venue| format!("at {venue}")), commission];
    let terms =
        terms.into_iter().flatten().reduce(|venue, commission| format!("{venue}, {commission}"));
    html! {
        tr {
            th scope="row" {
                (name_linked(claim.domain.as_str(), claim.domain.tld()))
                @if let Some(rule) = &claim.alert_rule { div.why { "by " (rule.name) } }
                @if let Some(notes) = &claim.user_notes { div.why.note { (short(notes)) } }
            }
            td.status data-label="Status" {
                (status_badge(claim.status))
                @if let Some(sold) = claim.sold_at.and_then(day_of) { " " span.frees { (date(sold, today)) } }
            }
            td.venue data-label="Venue" { @match claim.venue.as_ref().or(claim.registrar.as_ref()) { Some(venue) => { (venue) } None => { (nothing()) } } }
            td.number data-label="Your bid" { (price(claim.amount(Price::Bid))) }
            td.number data-label="Cost" { (price(claim.amount(Price::Acquired).filter(|_| is_won))) }
            td.number data-label="Sold for" {
                (price(claim.amount(Price::Resale)))
                @if let Some(terms) = &terms { div.why { (terms) } }
            }
            td.number.profit data-label="Profit" { @if let Some(result) = result { (signed(result, money.currency)) } @else { (nothing()) } }
            td.renews data-label="Renews" {
                @match claim.renews_on.filter(|_| is_held) {
                    Some(renews) => { span.warn[renews.days_since(today) <= 30] { (date(renews, today)) } @if let Some(fee) = claim.amount(Price::Renewal) { span.fee { ", " (amount(fee)) } } }
                    None => { (nothing()) }
                }
                @if is_held { (decision(claim, today)) }
            }
            td.held data-label="Held for" { @if let Some(days) = held_days { (counted(days, "day")) } @else { (nothing()) } }
            td.do { a.button.quiet.small href={ (PATH) "/" (claim.id) } aria-label={ "Edit " (claim.domain.unicode()) } { "Edit" } }
        }
    }
}

/// Renders buttons to keep or drop a name whose renewal comes near, or what was decided.
fn decision(claim: &Claim, today: Day) -> Markup {
    let is_near =
        claim.renews_on.is_some_and(|day| (0..=DECIDE_DAYS).contains(&day.days_since(today)));
    let button = |word: &str, value: &str| {
        let about = format!("{word} {}", claim.domain.unicode());
        html! { button.quiet.small type="submit" name="decision" value=(value) aria-label=(about) { (word) } }
    };
    html! {
        @if is_near {
            form.decision method="post" action={ (PATH) "/" (claim.id) "/renewal" } {
                @match claim.decision() {
                    Some(decision) => { span.soft { "will " (decision) } " " (button("Change", "")) }
                    None => { (button("Keep", "keep")) " " (button("Drop", "drop")) }
                }
            }
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

/// Returns the first line of a note, shortened.
fn short(notes: &str) -> String {
    let line = notes.trim().lines().next().unwrap_or_default();
    match line.char_indices().nth(NOTE_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None if line.len() < notes.trim().len() => format!("{line} …"),
        None => line.to_owned(),
    }
}

/// Renders win rate and return by group, as charts and a table.
fn groups(list: &ClaimsPage) -> Markup {
    let Summary { by, groups, all, .. } = &list.summary;
    let currency = list.owned.money().currency;
    let numbers = ["Bids", "Won", "Lost", "Sold", "Cost of sold", "Sales", "Profit", "Return"];
    let head: Vec<_> = std::iter::once(Text(by.label())).chain(numbers.map(Number)).collect();
    html! {
        section.panel #groups aria-labelledby="groups-title" {
            h2 #groups-title { "What pays" }
            ul.tabs {
                @for tab in GroupBy::ALL {
                    li {
                        a href={ (list.address(PATH, Some(tab), 0)) "#groups" } aria-current=[(tab == *by).then_some("true")] {
                            "By " (tab.label().to_lowercase().replace("tld", "TLD"))
                        }
                    }
                }
            }
            div.charts {
                (chart("Win rate", groups, all, win_rate))
                (chart("Return on names sold", groups, all, |sums| return_on_sold(sums, currency)))
            }
            @if groups.len() > BARS_MAX { p.soft.small { "The charts show the " (BARS_MAX) " largest groups. The table has all." } }
            details {
                summary { "Show as table" }
                (table("Table of sums", "cards", &head, html! {
                    tbody { @for (label, sums) in groups { (sums_row(label, sums, currency)) } }
                    tfoot { (sums_row("All", all, currency)) }
                }))
                p.soft.small { "A bid counts as won or lost once it is decided. Profit is sales minus the cost of the names sold, and return is sales divided by that cost. Names you still hold are inventory." }
            }
        }
    }
}

fn sums_row(label: &str, sums: &Sums, currency: Currency) -> Markup {
    let number = |number: usize| grouped(number as u64);
    html! {
        tr {
            th scope="row" { (label) }
            td.number data-label="Bids" { (number(sums.claims)) }
            td.number data-label="Won" { (number(sums.won)) }
            td.number data-label="Lost" { (number(sums.lost)) }
            td.number data-label="Sold" { (number(sums.sold)) }
            td.number data-label="Cost of sold" { (sum_of_money(sums.cost_of_sold, currency)) }
            td.number data-label="Sales" { (sum_of_money(sums.revenue, currency)) }
            td.number data-label="Profit" { (signed(sums.profit(), currency)) }
            td.number data-label="Return" { @match sums.multiple() { Some(multiple) => { (times(multiple)) } None => { (nothing()) } } }
        }
    }
}

/// One bar: its length, the figure, and the underlying numbers. The bar of a group without a figure
/// has no length.
struct GroupBar {
    size: Option<u64>,
    figure: String,
    /// Comes first: a figure without its number says little.
    number: String,
    /// Whether there are enough bids for the figure to say something.
    is_sure: bool,
}

fn win_rate(sums: &Sums) -> GroupBar {
    let decided = sums.won + sums.lost;
    match sums.won_percent() {
        Some(percent) => GroupBar {
            size: Some(percent as u64),
            figure: format!("{percent} %"),
            number: format!("{} of {}{}", sums.won, counted(decided as u32, "bid"), interval(sums)),
            is_sure: decided >= BIDS_MIN,
        },
        None => GroupBar {
            size: None,
            figure: "–".to_owned(),
            number: "none decided yet".to_owned(),
            is_sure: false,
        },
    }
}

/// The 95 % interval of a win rate: a few bids say little.
fn interval(sums: &Sums) -> String {
    let Some(Share { low, high, .. }) = sums.win_rate() else { return String::new() };
    format!(", {:.0} to {:.0} % in the long run", low * 100.0, high * 100.0)
}

fn return_on_sold(sums: &Sums, currency: Currency) -> GroupBar {
    let sum = |minor| sum_of_money(minor, currency);
    let number = match sums.sold {
        0 => "none sold yet".to_owned(),
        _ => format!("{} on {}", sum(sums.revenue), sum(sums.cost_of_sold)),
    };
    let multiple = sums.multiple();
    let figure = multiple.map_or_else(|| "–".to_owned(), times);
    GroupBar { size: multiple, figure, number, is_sure: true }
}

/// Renders one bar per group on a common scale, with a mark for all groups together.
fn chart(
    title: &str,
    groups: &[(String, Sums)],
    all: &Sums,
    bar: impl Fn(&Sums) -> GroupBar,
) -> Markup {
    let bars: Vec<_> =
        groups.iter().take(BARS_MAX).map(|(label, sums)| (label, bar(sums))).collect();
    let whole = bar(all);
    let sizes = bars.iter().filter_map(|(_, bar)| bar.size);
    let most = sizes.chain(whole.size).max().unwrap_or(0);
    let wide = |size: u64| (u128::from(size) * 1_000).checked_div(u128::from(most)).unwrap_or(0);
    html! {
        figure.bars {
            figcaption { b { (title) } @if whole.size.is_some() { span.soft { "all " (whole.figure) } } }
            @for (label, GroupBar { size, figure, number, is_sure }) in &bars {
                div.bar-row.few[!is_sure] {
                    span.bar-label { (label) }
                    span.bar-number { (number) }
                    svg viewBox="0 0 1000 10" preserveAspectRatio="none" width="100%" height="12" role="img"
                        aria-label={ (label) ": " (number) ", " (figure) } {
                        rect.ground width="1000" height="10" {}
                        @if let Some(size) = size { rect.fill width=(wide(*size)) height="10" {} }
                        @if let Some(all) = whole.size { rect.mark x=(wide(all).min(996)) width="4" height="10" {} }
                    }
                    b.bar-figure { (figure) }
                }
            }
        }
    }
}

/// Renders the form of a new or an existing claim.
pub fn editor(page: &EditorPage, error: Option<&FormError>) -> Markup {
    let EditorPage { member, owned, form, .. } = page;
    let claim = page.claim.as_ref();
    let title = if claim.is_some() { "Edit claim" } else { "Add claim" };
    let action =
        claim.map_or_else(|| format!("{PATH}/new"), |claim| format!("{PATH}/{}", claim.id));
    let field = |id, label| Field::new(id, label).error(error);
    let usual = owned.money().currency.as_str();
    let labels = PRICES.map(|(_, label)| format!("{label} ({usual})"));
    let [bid, acquired, renewal, resale, commission] = labels.each_ref().map(String::as_str);
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
                            (field("venue", "Venue").help("Where you place the bid.").input(form.text("venue"), Input { longest: Some(VENUE_CHARS_MAX), list: Some("venues"), ..text }))
                            (field("bid", bid).help("No cost until you win.").input(form.text("bid"), price))
                        }
                        datalist #venues { @for venue in venues(owned) { option value=(venue) {} } }
                        p.soft.small #status-help { b { "Caught" } " means that a venue got the name for you. " b { "Registered" } " means that you registered it yourself once it was free." }
                        div.pair {
                            (field("acquired", acquired).help("The price that you paid for the name. Other currencies as in 12.50 EUR.").input(form.text("acquired"), price))
                            (field("renews_on", "Renews on").input(form.text("renews_on"), Input { kind: "date", ..text }))
                            (field("renewal", renewal).input(form.text("renewal"), price))
                        }
                        fieldset.group #sale {
                            legend { "Sale" }
                            p.help { "For sold names only. Changing the status removes the sale." }
                            div.pair {
                                (field("resale", resale).input(form.text("resale"), price))
                                (field("commission", commission).help("An amount, or a share of the price such as 15 %.").input(form.text("commission"), price))
                                (field("sold_venue", "Sold at").help("The venue of the sale.").input(form.text("sold_venue"), Input { longest: Some(VENUE_CHARS_MAX), list: Some("venues"), ..text }))
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

/// Renders the field for the alert rule of a claim. A deleted rule stays selectable for a claim
/// that names it.
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

/// Returns the registrars of recent claims, latest first.
fn registrars(owned: &UserData) -> Vec<&str> {
    let mut seen = Vec::new();
    // Only recent claims are read, because reading all of them would be slow.
    for registrar in owned.claims().take(1_000).filter_map(|claim| claim.registrar.as_deref()) {
        if seen.len() < REGISTRARS_MAX && !seen.contains(&registrar) {
            seen.push(registrar);
        }
    }
    seen
}

/// Returns the venues of recent claims and of the watchlist, latest first.
fn venues(owned: &UserData) -> Vec<&str> {
    let claims = owned.claims().take(1_000);
    let claims = claims.flat_map(|claim| [claim.venue.as_deref(), claim.sale_terms().1]).flatten();
    let mut seen = Vec::new();
    for venue in claims.chain(owned.watched_venues().take(1_000)) {
        if seen.len() < REGISTRARS_MAX && !seen.contains(&venue) {
            seen.push(venue);
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

fn price(price: Option<Amount>) -> Markup {
    price.map_or_else(nothing, |price| html! { (amount(price)) })
}

/// Renders a profit or loss in its colour.
fn signed(minor: i128, currency: Currency) -> Markup {
    let text = sum_of_money(minor.unsigned_abs(), currency);
    html! {
        @match minor {
            0 => { (text) }
            1.. => { span.gain { "+" (text) } }
            _ => { span.loss { "−" (text) } }
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
            assert_eq!(sum_of_money(cents, Currency::USD), text);
        }
        let eur = Currency::parse("EUR").expect("a currency");
        let jpy = Currency::parse("JPY").expect("a currency");
        assert_eq!(sum_of_money(123_450, eur), "1,234.50 EUR");
        assert_eq!(sum_of_money(123_450, jpy), "123,450 JPY");
        assert_eq!(signed(-250, Currency::USD).into_string(), "<span class=\"loss\">−$2.50</span>");
    }

    #[test]
    fn notes_are_shortened_at_characters() {
        assert_eq!(short("one\ntwo"), "one …");
        assert_eq!(short(" one "), "one");
        assert_eq!(short(&"é".repeat(200)).chars().count(), NOTE_CHARS + 1);
    }
}
