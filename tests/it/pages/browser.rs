//! A minimal browser: cookies and forms.
#![allow(dead_code, reason = "each test crate uses its own part of it")]

use crate::common::{Client, Response, Server};

/// Keeps one cookie, sends the headers that state a request's origin, and does not follow redirects.
pub struct Browser {
    client: Client,
    /// `name=value`.
    pub cookie: Option<String>,
}

/// Headers that a browser sends with a same-site request.
pub const SAME_ORIGIN: (&str, &str) = ("Sec-Fetch-Site", "same-origin");

impl Browser {
    pub fn new(server: &Server) -> Browser {
        Browser { client: server.client(), cookie: None }
    }

    /// Creates another browser with a copy of the cookie.
    pub fn copy(&self, server: &Server) -> Browser {
        Browser { cookie: self.cookie.clone(), ..Browser::new(server) }
    }

    /// Returns the value of the cookie.
    pub fn token(&self) -> String {
        let cookie = self.cookie.as_deref().expect("a session cookie");
        cookie.split_once('=').expect("name and value").1.to_owned()
    }

    /// Opens a page whose address was typed or linked.
    #[track_caller]
    pub fn get(&mut self, target: &str) -> Response {
        self.get_with(target, &[("Sec-Fetch-Site", "none")])
    }

    #[track_caller]
    pub fn get_with(&mut self, target: &str, headers: &[(&str, &str)]) -> Response {
        let cookie = self.cookie.clone();
        let mut headers = headers.to_vec();
        headers.extend(cookie.as_deref().map(|cookie| ("Cookie", cookie)));
        let answer = self.client.request("GET", target, &headers);
        self.keep(&answer);
        answer
    }

    /// Sends a form from a page of the same site.
    #[track_caller]
    pub fn post(&mut self, target: &str, fields: &[(&str, &str)]) -> Response {
        self.post_with(target, fields, &[SAME_ORIGIN])
    }

    #[track_caller]
    pub fn post_with(
        &mut self,
        target: &str,
        fields: &[(&str, &str)],
        headers: &[(&str, &str)],
    ) -> Response {
        let body = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(fields.iter())
            .finish();
        let cookie = self.cookie.clone();
        let mut headers = headers.to_vec();
        headers.push(("Content-Type", "application/x-www-form-urlencoded"));
        headers.extend(cookie.as_deref().map(|cookie| ("Cookie", cookie)));
        let answer = self.client.send_with("POST", target, &headers, body.as_bytes());
        self.keep(&answer);
        answer
    }

    #[track_caller]
    pub fn log_in(&mut self, email: &str, password: &str) -> Response {
        self.post("/login", &[("email", email), ("password", password)])
    }

    /// Whether the browser's session is valid.
    #[track_caller]
    pub fn is_in(&mut self) -> bool {
        let answer = self.get("/account");
        match (answer.status, answer.header("location")) {
            (200, None) => true,
            (303, Some("/login?next=%2Faccount")) => false,
            other => panic!("{other:?}"),
        }
    }

    fn keep(&mut self, answer: &Response) {
        if let Some(set) = answer.header("set-cookie") {
            let (cookie, attributes) = set.split_once(';').expect("it has attributes");
            let goes = attributes.contains("Max-Age=0");
            self.cookie = (!goes).then(|| cookie.to_owned());
        }
    }
}
