//! Preview of the matches of a rule.

use axum::http::StatusCode;
use maud::{Markup, html};

use super::form::RuleForm;
use crate::Web;
use crate::components::{self, counted, grouped};
use crate::edge::error::Refusal;
use crate::error::sentence;
use crate::form::Fields;
use crate::query::stored::Conditions;
use crate::service::app::Now;
use crate::service::error::ApiError;
use crate::service::rules::matched_samples;
use crate::service::work;
use crate::vocab::day::Day;
use crate::vocab::dropped_name::DroppedName;

/// Height and width of a bar, and width of the gap, in SVG units.
const BARS: (u32, u32, u32) = (48, 8, 2);

/// Matches of a form.
pub struct Preview {
    /// Whether no filter narrows the lists.
    is_unfiltered: bool,
    /// Names that match today.
    matches: u32,
    today: Day,
    /// The most recent days that have lists, newest first, with the number of matches on each.
    per_day: Vec<(Day, u32)>,
    /// Matches in the newest list.
    latest: Option<(Day, u32)>,
    samples: Vec<DroppedName>,
}

/// Finds the matches of a form.
///
/// # Errors
/// The first invalid value of the filter.
pub async fn preview(web: &Web, now: Now, form: &RuleForm) -> Result<Preview, ApiError> {
    form.check()?;
    let (index, as_of) = (web.app.live.current(), web.app.as_of(now));
    let (state, app) = (form.state(), web.app.clone());
    let is_unfiltered = !state.is_filtered();
    work::run_or_scan(state.reads_text(), index.preview_cost_us(as_of), move || {
        let filter = Conditions::of_form(state.parameters(), as_of.today)?;
        let mut query = filter.rule(as_of.today)?;
        app.apply_facts(&index, &mut query.common, as_of.today)?;
        let preview = index.preview_moving(&query, filter.releases(&query), as_of)?;
        let samples = matched_samples(&preview, &index, as_of);
        let (matches, latest, per_day) = (preview.today, preview.latest, preview.per_day);
        Ok(Preview { is_unfiltered, matches, today: as_of.today, per_day, latest, samples })
    })
    .await
}

/// Renders the preview, or the error of the filter if the form does not show it beside the field.
pub fn show(preview: Result<Preview, ApiError>, show_error: bool) -> (StatusCode, Markup) {
    match preview {
        Ok(preview) => (StatusCode::OK, preview.shown()),
        Err(err) if show_error => show_error_of(err),
        Err(err) => {
            let soft = html! { p.soft { "Correct the filter to see matching names." } };
            (Refusal::from(err).status, soft)
        }
    }
}

/// Renders the error of a filter.
pub fn show_error_of(err: ApiError) -> (StatusCode, Markup) {
    let (message, refusal) = (field_message(&err), Refusal::from(err));
    let text = message.unwrap_or_else(|| sentence(refusal.message()));
    (refusal.status, html! { p.problem { (text) } })
}

/// Returns the error text with the label of its field.
fn field_message(err: &ApiError) -> Option<String> {
    let ApiError::BadParameter { name, what, .. } = err else { return None };
    let member = name.strip_prefix("filter.")?;
    let label = match RuleForm::new(Fields::default()).field_of(name)?.as_str() {
        "tld" => "TLDs",
        "min_dqs" => "Minimum score",
        "max_len" => "Maximum length",
        "q" => "Contains",
        "stages" => "Stages",
        // Errors of the query bar are already sentences.
        _ if member == "add" => return Some(what.clone()),
        _ => member,
    };
    Some(sentence(&format!("{label}: {what}")))
}

impl Preview {
    fn shown(&self) -> Markup {
        let names = |number| counted(number, "name");
        html! {
            @if self.is_unfiltered {
                p.hint { "Choose one filter first: this rule sends every name of every list." }
            }
            p.figure { b { (grouped(self.matches.into())) } " " (if self.matches == 1 { "name matches today" } else { "names match today" }) }
            @if !self.per_day.is_empty() { (self.chart()) }
            @if self.samples.is_empty() {
                p.soft { "No names match today. Try removing a condition." }
            } @else {
                h3 { @if self.matches as usize > self.samples.len() { "Best matches" } @else { "Matches" } }
                ul.samples {
                    @for matched in &self.samples {
                        li {
                            span.which { (components::name_linked(matched.name.as_str(), matched.name.tld())) }
                            (components::score(matched.dqs))
                            span.stage-of { (components::stage(matched.stage, matched.release, self.today)) }
                        }
                    }
                }
            }
            @if let Some((newest, count)) = self.latest {
                p.soft { "You would have received " (names(count)) " from the latest list (" (components::date(newest, self.today)) ")." }
            }
        }
    }

    /// Renders a bar for each of the most recent days that have lists, oldest first.
    fn chart(&self) -> Markup {
        let (height, width, gap) = BARS;
        let most = self.per_day.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
        let total: u64 = self.per_day.iter().map(|(_, count)| u64::from(*count)).sum();
        let days = self.per_day.len();
        let all = days as u32 * (width + gap) - gap;
        let average = match (total + days as u64 / 2) / days as u64 {
            0 => "Less than 1".to_owned(),
            average => format!("About {}", grouped(average)),
        };
        // Rounded up, so that small counts stay visible.
        let bar = |count: u32| (u64::from(count) * u64::from(height)).div_ceil(u64::from(most));
        html! {
            figure.lists {
                svg viewBox={ "0 0 " (all) " " (height) } preserveAspectRatio="none" width="100%" height="56" role="img"
                    aria-label={ "Names of the last " (days) " days with lists: up to " (most) " a day" } {
                    @for (place, (_, count)) in self.per_day.iter().rev().enumerate() {
                        @let tall = bar(*count);
                        rect.bar x=(place as u32 * (width + gap)) y=(u64::from(height) - tall) width=(width) height=(tall) {}
                    }
                }
                figcaption.soft {
                    @if total == 0 { "None on the last " (counted(days as u32, "day")) " with lists" }
                    @else { (average) " a day over the last " (counted(days as u32, "day")) " with lists" }
                }
            }
        }
    }
}
