//! Form fields and form errors. A rejected form is shown again with its values, and the error beside the
//! field.

use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};

use crate::accounts::WriteError;
use crate::edge::error::Refusal;
use crate::error::sentence;
use crate::service::error::ApiError;

/// Message for an idempotency key that is reused with other values.
const RESUBMITTED: &str =
    "This form was already submitted with other values. Check them and submit it again.";

/// Reason why a form was rejected.
pub struct FormError {
    status: StatusCode,
    headers: HeaderMap,
    /// Id of the invalid field; `None` for the whole form.
    field: Option<String>,
    /// A complete sentence.
    text: String,
    /// Whether a higher plan would allow it.
    is_about_plan: bool,
}

impl FormError {
    /// Converts an error of the API. `field_of` maps a property of the request (`filter.minDqs`) to the
    /// id of its field.
    pub fn new(err: ApiError, field_of: impl FnOnce(&str) -> Option<String>) -> FormError {
        let message = match &err {
            ApiError::BadParameter { name, what, .. } => Some((field_of(name), what.clone())),
            ApiError::Write(WriteError::IdempotencyConflict) => {
                Some((None, RESUBMITTED.to_owned()))
            }
            _ => None,
        };
        let is_about_plan = matches!(&err, ApiError::Write(WriteError::PlanLimit { .. }));
        let refusal = Refusal::from(err);
        let (field, text) = message.unwrap_or_else(|| (None, refusal.message().to_owned()));
        let Refusal { status, headers, .. } = refusal;
        FormError { status, headers, field, text: sentence(&text), is_about_plan }
    }

    /// Creates an error found by the page itself, about a field or the whole form.
    pub fn with_status(status: StatusCode, field: Option<&str>, text: &str) -> FormError {
        let (field, text) = (field.map(str::to_owned), text.to_owned());
        FormError { status, headers: HeaderMap::new(), field, text, is_about_plan: false }
    }

    /// Returns the error text of a field.
    pub fn about(&self, field: &str) -> Option<&str> {
        (self.field.as_deref() == Some(field)).then_some(self.text.as_str())
    }

    /// Renders the error at the top of the form.
    pub fn shown(&self) -> Markup {
        html! {
            div.problem role="alert" {
                @match &self.field {
                    Some(field) => { a href={ "#" (field) } { (self.text) } }
                    None => { (self.text) }
                }
                @if self.is_about_plan { " " a href="/account/plan" { "See your plan" } "." }
            }
        }
    }

    /// Returns the response with the page that shows the error.
    pub fn into_page(self, page: Markup) -> Response {
        (self.status, self.headers, page).into_response()
    }
}

/// A form field with its label, help text and error.
#[derive(Clone, Copy)]
pub struct Field<'a> {
    id: &'a str,
    name: &'a str,
    label: &'a str,
    help: &'a str,
    error: Option<&'a str>,
}

/// Attributes of an `<input>`.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    pub kind: &'a str,
    pub autocomplete: &'a str,
    pub mode: Option<&'a str>,
    pub longest: Option<usize>,
    pub range: Option<(u32, u32)>,
    pub placeholder: Option<&'a str>,
    pub is_required: bool,
    /// Id of a `<datalist>` with suggestions.
    pub list: Option<&'a str>,
}

impl Input<'static> {
    /// A text without limits.
    pub const TEXT: Self = Input {
        kind: "text",
        autocomplete: "off",
        mode: None,
        longest: None,
        range: None,
        placeholder: None,
        is_required: false,
        list: None,
    };
    /// The e-mail address of an account.
    pub const EMAIL: Self = Input {
        kind: "email",
        autocomplete: "username",
        longest: Some(254),
        is_required: true,
        ..Self::TEXT
    };
    /// An existing password. Passwords are never sent back.
    pub const PASSWORD: Self = Input {
        kind: "password",
        autocomplete: "current-password",
        longest: Some(128),
        is_required: true,
        ..Self::TEXT
    };
}

impl<'a> Field<'a> {
    /// A field whose `name` equals its `id`.
    pub fn new(id: &'a str, label: &'a str) -> Field<'a> {
        Field { id, name: id, label, help: "", error: None }
    }

    /// Sets a `name` shared by several fields.
    pub fn named(self, name: &'a str) -> Field<'a> {
        Field { name, ..self }
    }

    /// Adds a help text.
    pub fn help(self, help: &'a str) -> Field<'a> {
        Field { help, ..self }
    }

    /// Adds the error of the form, shown if it concerns this field.
    pub fn error(self, error: Option<&'a FormError>) -> Field<'a> {
        self.problem(error.and_then(|error| error.about(self.id)))
    }

    /// Adds an error of this field.
    pub fn problem(self, error: Option<&'a str>) -> Field<'a> {
        Field { error, ..self }
    }

    /// Renders the field for the e-mail address of an account.
    pub fn email(value: &str, problem: Option<&str>) -> Markup {
        Field::new("email", "E-mail address").problem(problem).input(value, Input::EMAIL)
    }

    /// Renders the field for an existing password.
    pub fn password(id: &str, label: &str, problem: Option<&str>) -> Markup {
        Field::new(id, label).problem(problem).input("", Input::PASSWORD)
    }

    /// Renders the field for a new password.
    pub fn new_password(label: &str, problem: Option<&str>) -> Markup {
        let input = Input { autocomplete: "new-password", ..Input::PASSWORD };
        let help = "8 to 128 characters. Use a few unrelated words.";
        Field::new("password", label).help(help).problem(problem).input("", input)
    }

    /// Value of `aria-invalid`.
    fn invalid(&self) -> Option<&'static str> {
        self.error.map(|_| "true")
    }

    /// Value of `aria-describedby`: the ids of help text and error.
    fn described_by(&self) -> Option<String> {
        let help = (!self.help.is_empty()).then(|| format!("{}-help", self.id));
        let error = self.error.map(|_| format!("{}-error", self.id));
        let ids: Vec<_> = help.into_iter().chain(error).collect();
        (!ids.is_empty()).then(|| ids.join(" "))
    }

    /// Renders the field around a control with the same id.
    fn around(&self, control: Markup) -> Markup {
        html! {
            div.field {
                label for=(self.id) { (self.label) }
                (control)
                @if !self.help.is_empty() { p.help id={ (self.id) "-help" } { (self.help) } }
                @if let Some(error) = self.error { p.error id={ (self.id) "-error" } { (error) } }
            }
        }
    }

    /// Renders the field with an `<input>`.
    pub fn input(&self, value: &str, input: Input<'_>) -> Markup {
        let (least, most) = input.range.unzip();
        let is_password = input.kind == "password";
        self.around(html! {
            input id=(self.id) name=(self.name) type=(input.kind) value=[(!is_password).then_some(value)]
                autocomplete=(input.autocomplete) inputmode=[input.mode] maxlength=[input.longest] min=[least] max=[most]
                placeholder=[input.placeholder] required[input.is_required] list=[input.list]
                aria-invalid=[self.invalid()] aria-describedby=[self.described_by()];
            @if is_password {
                button.quiet.small.reveal type="button" data-reveal=(self.id) aria-pressed="false" hidden { "Show" }
            }
        })
    }

    /// Renders the field with a required file.
    pub fn file(&self) -> Markup {
        self.around(html! {
            input id=(self.id) name=(self.name) type="file" required
                aria-invalid=[self.invalid()] aria-describedby=[self.described_by()];
        })
    }

    /// Renders the field with a `<textarea>`.
    pub fn textarea(&self, value: &str, rows: u32, longest: Option<usize>) -> Markup {
        // Browsers ignore a line break right after the tag.
        self.around(html! {
            textarea id=(self.id) name=(self.name) rows=(rows) maxlength=[longest] spellcheck="false"
                aria-invalid=[self.invalid()] aria-describedby=[self.described_by()] { "\n" (value) }
        })
    }

    /// Renders the field with a `<select>` of values and labels.
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
    fn errors_are_shown_beside_the_field_and_at_the_top() {
        let err = ApiError::parameter("filter.minDqs", "must be an integer from 0 to 100");
        let error =
            FormError::new(err, |name| (name == "filter.minDqs").then(|| "min_dqs".to_owned()));
        let field = Field::new("min_dqs", "Lowest DQS").help("0 to 100").error(Some(&error));
        let shown = field.input("<b>", Input::TEXT).into_string();
        assert!(shown.contains("value=\"&lt;b&gt;\""), "{shown}");
        assert!(shown.contains("aria-describedby=\"min_dqs-help min_dqs-error\""), "{shown}");
        assert!(shown.contains("Must be an integer from 0 to 100."), "{shown}");
        assert!(error.shown().into_string().contains("href=\"#min_dqs\""));
        assert_eq!(Field::new("name", "Name").error(Some(&error)).invalid(), None);
        assert_eq!(error.into_page(html! {}).status(), StatusCode::BAD_REQUEST);
    }
}
