//! What a rule would tell, as its editor shows it.

use axum::http::StatusCode;
use maud::{Markup, html};

use super::form::RuleForm;
use crate::accounts::MatchedName;
use crate::http::alerts::deliveries::matched_samples;
use crate::http::alerts::{preview_filter, rule_query};
use crate::http::allowance::Now;
use crate::http::error::{ApiError, Refusal};
use crate::http::work;
use crate::vocab::day::Day;
use crate::web::Web;
use crate::web::components::{self, counted, grouped};
use crate::web::error::sentence;

/// Height and width of a bar of the chart, and of the gap after it.
const BARS: (u32, u32, u32) = (48, 8, 2);

/// What the rule of a form would tell.
pub struct Preview {
    today: u32,
    /// The last drop dates, newest first.
    per_day: Vec<(Day, u32)>,
    samples: Vec<MatchedName>,
}

/// The preview of a form's rule, or what is wrong with its filter.
///
/// # Errors
/// The filter is not as it should be.
pub async fn preview(web: &Web, now: Now, form: &RuleForm) -> Result<Preview, ApiError> {
    let filter = preview_filter(form.draft(), web.app.guard.rules())?;
    let (index, as_of) = (web.app.live.current(), web.app.as_of(now));
    work::run(index.preview_cost_us(as_of), move || {
        let preview = index.preview(&rule_query(&filter), as_of)?;
        let samples = matched_samples(&preview, &index, as_of);
        Ok(Preview { today: preview.today, per_day: preview.per_day, samples })
    })
    .await
}

/// The preview as markup; a filter that is refused says why, unless the form says it beside its field.
pub fn shown(preview: Result<Preview, ApiError>, says_why: bool) -> (StatusCode, Markup) {
    match preview {
        Ok(preview) => (StatusCode::OK, preview.shown()),
        Err(err) => {
            let (what, refusal) = (told(&err), Refusal::from(err));
            let why = what.unwrap_or_else(|| sentence(refusal.message()));
            let shown = html! {
                @if says_why { p.problem { (why) } }
                @else { p.soft { "Put the filter right to see what it matches." } }
            };
            (refusal.status, shown)
        }
    }
}

/// The refusal of a field by the name that the form has for it.
fn told(err: &ApiError) -> Option<String> {
    let ApiError::BadParameter { name, what } = err else { return None };
    let label = match RuleForm::default().field_of(name)?.as_str() {
        "tlds" => "TLDs",
        "min_dqs" => "Lowest DQS",
        "max_length" => "Longest name",
        "contains" => "Contains",
        _ => "Stages",
    };
    Some(sentence(&format!("{label}: {what}")))
}

impl Preview {
    fn shown(&self) -> Markup {
        let names = |number| counted(number, "name");
        html! {
            p.figure { b { (grouped(self.today.into())) } " " (if self.today == 1 { "name matches now" } else { "names match now" }) }
            @if !self.per_day.is_empty() { (self.chart()) }
            @if self.samples.is_empty() {
                p.soft { "Nothing in the lists matches this filter today. It may be too narrow: leave out a condition and look again." }
            } @else {
                h3 { @if self.today as usize > self.samples.len() { "The best of them" } @else { "These" } }
                ul.samples {
                    @for matched in &self.samples {
                        li {
                            span.which { (components::name_linked(matched.name.as_str(), matched.name.tld())) }
                            (components::score(matched.dqs))
                            span.stage-of { (components::stage(matched.stage, matched.release)) }
                        }
                    }
                }
            }
            @if let Some((newest, count)) = self.per_day.first() {
                p.soft { "The newest list (" time datetime=(newest) { (newest) } ") would have told you of " (names(*count)) "." }
            }
        }
    }

    /// A bar for each of the last drop dates, oldest first.
    fn chart(&self) -> Markup {
        let (height, width, gap) = BARS;
        let most = self.per_day.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
        let total: u64 = self.per_day.iter().map(|(_, count)| u64::from(*count)).sum();
        let days = self.per_day.len();
        let all = days as u32 * (width + gap) - gap;
        let average = match (total + days as u64 / 2) / days as u64 {
            0 => "Fewer than one".to_owned(),
            average => format!("About {}", grouped(average)),
        };
        // At least a pixel where there is something.
        let bar = |count: u32| (u64::from(count) * u64::from(height)).div_ceil(u64::from(most));
        html! {
            figure.lists {
                svg viewBox={ "0 0 " (all) " " (height) } preserveAspectRatio="none" width="100%" height="56" role="img"
                    aria-label={ "Matches of the last " (days) " drop dates: up to " (most) " a day" } {
                    @for (place, (_, count)) in self.per_day.iter().rev().enumerate() {
                        @let tall = bar(*count);
                        rect.bar x=(place as u32 * (width + gap)) y=(u64::from(height) - tall) width=(width) height=(tall) {}
                    }
                }
                figcaption.soft {
                    @if total == 0 { "None in the last " (days) " drop dates" }
                    @else { (average) " a day over the last " (counted(days as u32, "drop date")) }
                }
            }
        }
    }
}
