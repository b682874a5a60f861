//! Interface of a chat service: the parts of its hook, the request that posts an alert within its
//! limits, and the interpretation of its response.

use std::time::Duration;

use chrono::{DateTime, Utc};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use url::Url;

use crate::alert::{Alert, Layout};
use crate::http::Answer;
use crate::vocab::chat::{Hook, Part};

/// A chat service.
pub trait Service: Sync {
    fn about(&self) -> &About;

    /// Checks a hook whose address is at one of the service's hosts.
    ///
    /// # Errors
    /// The part that cannot belong to this service, and the expected form.
    fn check(&self, hook: &Hook) -> Result<(), (Part, &'static str)>;

    /// Builds the request that posts an alert. `address` is the address of the hook.
    fn post(&self, address: Url, hook: &Hook, note: Note<'_>) -> Post;

    /// Interprets a response.
    fn verdict(&self, answer: &Answer, now: DateTime<Utc>) -> Verdict;
}

/// Names of a service and of the parts of its hook.
pub struct About {
    /// Name in the API and in stored rules; never changes.
    pub name: &'static str,
    /// Name on pages.
    pub label: &'static str,
    /// Hosts of the service's addresses; `*.example.com` includes all subdomains. Empty for a
    /// self-hosted service.
    pub hosts: &'static [&'static str],
    /// One sentence: where to find the parts, and what to paste.
    pub help: &'static str,
    pub parts: &'static [Asked],
}

/// A part of a hook.
pub struct Asked {
    pub part: Part,
    /// Label on pages, shown after the name of the service.
    pub label: &'static str,
    pub placeholder: &'static str,
    pub is_required: bool,
}

/// The address of a hook.
pub const fn address(placeholder: &'static str) -> Asked {
    Asked { part: Part::Url, label: "address", placeholder, is_required: true }
}

/// An alert to post.
#[derive(Clone, Copy)]
pub struct Note<'a> {
    pub alert: &'a Alert,
    /// URL of the page with all names.
    pub link: Option<&'a str>,
}

/// A request.
pub struct Post {
    pub url: Url,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// Outcome of a post, derived from the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Taken,
    /// The post is to be retried, after this time if the service sets one.
    Retry(Option<Duration>),
    /// The service refuses this message.
    Refused,
    /// The hook no longer exists, so the channel is switched off.
    Dead,
}

impl Note<'_> {
    /// The names, below a headline that is escaped with `escape`.
    pub fn text(&self, bytes_max: usize, between: &str, escape: fn(&str) -> String) -> String {
        let head = self.alert.headline_with(escape);
        self.alert.chat(Layout { bytes_max, head: &head, between, link: self.link })
    }

    /// Only the names, for services with a separate title.
    pub fn names(&self, bytes_max: usize) -> String {
        self.alert.chat(Layout { bytes_max, head: "", between: "\n", link: self.link })
    }
}

impl Post {
    /// A request with a JSON body.
    pub fn json(url: Url, body: &Value) -> Post {
        let body = body.to_string().into_bytes();
        Post { url, headers: HeaderMap::new(), body }
            .with(CONTENT_TYPE, "application/json; charset=utf-8")
    }

    /// Adds a header. Skips an invalid value; a hook with one is already refused when it is added.
    pub fn with(mut self, name: HeaderName, value: &str) -> Post {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(name, value);
        }
        self
    }
}

/// Determines the verdict from the status only: 400 and 413 refuse the message, and a status in
/// `dead` ends the hook.
pub fn by_status(answer: &Answer, now: DateTime<Utc>, dead: &[u16]) -> Verdict {
    match answer.status.as_u16() {
        200..300 => Verdict::Taken,
        status if dead.contains(&status) => Verdict::Dead,
        400 | 413 => Verdict::Refused,
        _ => Verdict::Retry(answer.retry_after(now)),
    }
}

/// Escapes Markdown with backslashes. This also disables mentions.
pub fn markdown(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if r"\`*_~|<>[#@".contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
        if c == '@' {
            // Some services recognise a mention even after a backslash.
            escaped.push('\u{200b}');
        }
    }
    escaped
}
