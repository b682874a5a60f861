//! The form of an alert rule, with a preview of its matches.

use maud::{Markup, html};

use super::channels::Channels;
use super::form::OWN_FIELDS;
use super::{BACKTEST, EditorPage};
use crate::components::stage_word;
use crate::drops::state::DropsParams;
use crate::drops::words;
use crate::error::sentence_case;
use crate::field::{Field, FormError, Input};
use crate::layout::{NavItem, Page};
use crate::owned::{STYLES, idempotency_field};
use crate::vocab::limits::{
    LABEL_CHARS_MAX, RULE_NAME_CHARS_MAX, RULE_TLDS_MAX, SUBSTRING_CHARS_MAX,
};
use crate::vocab::stage::Stage;

/// Path of the rules.
pub const PATH: &str = "/alerts";

/// Input of the form.
pub struct Editor<'a> {
    pub page: &'a EditorPage,
    pub error: Option<&'a FormError>,
    /// Matches of the filter in the form.
    pub preview: Markup,
}

/// Renders the page of a new rule.
pub fn new_page(editor: &Editor<'_>) -> Markup {
    Page::new("New alert rule", "Describe the names you want and where alerts about them are sent.")
        .at(NavItem::Alerts)
        .styles(STYLES)
        .scripts(&["alerts.js"])
        .show(
            Some(&editor.page.member.viewer),
            html! {
                p.trail { a href=(PATH) { "Alerts" } }
                h1 { "New alert rule" }
                p.soft.lead { "You get one message for each new list with matching names." }
                @if let Some(error) = editor.error { (error.shown()) }
                (editor.shown())
            },
        )
}

impl Editor<'_> {
    /// Renders the form and the preview.
    pub fn shown(&self) -> Markup {
        let action = match &self.page.rule {
            Some(rule) => format!("{PATH}/{}", rule.id),
            None => format!("{PATH}/new"),
        };
        html! {
            div.editor {
                form #rule.panel method="post" action=(action) {
                    @match &self.page.rule {
                        Some(rule) => { input type="hidden" name="rule" value=(rule.id); }
                        None => { (idempotency_field()) }
                    }
                    (self.name())
                    (self.filter())
                    (self.channels())
                    p.send {
                        button type="submit" { @if self.page.rule.is_some() { "Save" } @else { "Create alert" } }
                        button.quiet #look type="submit" formaction="/alerts/preview" { "Preview" }
                        button.quiet #try type="submit" formaction={ (BACKTEST) "#tried" } { "Try on the last 12 months" }
                    }
                }
                section.panel.preview aria-labelledby="preview-title" {
                    h2 #preview-title { "Preview" }
                    div #preview aria-live="polite" { (self.preview) }
                    @if let Some(tried) = &self.page.tried {
                        h2 #tried { "On the last 12 months" }
                        (tried)
                    }
                }
            }
        }
    }

    fn field<'f>(&'f self, id: &'f str, label: &'f str) -> Field<'f> {
        Field::new(id, label).error(self.error)
    }

    fn name(&self) -> Markup {
        let input = Input { longest: Some(RULE_NAME_CHARS_MAX), is_required: true, ..Input::TEXT };
        self.field("name", "Name")
            .help("Shown in the subject of its messages.")
            .input(self.page.form.text("name"), input)
    }

    fn filter(&self) -> Markup {
        let form = &self.page.form;
        let tlds_help = format!("Up to {RULE_TLDS_MAX}, separated by commas. Leave empty for all.");
        let text = Input::TEXT;
        let number =
            |range| Input { kind: "number", mode: Some("numeric"), range: Some(range), ..text };
        html! {
            fieldset.group {
                legend { "Names" }
                (self.field("tld", "TLDs").help(&tlds_help).input(&form.shown("tld"), Input { placeholder: Some("com, net, co.uk"), ..text }))
                div.pair {
                    (self.field("min_dqs", "Minimum score").help("0 to 100.").input(form.text("min_dqs"), number((0, 100))))
                    (self.field("max_len", "Maximum length").help("Characters before the first dot.").input(form.text("max_len"), number((1, u32::from(LABEL_CHARS_MAX)))))
                }
                (self.field("q", "Contains").help("Text anywhere in the name.").input(form.text("q"), Input { longest: Some(SUBSTRING_CHARS_MAX), ..text }))
                (self.stages())
                (self.others())
            }
        }
    }

    fn stages(&self) -> Markup {
        let error = self.error.and_then(|error| error.about("stages"));
        let chosen = self.page.form.filled("stage");
        html! {
            fieldset.field #stages {
                legend { "Stages" }
                div.chips {
                    @for stage in Stage::ALL {
                        label.chip {
                            input type="checkbox" name="stage" value=(stage) checked[chosen.contains(&stage.as_str())];
                            span { (sentence_case(stage_word(stage))) }
                        }
                    }
                }
                p.help { "Select none for all stages except released." }
                @if let Some(error) = error { p.error { (error) } }
            }
        }
    }

    /// Renders the other filters as chips, and the query bar that adds more. A chip that is not
    /// checked is not sent.
    fn others(&self) -> Markup {
        let state = self.page.form.state();
        let is_other = |(name, _): &(&str, &str)| !OWN_FIELDS.contains(name);
        let others: Vec<_> = state.parameters().filter(is_other).collect();
        let help = "Such as starts:my, -hyphens or len:4-8, in the words of the list of drops.";
        html! {
            @if !others.is_empty() {
                fieldset.field {
                    legend { "More filters" }
                    div.chips {
                        @for pair @ (name, value) in others {
                            @for chip in words::chips(&DropsParams::from_pairs([pair].into_iter()), None) {
                                label.chip {
                                    input type="checkbox" name=(name) value=(value) checked;
                                    span { (chip.word) " " (chip.value) }
                                }
                            }
                        }
                    }
                    p.help { "Uncheck a filter to remove it." }
                }
            }
            (self.field("add", "Add filters").help(help).input(self.page.form.text("add"), Input { placeholder: Some("starts:my -hyphens"), ..Input::TEXT }))
            @if self.page.form.is_on("search") { input type="hidden" name="search" value=(self.page.form.text("search")); }
        }
    }

    fn channels(&self) -> Markup {
        let EditorPage { web, member, owned, rule, form, .. } = self.page;
        let is_off = rule.as_ref().is_some_and(|rule| {
            rule.channels.iter().any(|it| owned.switched_off(rule.id, it).is_some())
        });
        let (form, error) = (form, self.error);
        Channels { web, member, form, error, least: 1, is_off }.fields()
    }
}
