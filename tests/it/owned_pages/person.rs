//! A user whose browser has no JavaScript: a cookie, forms, pages as text.

use serde_json::Value;

use crate::common::http::escape;
use crate::common::{Client, Response, Server};

/// The password of every account.
pub const PASSWORD: &str = "correct horse battery";

/// Type of forms without a file.
const FORM: &str = "application/x-www-form-urlencoded";

/// A user, logged in or not.
pub struct Person {
    client: Client,
    cookie: Option<String>,
}

/// A received page.
#[derive(Debug)]
pub struct Page {
    pub status: u16,
    /// Target of a redirect.
    pub location: Option<String>,
    pub text: String,
    response: Response,
}

impl Person {
    /// Returns a user who is not logged in.
    pub fn nobody(server: &Server) -> Person {
        Person { client: server.client(), cookie: None }
    }

    /// Logs in the user with this address.
    #[track_caller]
    pub fn logged_in(server: &Server, email: &str) -> Person {
        let mut person = Person::nobody(server);
        let page = person.post("/login", &[("email", email), ("password", PASSWORD)]);
        assert_eq!(page.status, 303, "{}", page.visible());
        let set = page.response.header("set-cookie").expect("a cookie");
        let cookie = set.split(';').next().expect("a name and a value");
        person.cookie = Some(cookie.to_owned());
        person
    }

    #[track_caller]
    pub fn get(&mut self, target: &str) -> Page {
        self.ask("GET", target, &[], None)
    }

    /// Requests a part of a page, as a script does.
    #[track_caller]
    pub fn get_part(&mut self, target: &str) -> Page {
        self.ask("GET", target, &[("X-Fragment", "1")], None)
    }

    /// Sends a form from a page of the same site.
    #[track_caller]
    pub fn post(&mut self, target: &str, fields: &[(&str, &str)]) -> Page {
        self.post_text(target, &form(fields))
    }

    /// Sends a form from a script.
    #[track_caller]
    pub fn post_by_script(&mut self, target: &str, fields: &[(&str, &str)]) -> Page {
        let headers = [("Sec-Fetch-Site", "same-origin"), ("X-Fragment", "1")];
        self.ask("POST", target, &headers, Some((FORM, &form(fields))))
    }

    #[track_caller]
    pub fn post_text(&mut self, target: &str, fields: &str) -> Page {
        self.post_from(target, fields, &[("Sec-Fetch-Site", "same-origin")])
    }

    /// Sends a form with headers that state its origin.
    #[track_caller]
    pub fn post_from(&mut self, target: &str, fields: &str, from: &[(&str, &str)]) -> Page {
        self.ask("POST", target, from, Some((FORM, fields)))
    }

    /// Sends a form with a file, as a browser encodes it.
    #[track_caller]
    pub fn upload(&mut self, target: &str, fields: &[(&str, &str)], file: &str) -> Page {
        let part = |about: &str, text: &str| {
            format!("--frontier\r\nContent-Disposition: form-data; {about}\r\n\r\n{text}\r\n")
        };
        let mut body = part("name=\"file\"; filename=\"facts.csv\"", file);
        body.extend(fields.iter().map(|(name, text)| part(&format!("name=\"{name}\""), text)));
        body.push_str("--frontier--\r\n");
        let form = ("multipart/form-data; boundary=frontier", body.as_str());
        self.ask("POST", target, &[("Sec-Fetch-Site", "same-origin")], Some(form))
    }

    /// Sends a request. `form` is a type and a body.
    fn ask(
        &mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        form: Option<(&str, &str)>,
    ) -> Page {
        let mut all = vec![("Accept", "text/html")];
        all.extend(headers.iter().filter(|(name, _)| !name.is_empty()));
        if let Some(cookie) = &self.cookie {
            all.push(("Cookie", cookie));
        }
        let response = match form {
            None => self.client.request(method, target, &all),
            Some((kind, body)) => {
                all.push(("Content-Type", kind));
                self.client.send_with(method, target, &all, body.as_bytes())
            }
        };
        Page {
            status: response.status,
            location: response.header("location").map(str::to_owned),
            text: response.text().to_owned(),
            response,
        }
    }

    /// Adds a rule without a webhook and returns its id.
    #[track_caller]
    pub fn add_rule(&mut self, name: &str, fields: &[(&str, &str)]) -> String {
        let fields = [&[("name", name)], fields].concat();
        let page = self.post("/alerts/new", &fields);
        let location = page.location.clone().unwrap_or_else(|| panic!("{}", page.visible()));
        let id =
            location.strip_prefix("/alerts/").and_then(|rest| rest.strip_suffix("?notice=added"));
        id.unwrap_or_else(|| panic!("{location}")).to_owned()
    }

    /// Saves a search and returns its id.
    #[track_caller]
    pub fn add_search(&mut self, name: &str, fields: &[(&str, &str)]) -> String {
        let fields = [&[("name", name)], fields].concat();
        let page = self.post("/searches", &fields);
        let location = page.location.clone().unwrap_or_else(|| panic!("{}", page.visible()));
        location.strip_prefix("/searches/").unwrap_or_else(|| panic!("{location}")).to_owned()
    }

    /// Adds a claim and returns its id.
    #[track_caller]
    pub fn add_claim(&mut self, domain: &str, fields: &[(&str, &str)]) -> String {
        let fields = [&[("domain", domain)], fields].concat();
        self.post("/portfolio/new", &fields).assert_goes_to("/portfolio?notice=added");
        let list = self.get("/portfolio").text;
        // The newest comes first.
        between(&list, "href=\"/portfolio/", "\" aria-label=\"Edit").rsplit('"').next().map_or_else(
            || panic!("no claim in {list}"),
            |id| id.rsplit('/').next().unwrap_or_default().to_owned(),
        )
    }
}

impl Page {
    /// Asserts a redirect to an address, which may also name the action that led to it.
    #[track_caller]
    pub fn assert_goes_to(&self, location: &str) {
        let without_action = self.location.as_deref().map(|it| without_parameter(it, "undo"));
        assert_eq!(
            (self.status, without_action.as_deref()),
            (303, Some(location)),
            "{}",
            self.visible()
        );
    }

    /// Asserts a status and text of the page.
    #[track_caller]
    pub fn assert_says(&self, status: u16, words: &str) {
        assert_eq!(self.status, status, "{}", self.visible());
        let text = visible(&self.text);
        assert!(text.contains(words), "no `{words}` in\n{text}");
    }

    #[track_caller]
    pub fn assert_lacks(&self, words: &str) {
        assert!(!self.text.contains(words), "`{words}` in\n{}", self.visible());
    }

    /// Returns the visible text.
    pub fn visible(&self) -> String {
        visible(&self.text)
    }

    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.response.header(name)
    }

    /// Whether a header was sent with this value. Some headers are sent several times.
    pub fn has_header(&self, name: &str, value: &str) -> bool {
        self.response.headers.iter().any(|sent| *sent == (name.to_owned(), value.to_owned()))
    }

    /// Returns the names in order, from the checkboxes of the rows.
    pub fn chosen_by(&self) -> Vec<String> {
        let boxes = self.text.split('<').filter(|tag| tag.contains("type=\"checkbox\""));
        let names = boxes.filter_map(|tag| tag.split("name=\"domain\" value=\"").nth(1));
        names.filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect()
    }

    /// Returns the page's error for the field with this ID.
    pub fn error_of(&self, field: &str) -> Option<String> {
        let start = format!("id=\"{field}-error\">");
        let (_, rest) = self.text.split_once(&start)?;
        Some(visible(rest.split("</p>").next()?))
    }
}

/// Encodes the fields of a form.
/// Removes a parameter from the query of an address.
fn without_parameter(address: &str, name: &str) -> String {
    let (address, fragment) =
        address.split_once('#').map_or((address, None), |(a, b)| (a, Some(b)));
    let (path, query) = address.split_once('?').unwrap_or((address, ""));
    let is_other = |part: &&str| !part.is_empty() && !part.starts_with(&format!("{name}="));
    let kept: Vec<_> = query.split('&').filter(is_other).collect();
    let query = if kept.is_empty() { String::new() } else { format!("?{}", kept.join("&")) };
    format!("{path}{query}{}", fragment.map_or(String::new(), |it| format!("#{it}")))
}

pub fn form(fields: &[(&str, &str)]) -> String {
    let pairs: Vec<_> =
        fields.iter().map(|(name, value)| format!("{}={}", escape(name), escape(value))).collect();
    pairs.join("&")
}

/// Returns the first text between two others.
#[track_caller]
pub fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    let rest = text.split_once(start).unwrap_or_else(|| panic!("no `{start}` in\n{text}")).1;
    rest.split_once(end).unwrap_or_else(|| panic!("no `{end}` after `{start}` in\n{text}")).0
}

/// Returns the visible text of a page: no tags, and white space as single spaces.
pub fn visible(html: &str) -> String {
    let mut text = String::new();
    let mut rest = html;
    while let Some((before, after)) = rest.split_once('<') {
        text.push_str(before);
        // A suffix follows its label without a space.
        if !after.starts_with("span class=\"suffix\"") && !after.starts_with("/a>.") {
            text.push(' ');
        }
        rest = after.split_once('>').map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    let text = text
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&amp;", "&");
    let words: Vec<_> = text.split_whitespace().collect();
    // Removes the space before punctuation.
    words.join(" ").replace(" . ", ". ").replace(" , ", ", ")
}

/// Returns a page without the parts that differ in each response.
pub fn without_drawn(html: &str) -> String {
    match html.split_once("name=\"once\" value=\"") {
        None => html.to_owned(),
        Some((before, after)) => format!("{before}{}", after.split_once('"').map_or("", |it| it.1)),
    }
}

/// Returns the API's error without the name of the member.
pub fn what(body: &Value) -> String {
    let error = body["error"].as_str().unwrap_or_default();
    error.split_once(": ").map_or(error, |(_, what)| what).to_owned()
}
