//! A form field with its label, help text and error.

use maud::{Markup, html};

/// An `<input>` of the account forms.
#[derive(Clone, Copy)]
pub struct Field<'a> {
    /// The `id` and the `name`.
    pub name: &'a str,
    pub label: &'a str,
    /// The `type`.
    pub kind: &'a str,
    /// Current value. Passwords are never sent back.
    pub value: &'a str,
    pub autocomplete: &'a str,
    pub chars_max: u32,
    pub help: Option<&'a str>,
    pub error: Option<&'a str>,
    pub required: bool,
}

impl<'a> Field<'a> {
    /// Field for the e-mail address of an account.
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

    /// Field for an existing password.
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

    /// Field for a new password.
    pub fn new_password(error: Option<&'a str>) -> Field<'a> {
        Field {
            autocomplete: "new-password",
            help: Some("8 to 128 characters. Use a few unrelated words."),
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
