//! A rule tried on the releases of the last year, for the rule editor (`data/docs/outcomes.md`).

use axum::http::StatusCode;
use maud::{Markup, html};

use super::form::RuleForm;
use super::preview;
use crate::Web;
use crate::accounts::Caller;
use crate::components::{self, counted, date, date_text, grouped};
use crate::index::query::outcome_tables::percent;
use crate::index::rules::backtest::{self, Backtest, BacktestPeriod, Example, Tested};
use crate::query::stored::Conditions;
use crate::service::app::Now;
use crate::service::error::ApiError;
use crate::service::work;
use crate::vocab::day::Day;
use crate::vocab::name::DomainName;
use crate::vocab::outcome::{Completeness, Horizon, ReturnTime, Verdict};

const MONTHS: u16 = 12;
const HORIZON: Horizon = Horizon::Week;
/// Height and width of a bar, and width of the gap, in SVG units.
const BARS: (u64, usize, usize) = (72, 20, 4);

/// A form that was tried.
pub struct Tried {
    tested: Backtest,
    today: Day,
    ignored: Vec<&'static str>,
}

/// Tries the filter of a form.
///
/// # Errors
/// The first invalid value of the filter, or 429 for an account that runs too many.
pub async fn backtest(
    web: &Web,
    now: Now,
    caller: &Caller,
    form: &RuleForm,
) -> Result<Tried, ApiError> {
    form.check()?;
    let (app, as_of) = (web.app.clone(), web.app.as_of(now));
    let (index, account) = (app.live.current(), caller.account);
    let state = form.state();
    work::run_or_scan(state.reads_text(), index.backtest_cost_us(), move || {
        let mut query = Conditions::of_form(state.parameters(), as_of.today)?.rule(as_of.today)?;
        app.apply_facts(&index, &mut query.common, as_of.today)?;
        let _turn = app.limits.backtests.begin(account)?;
        let period = BacktestPeriod::new(as_of.today, MONTHS, HORIZON);
        let tested = index.backtest(&query, period);
        Ok(Tried { tested, today: as_of.today, ignored: backtest::ignored(&query) })
    })
    .await
}

/// Renders the result, or the error.
pub fn show(tried: Result<Tried, ApiError>) -> (StatusCode, Markup) {
    match tried {
        Ok(tried) => (StatusCode::OK, tried.shown()),
        Err(err) => preview::show_error_of(err),
    }
}

impl Tried {
    fn shown(&self) -> Markup {
        let Backtest { period, all, .. } = &self.tested;
        let per_day = all.names as f64 / f64::from(period.days());
        html! {
            p.figure { b { (grouped(all.names)) } " " (if all.names == 1 { "name was released" } else { "names were released" }) ", " (format!("{per_day:.1}")) " a day" }
            p.soft { "From " (date(period.from, self.today)) " to " (date(period.to, self.today)) ". " (self.share()) " " a href="/docs/outcomes" { "How it is counted" } }
            @if all.names > 0 { (self.chart()) }
            @if !self.tested.examples.is_empty() {
                h3 { "A random sample" }
                table.tried {
                    thead { tr { th scope="col" { "Name" } th scope="col" { "Score" } th scope="col" { "Released" } th scope="col" { "Outcome" } } }
                    tbody { @for example in &self.tested.examples { (self.example(example)) } }
                }
            }
            @if !self.tested.missing.is_empty() { p.soft { (self.missing()) } }
            @if !self.ignored.is_empty() { p.soft { "Stages, dates and places among today's drops do not apply to the past." } }
        }
    }

    /// Says which share was registered again.
    fn share(&self) -> String {
        let all = &self.tested.all;
        let Some((shown, names, share)) = all.share() else {
            return "No list shows whether they were registered again.".to_owned();
        };
        let at_least = if shown == Completeness::Complete { "" } else { "at least " };
        let unknown = match all.names - names {
            0 => String::new(),
            unknown => format!(" For {}, no list shows it.", grouped(unknown)),
        };
        format!(
            "Of {} with a known outcome, {at_least}{} % were registered again within a week ({}-{} %).{unknown}",
            grouped(names),
            percent(share.share),
            percent(share.low),
            percent(share.high)
        )
    }

    /// Renders a bar for each month: registered again, not, and unknown.
    fn chart(&self) -> Markup {
        let (height, width, gap) = BARS;
        let months = &self.tested.by_month;
        let most = months.iter().map(|(_, of)| of.names).max().unwrap_or(0).max(1);
        let all = months.len() * (width + gap) - gap;
        let tall = |names: u64| (names * height).div_ceil(most);
        let parts = |of: &Tested| {
            let (names, taken) =
                of.share().map_or((0, 0), |(_, names, share)| (names, share.count));
            [("taken", taken), ("free", names), ("unknown", of.names)]
        };
        html! {
            figure.lists.months {
                svg viewBox={ "0 0 " (all) " " (height) } preserveAspectRatio="none" width="100%" height="80" role="img"
                    aria-label={ "Names by month of release: up to " (grouped(most)) " a month" } {
                    @for (place, (month, of)) in months.iter().enumerate() {
                        // Longer bars first, so that shorter ones cover their lower part.
                        @for (class, names) in parts(of).into_iter().rev() {
                            rect.(class) x=(place * (width + gap)) y=(height - tall(names)) width=(width) height=(tall(names)) {
                                title { (month.date().format("%b %Y").to_string()) ": " (grouped(names)) }
                            }
                        }
                    }
                }
                figcaption.soft { span.key.taken { "registered again" } " " span.key.free { "not" } " " span.key.unknown { "unknown" } }
            }
        }
    }

    fn example(&self, example: &Example) -> Markup {
        let within = match (example.verdict, example.time) {
            (Verdict::Renewed, _) => "renewed",
            (Verdict::Unknown | Verdict::NotOver, _) => "unknown",
            (_, Some(ReturnTime::Within(horizon))) => horizon.words(),
            (Verdict::Known(_, true), _) => "registered again",
            (Verdict::Known(_, false), _) => "free",
        };
        let tld = DomainName::parse(&example.name).map(|name| name.tld().to_owned());
        html! {
            tr {
                td { (components::name_linked(&example.name, &tld.unwrap_or_default())) }
                td { (components::score(example.dqs)) }
                td { (date(example.release, self.today)) }
                td { (within) }
            }
        }
    }

    /// Names the days without any release.
    fn missing(&self) -> String {
        let missing = &self.tested.missing;
        let days: i32 = missing.iter().map(|(from, to)| to.days_since(*from) + 1).sum();
        let first: Vec<String> = missing
            .iter()
            .take(3)
            .map(|&(from, to)| match from == to {
                true => date_text(from, self.today),
                false => {
                    format!("{} to {}", date_text(from, self.today), date_text(to, self.today))
                }
            })
            .collect();
        let more = if missing.len() > 3 { " and others" } else { "" };
        let days = counted(days.unsigned_abs(), "day");
        format!("Lists of {days} are missing: {}{more}.", first.join(", "))
    }
}
