//! One field of a form, with what is wrong with it beside it.

use maud::{Markup, html};

/// An `input` with its label.
#[derive(Clone, Copy)]
pub struct Field<'a> {
    /// Its id and name.
    pub name: &'a str,
    pub label: &'a str,
    /// Its `type`.
    pub kind: &'a str,
    /// What it holds; a password's is never shown again.
    pub value: &'a str,
    pub autocomplete: &'a str,
    pub chars_max: u32,
    pub help: Option<&'a str>,
    pub error: Option<&'a str>,
    pub required: bool,
}

impl<'a> Field<'a> {
    /// The address of an account.
    pub fn email(value: &'a str, error: Option<&'a str>) -> Field<'a> {
        Field {
            name: "email",
            label: "E-mail address",
            kind: "email",
            value,
            autocomplete: "username",
            chars_max: 254,
            help: None,
            error,
            required: true,
        }
    }

    /// The password of an account.
    pub fn password(name: &'a str, label: &'a str, error: Option<&'a str>) -> Field<'a> {
        Field {
            name,
            label,
            kind: "password",
            value: "",
            autocomplete: "current-password",
            chars_max: 128,
            help: None,
            error,
            required: true,
        }
    }

    /// A password to be chosen.
    pub fn new_password(error: Option<&'a str>) -> Field<'a> {
        Field {
            autocomplete: "new-password",
            help: Some("8 to 128 characters. A few words that only you put together are best."),
            ..Field::password("password", "New password", error)
        }
    }

    pub fn show(self) -> Markup {
        let (help_id, error_id) = (format!("{}-help", self.name), format!("{}-error", self.name));
        let described: Vec<&str> =
            [self.error.map(|_| error_id.as_str()), self.help.map(|_| help_id.as_str())]
                .into_iter()
                .flatten()
                .collect();
        let described = (!described.is_empty()).then(|| described.join(" "));
        let is_password = self.kind == "password";
        html! {
            div.field {
                label for=(self.name) { (self.label) }
                input id=(self.name) name=(self.name) type=(self.kind) value=[(!is_password).then_some(self.value)]
                    autocomplete=(self.autocomplete) maxlength=(self.chars_max) required[self.required]
                    autocapitalize="none" spellcheck="false"
                    aria-invalid=[self.error.map(|_| "true")] aria-describedby=[described];
                @if let Some(error) = self.error { p.error id=(error_id) { (error) } }
                @if let Some(help) = self.help { p.help id=(help_id) { (help) } }
                @if is_password {
                    button.quiet.small.reveal type="button" data-reveal=(self.name) aria-pressed="false" hidden { "Show" }
                }
            }
        }
    }
}
