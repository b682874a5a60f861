//! Fields of forms as markup, and what is wrong with them: a form that is refused is shown again with
//! its values, and with the reason beside the field it is about.

use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};

use crate::http::error::{ApiError, Refusal};
use crate::web::error::sentence;

/// Why a form was not carried out.
pub struct FormError {
    status: StatusCode,
    headers: HeaderMap,
    /// The id of the field it is about.
    field: Option<String>,
    /// A sentence.
    text: String,
    /// Whether another plan allows more.
    is_about_plan: bool,
}

impl FormError {
    /// What the API would say of the form. `field_of` knows in which field a member of the API's shape
    /// is (`filter.minDqs`).
    pub fn of(err: ApiError, field_of: impl FnOnce(&str) -> Option<String>) -> FormError {
        let told = match &err {
            ApiError::BadParameter { name, what } => Some((field_of(name), what.clone())),
            _ => None,
        };
        let is_about_plan = matches!(&err, ApiError::PlanLimit { plan: Some(_), .. });
        let refusal = Refusal::from(err);
        let (field, text) = told.unwrap_or_else(|| (None, refusal.message().to_owned()));
        let Refusal { status, headers, .. } = refusal;
        FormError { status, headers, field, text: sentence(&text), is_about_plan }
    }

    /// A fault of ours about a field, or about the whole form.
    pub fn new(status: StatusCode, field: Option<&str>, text: &str) -> FormError {
        let (field, text) = (field.map(str::to_owned), text.to_owned());
        FormError { status, headers: HeaderMap::new(), field, text, is_about_plan: false }
    }

    /// What is wrong with a field.
    pub fn about(&self, field: &str) -> Option<&str> {
        (self.field.as_deref() == Some(field)).then_some(self.text.as_str())
    }

    /// The line at the head of the form.
    pub fn shown(&self) -> Markup {
        html! {
            div.problem role="alert" {
                @match &self.field {
                    Some(field) => { a href={ "#" (field) } { (self.text) } }
                    None => { (self.text) }
                }
                @if self.is_about_plan { " " a href="/account/plan" { "See what other plans allow" } "." }
            }
        }
    }

    /// The page that shows it, with the status of the refusal.
    pub fn answer(self, page: Markup) -> Response {
        (self.status, self.headers, page).into_response()
    }
}

/// The label of a field, its help and what is wrong with it.
#[derive(Clone, Copy)]
pub struct Field<'a> {
    id: &'a str,
    name: &'a str,
    label: &'a str,
    help: &'a str,
    fault: Option<&'a FormError>,
}

/// What kind of text an `<input>` takes.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    pub kind: &'a str,
    pub mode: Option<&'a str>,
    pub longest: Option<usize>,
    pub range: Option<(u32, u32)>,
    pub placeholder: Option<&'a str>,
    pub is_required: bool,
    /// The id of a list of proposals.
    pub list: Option<&'a str>,
}

impl Default for Input<'_> {
    fn default() -> Self {
        Input {
            kind: "text",
            mode: None,
            longest: None,
            range: None,
            placeholder: None,
            is_required: false,
            list: None,
        }
    }
}

impl<'a> Field<'a> {
    /// A field whose name is its id.
    pub fn new(id: &'a str, label: &'a str) -> Field<'a> {
        Field { id, name: id, label, help: "", fault: None }
    }

    /// With a name that is not its id: there are several of it.
    pub fn named(self, name: &'a str) -> Field<'a> {
        Field { name, ..self }
    }

    /// With a line that says what belongs there.
    pub fn help(self, help: &'a str) -> Field<'a> {
        Field { help, ..self }
    }

    /// With what was wrong with the form, where there is something.
    pub fn fault(self, fault: Option<&'a FormError>) -> Field<'a> {
        Field { fault, ..self }
    }

    /// What is wrong with this one.
    fn error(&self) -> Option<&'a str> {
        self.fault.and_then(|fault| fault.about(self.id))
    }

    /// `true` where something is, for `aria-invalid`.
    pub fn invalid(&self) -> Option<&'static str> {
        self.error().map(|_| "true")
    }

    /// The ids of its help and error, for `aria-describedby`.
    pub fn described_by(&self) -> Option<String> {
        let help = (!self.help.is_empty()).then(|| format!("{}-help", self.id));
        let error = self.error().map(|_| format!("{}-error", self.id));
        let ids: Vec<_> = help.into_iter().chain(error).collect();
        (!ids.is_empty()).then(|| ids.join(" "))
    }

    /// The field around its control, whose id is the field's.
    pub fn around(&self, control: Markup) -> Markup {
        html! {
            div.field {
                label for=(self.id) { (self.label) }
                (control)
                @if !self.help.is_empty() { p.help id={ (self.id) "-help" } { (self.help) } }
                @if let Some(error) = self.error() { p.error id={ (self.id) "-error" } { (error) } }
            }
        }
    }

    /// The field with an `<input>`.
    pub fn input(&self, value: &str, input: Input<'_>) -> Markup {
        let (least, most) = input.range.unzip();
        self.around(html! {
            input id=(self.id) name=(self.name) type=(input.kind) value=(value) autocomplete="off"
                inputmode=[input.mode] maxlength=[input.longest] min=[least] max=[most]
                placeholder=[input.placeholder] required[input.is_required] list=[input.list]
                aria-invalid=[self.invalid()] aria-describedby=[self.described_by()];
        })
    }

    /// The field with a `<textarea>`.
    pub fn textarea(&self, value: &str, rows: u32, longest: Option<usize>) -> Markup {
        // Browsers drop a line end that follows the tag.
        self.around(html! {
            textarea id=(self.id) name=(self.name) rows=(rows) maxlength=[longest] spellcheck="false"
                aria-invalid=[self.invalid()] aria-describedby=[self.described_by()] { "\n" (value) }
        })
    }

    /// The field with a `<select>` of values and words.
    pub fn select(&self, value: &str, options: &[(&str, &str)]) -> Markup {
        self.around(html! {
            select id=(self.id) name=(self.name)
                aria-invalid=[self.invalid()] aria-describedby=[self.described_by()] {
                @for (option, word) in options {
                    option value=(option) selected[*option == value] { (word) }
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_said_beside_its_field_and_at_the_head() {
        let err = ApiError::parameter("filter.minDqs", "must be an integer from 0 to 100");
        let fault =
            FormError::of(err, |name| (name == "filter.minDqs").then(|| "min_dqs".to_owned()));
        let field = Field::new("min_dqs", "Lowest DQS").help("0 to 100").fault(Some(&fault));
        let shown = field.input("<b>", Input::default()).into_string();
        assert!(shown.contains("value=\"&lt;b&gt;\""), "{shown}");
        assert!(shown.contains("aria-describedby=\"min_dqs-help min_dqs-error\""), "{shown}");
        assert!(shown.contains("Must be an integer from 0 to 100."), "{shown}");
        assert!(fault.shown().into_string().contains("href=\"#min_dqs\""));
        assert_eq!(Field::new("name", "Name").fault(Some(&fault)).invalid(), None);
        assert_eq!(fault.answer(html! {}).status(), StatusCode::BAD_REQUEST);
    }
}
