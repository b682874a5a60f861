//! The receiver of a chat service: an address or tokens, which are credentials to post with. Pages
//! and the API show only the host and the last four characters.

use std::fmt;

use compact_str::CompactString;
use serde::{Deserialize, Serialize};

use crate::secret::Secret;
use crate::url::WebhookUrl;

/// Stands for the hidden part of a secret. No secret contains it.
pub const CUT: char = '…';
/// Minimum length of a secret whose last characters are shown.
const SHOWN_FROM: usize = 12;
/// Number of characters that are shown.
const SHOWN_CHARS: usize = 4;

/// A destination in a chat service.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chat {
    /// Name of the service, such as `slack`. It is stored as text, so that a new service needs no
    /// new format.
    pub service: CompactString,
    pub hook: Hook,
}

/// Credentials that the service issued to the owner. Each service uses one or two of these fields.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hook {
    pub url: Option<WebhookUrl>,
    pub token: Option<Secret>,
    pub user: Option<Secret>,
}

/// A part of a [`Hook`], by its name in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Url,
    Token,
    User,
}

impl Part {
    pub const ALL: [Part; 3] = [Part::Url, Part::Token, Part::User];

    /// Returns the name in requests and forms.
    pub fn as_str(self) -> &'static str {
        match self {
            Part::Url => "url",
            Part::Token => "token",
            Part::User => "user",
        }
    }
}

impl Hook {
    /// Returns the secret text of a part.
    pub fn reveal(&self, part: Part) -> Option<&str> {
        match part {
            Part::Url => self.url.as_ref().map(WebhookUrl::as_str),
            Part::Token => self.token.as_ref().map(Secret::reveal),
            Part::User => self.user.as_ref().map(Secret::reveal),
        }
    }

    /// Returns a part in the form in which it is shown: `https://hooks.slack.com/…wxyz`, `…wxyz`.
    pub fn shown(&self, part: Part) -> Option<String> {
        let text = self.reveal(part)?;
        let host = match (part, &self.url) {
            (Part::Url, Some(url)) => format!("https://{}/", authority(url)),
            _ => String::new(),
        };
        let secret = text.get(host.len()..).unwrap_or_default();
        Some(format!("{host}{CUT}{}", last(secret)))
    }

    /// Returns the host and the last four characters of the secret.
    pub fn label(&self) -> String {
        let host = self.url.as_ref().map(authority);
        let secret = self.token.as_ref().map(Secret::reveal);
        let path = self.url.as_ref().zip(host.as_ref()).map(|(url, host)| {
            url.as_str().get("https://".len() + host.len() + 1..).unwrap_or_default()
        });
        let end = format!("{CUT}{}", last(secret.or(path).unwrap_or_default()));
        host.map_or_else(|| end.clone(), |host| format!("{host} {end}"))
    }

    /// Returns the approximate size of the texts in memory.
    pub fn bytes(&self) -> usize {
        Part::ALL.into_iter().filter_map(|part| self.reveal(part)).map(str::len).sum()
    }
}

impl fmt::Debug for Chat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chat({} {})", self.service, self.hook.label())
    }
}

/// Returns the host and, unless it is 443, the port.
fn authority(url: &WebhookUrl) -> String {
    let rest = url.as_str().strip_prefix("https://").unwrap_or_default();
    rest.split(['/', '?']).next().unwrap_or_default().to_owned()
}

/// Returns the last characters of a secret, if it is long enough to hide most of it.
fn last(secret: &str) -> &str {
    let count = secret.chars().count();
    if count < SHOWN_FROM {
        return "";
    }
    secret.char_indices().nth(count - SHOWN_CHARS).map_or("", |(at, _)| &secret[at..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_shown_by_host_and_last_characters() {
        let url = |text: &str| Some(WebhookUrl::from_stored(text.to_owned()));
        let secret = |text: &str| Some(Secret::new(text.to_owned()));
        let slack = "https://hooks.slack.com/services/T0/B0/abcdefghwxyz";
        for (hook, shown, label) in [
            (
                Hook { url: url(slack), ..Hook::default() },
                [Some("https://hooks.slack.com/…wxyz"), None, None],
                "hooks.slack.com …wxyz",
            ),
            (
                Hook {
                    url: url("https://ntfy.sh:8443/topic"),
                    token: secret("tk_1234567890"),
                    user: None,
                },
                [Some("https://ntfy.sh:8443/…"), Some("…7890"), None],
                "ntfy.sh:8443 …7890",
            ),
            (
                Hook { url: None, token: secret("short"), user: secret("übermäßig-ü12é") },
                [None, Some("…"), Some("…ü12é")],
                "…",
            ),
        ] {
            let parts = Part::ALL.map(|part| hook.shown(part));
            assert_eq!(parts.each_ref().map(Option::as_deref), shown);
            assert_eq!(hook.label(), label);
            let chat = Chat { service: "slack".into(), hook };
            assert_eq!(format!("{chat:?}"), format!("Chat(slack {label})"));
        }
    }
}
