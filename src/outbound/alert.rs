//! Content of alerts: webhook JSON, chat text, and the text and HTML of mails. Names and text from
//! users are escaped.

use std::fmt::{self, Write};

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Serialize, Serializer};

use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::ids::RuleId;
use crate::vocab::name::DomainName;
use crate::vocab::stage::Stage;

/// Maximum names in a mail; the API lists all.
pub const MAIL_NAMES_MAX: usize = 100;
/// Maximum names in a chat message: one screen.
const CHAT_NAMES_MAX: usize = 40;

/// Kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Names that match a rule.
    Match,
    /// A sample of a match.
    Test,
}

/// A name that a rule matched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AlertName {
    pub domain: DomainName,
    pub dqs: Dqs,
    pub drop_date: Day,
    /// The day its registry releases it.
    pub available_on: Day,
    #[serde(serialize_with = "word")]
    pub stage: Stage,
    /// Why it has its score, as one line. Mails alone have it: a webhook is the same in every attempt,
    /// while scores may change.
    #[serde(skip)]
    pub reason: Option<String>,
}

/// A message about the matches of one rule in one list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alert {
    pub kind: Kind,
    /// Id of the delivery, shared by all attempts.
    pub delivery_id: String,
    pub rule_id: RuleId,
    pub rule_name: String,
    /// Time of the match.
    pub at: DateTime<Utc>,
    /// The day of the list and of the stages, or of the first change.
    pub date: Day,
    /// Number of names that matched, or of changes.
    pub total: u32,
    /// The best names, best first.
    pub names: Vec<AlertName>,
}

/// How a chat message is written.
#[derive(Clone, Copy, Debug)]
pub struct Layout<'a> {
    /// Maximum bytes, at least 1,000. No service counts a text as longer than its bytes.
    pub bytes_max: usize,
    /// First line, in the markup of the service; may be empty. At most half of the bytes.
    pub head: &'a str,
    /// Between two lines.
    pub between: &'a str,
    /// Link to the page with all names, in the markup of the service.
    pub link: Option<&'a str>,
}

/// Links in a mail.
#[derive(Clone, Copy, Debug)]
pub struct Links<'a> {
    /// URL of this server.
    pub home: Option<&'a str>,
    /// URL that turns off this rule's mails.
    pub unsubscribe: Option<&'a str>,
}

#[derive(Serialize)]
struct Envelope<'a> {
    r#type: &'static str,
    timestamp: String,
    data: Data<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    delivery_id: &'a str,
    rule: Rule<'a>,
    date: Day,
    total: u32,
    names: &'a [AlertName],
    /// True when more names matched than are listed.
    truncated: bool,
}

#[derive(Serialize)]
struct Rule<'a> {
    id: RuleId,
    name: &'a str,
}

fn word<S: Serializer>(stage: &Stage, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(stage.as_str())
}

impl Alert {
    /// Body of a webhook, identical in every attempt.
    pub fn json(&self) -> String {
        let envelope = Envelope {
            r#type: match self.kind {
                Kind::Match => "alert.matched",
                Kind::Test => "alert.test",
            },
            timestamp: self.at.to_rfc3339_opts(SecondsFormat::Millis, true),
            data: Data {
                delivery_id: &self.delivery_id,
                rule: Rule { id: self.rule_id, name: &self.rule_name },
                date: self.date,
                total: self.total,
                names: &self.names,
                truncated: self.names.len() < self.total as usize,
            },
        };
        serde_json::to_string(&envelope).expect("plain members are JSON")
    }

    /// Subject line.
    pub fn headline(&self) -> String {
        self.headline_with(str::to_owned)
    }

    /// Subject line, with text from users escaped.
    pub fn headline_with(&self, escape: fn(&str) -> String) -> String {
        let names = if self.total == 1 { "name" } else { "names" };
        let test = if self.kind == Kind::Test { "[Test] " } else { "" };
        let rule = escape(&one_line(&self.rule_name));
        format!("{test}{rule}: {} {names} on {}", self.total, self.date)
    }

    /// Text of a chat message: `head`, a line a name, and how many more there are. Cut by whole lines.
    pub fn chat(&self, layout: Layout<'_>) -> String {
        let Layout { bytes_max, head, between, link } = layout;
        // A long link would leave no room for names.
        let link = link.filter(|link| link.len() <= bytes_max / 4);
        let rest = |shown: usize| match (self.total as usize).saturating_sub(shown) {
            0 => String::new(),
            more => {
                let more = format!("{between}and {more} more");
                link.map_or_else(|| more.clone(), |link| format!("{more}: {link}"))
            }
        };
        let (mut text, mut shown) = (head.to_owned(), 0);
        for name in self.names.iter().take(CHAT_NAMES_MAX) {
            let row = match text.is_empty() {
                true => Line(name).to_string(),
                false => format!("{between}{}", Line(name)),
            };
            if text.len() + row.len() + rest(shown + 1).len() > bytes_max {
                break;
            }
            text.push_str(&row);
            shown += 1;
        }
        text.push_str(&rest(shown));
        text
    }

    /// Page of the rule, or of the settings of the watchlist. It has all messages.
    pub fn link(&self, home: &str) -> String {
        format!("{home}/alerts/{}", self.rule_id.get())
    }

    /// Text of a mail.
    pub fn mail_text(&self, links: Links<'_>) -> String {
        let mut text = format!("{}\n\n", self.headline());
        for name in self.names.iter().take(MAIL_NAMES_MAX) {
            writeln!(text, "{}", Line(name)).expect("writing to a string succeeds");
            if let Some(reason) = &name.reason {
                writeln!(text, "  {reason}").expect("writing to a string succeeds");
            }
            if let Some(home) = links.home {
                writeln!(text, "  {home}/domain/{}", name.domain)
                    .expect("writing to a string succeeds");
            }
        }
        write!(text, "{}\n\n-- \n{}\n", self.rest(MAIL_NAMES_MAX), self.why())
            .expect("writing to a string succeeds");
        if let Some(home) = links.home {
            writeln!(text, "Edit this rule: {}", self.link(home))
                .expect("writing to a string succeeds");
        }
        if let Some(unsubscribe) = links.unsubscribe {
            writeln!(text, "Unsubscribe from this rule: {unsubscribe}")
                .expect("writing to a string succeeds");
        }
        text
    }

    /// HTML of a mail.
    pub fn mail_html(&self, links: Links<'_>) -> String {
        let small = |reason: &str| format!("<br><small>{}</small>", Escaped(reason));
        let mut rows = String::new();
        for name in self.names.iter().take(MAIL_NAMES_MAX) {
            let domain = Escaped(name.domain.as_str());
            let linked = match links.home {
                Some(home) => format!("<a href=\"{}/domain/{domain}\">{domain}</a>", Escaped(home)),
                None => domain.to_string(),
            };
            writeln!(
                rows,
                "<tr><td>{linked}{}</td><td align=\"right\">{}</td><td>{}</td><td>{}</td></tr>",
                name.reason.as_deref().map(small).unwrap_or_default(),
                name.dqs,
                name.stage,
                name.available_on
            )
            .expect("writing to a string succeeds");
        }
        let link = |address: &str, text: &str| {
            format!("<br><a href=\"{}\">{}</a>", Escaped(address), Escaped(text))
        };
        let rule = |home| link(&self.link(home), "Edit this rule");
        let edit = links.home.map(rule).unwrap_or_default();
        let unsubscribe = links
            .unsubscribe
            .map(|unsubscribe| link(unsubscribe, "Unsubscribe from this rule"))
            .unwrap_or_default();
        let title = self.headline();
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title></head>\n\
             <body><h2>{title}</h2>\n<table cellpadding=\"4\"><tr><th align=\"left\">Name</th><th>DQS</th>\
             <th align=\"left\">Stage</th><th align=\"left\">Available on</th></tr>\n{rows}</table>\n\
             <p>{rest}</p>\n<p><small>{why}{edit}{unsubscribe}</small></p></body></html>\n",
            title = Escaped(&title),
            rest = Escaped(&self.rest(MAIL_NAMES_MAX)),
            why = Escaped(&self.why()),
        )
    }

    /// Number of lines beyond the `shown` ones.
    fn rest(&self, shown: usize) -> String {
        let shown = self.names.len().min(shown);
        match self.total as usize - shown.min(self.total as usize) {
            0 => String::new(),
            more => format!("\nand {more} more"),
        }
    }

    fn why(&self) -> String {
        format!("Your alert rule \"{}\" (id {}).", one_line(&self.rule_name), self.rule_id.get())
    }
}

/// A name as a line of text.
struct Line<'a>(&'a AlertName);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AlertName { domain, dqs, stage, available_on, .. } = self.0;
        write!(f, "{}  DQS {dqs}, {stage}, available on {available_on}", domain.as_str())
    }
}

/// Text escaped for HTML and for quoted attributes.
pub struct Escaped<'a>(pub &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// Replaces control characters and line breaks by spaces, for use in headers.
pub fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn alert(total: u32, names: usize) -> Alert {
        let name = |at: usize| AlertName {
            domain: DomainName::parse(&format!("name{at}.com")).expect("a name"),
            dqs: Dqs::new(77).expect("a score"),
            drop_date: "2026-03-01".parse().expect("a day"),
            available_on: "2026-04-05".parse().expect("a day"),
            stage: Stage::Redemption,
            reason: Some(format!("<Two words {at}>")),
        };
        Alert {
            kind: Kind::Match,
            delivery_id: "00ff".into(),
            rule_id: RuleId::parse("42").expect("an id"),
            rule_name: "<b>\"R&D's\"\r\nBcc: x@y.example".into(),
            at: "2026-03-02T01:02:03.456Z".parse().expect("a time"),
            date: "2026-03-02".parse().expect("a day"),
            total,
            names: (0..names).map(name).collect(),
        }
    }

    #[test]
    fn webhooks_hold_type_time_and_data() {
        let sent: Value = serde_json::from_str(&alert(3, 1).json()).expect("JSON");
        let expected = json!({
            "type": "alert.matched",
            "timestamp": "2026-03-02T01:02:03.456Z",
            "data": {
                "deliveryId": "00ff",
                "rule": {"id": 42, "name": "<b>\"R&D's\"\r\nBcc: x@y.example"},
                "date": "2026-03-02",
                "total": 3,
                "names": [{
                    "domain": "name0.com", "dqs": 77, "dropDate": "2026-03-01",
                    "availableOn": "2026-04-05", "stage": "redemption",
                }],
                "truncated": true,
            },
        });
        assert_eq!(sent, expected);
        let test = Alert { kind: Kind::Test, ..alert(1, 1) };
        let sent: Value = serde_json::from_str(&test.json()).expect("JSON");
        assert_eq!(
            (&sent["type"], &sent["data"]["truncated"]),
            (&json!("alert.test"), &json!(false))
        );
    }

    #[test]
    fn text_from_users_is_escaped() {
        let alert = alert(1, 1);
        let links = Links { home: Some("https://d.example/?a&b"), unsubscribe: None };
        let html = alert.mail_html(links);
        assert!(
            html.contains("&lt;b&gt;&quot;R&amp;D&#39;s&quot;  Bcc: x@y.example: 1 name on"),
            "{html}"
        );
        assert!(
            !html.contains("<b>")
                && html.contains("href=\"https://d.example/?a&amp;b/domain/name0.com\""),
            "{html}"
        );
        assert!(!alert.headline().contains(['\r', '\n']), "{}", alert.headline());
    }

    #[test]
    fn omitted_names_are_counted() {
        let links = Links { home: None, unsubscribe: Some("https://d.example/unsubscribe/00ff") };
        let many = alert(1_234, 500);
        let plain = Layout { bytes_max: 9_000, head: "names", between: "\n", link: None };
        for (text, shown) in [
            (many.chat(plain), CHAT_NAMES_MAX),
            (many.mail_text(links), MAIL_NAMES_MAX),
            (many.mail_html(links), MAIL_NAMES_MAX),
        ] {
            assert!(text.contains(&format!("and {} more", 1_234 - shown)), "{text}");
            assert_eq!(
                text.matches("name").count() - text.matches("names").count(),
                shown,
                "{text}"
            );
        }
        assert!(!alert(2, 2).chat(plain).contains("more"));
        assert!(many.mail_text(links).contains("https://d.example/unsubscribe/00ff"));
        let links = Links { home: Some("https://d.example"), unsubscribe: None };
        let text = alert(1, 1).mail_text(links);
        let lines = "\n  <Two words 0>\n  https://d.example/domain/name0.com\n";
        assert!(text.contains(lines), "{text}");
        let html = alert(1, 1).mail_html(links);
        assert!(html.contains("</a><br><small>&lt;Two words 0&gt;</small></td>"), "{html}");
        assert!(text.contains("Edit this rule: https://d.example/alerts/42"), "{text}");
    }

    #[test]
    fn chat_texts_are_cut_by_whole_lines() {
        let mut long = alert(1_000, 500);
        let longest = "größte-bücherregale-für-münchen-und-umgebung.com";
        long.names.iter_mut().skip(1).step_by(2).for_each(|name| {
            name.domain = DomainName::parse(longest).expect("a name");
        });
        for (bytes_max, head, link) in [
            (1_000, "x".repeat(500), Some("https://d.example/alerts/42".to_owned())),
            (1_024, String::new(), None),
            (3_000, "ü".repeat(100), Some("https://d.example/".to_owned() + &"p".repeat(2_000))),
            (100_000, "head".to_owned(), None),
        ] {
            let link = link.as_deref();
            let text = long.chat(Layout { bytes_max, head: &head, between: "\n", link });
            assert!(text.len() <= bytes_max, "{bytes_max}: {}", text.len());
            let lines: Vec<_> = text.strip_prefix(&head).expect("the head").lines().collect();
            let lines: Vec<_> = lines.iter().filter(|line| !line.is_empty()).collect();
            let (last, names) = lines.split_last().expect("lines");
            let whole = long.names.iter().map(|name| Line(name).to_string());
            assert!(whole.zip(names).all(|(whole, shown)| whole == **shown), "{text}");
            let expected = format!("and {} more", 1_000 - names.len());
            let rest = last.strip_prefix(&expected).unwrap_or_else(|| panic!("{last}"));
            let is_short = link.is_some_and(|link| link.len() < 100);
            assert_eq!(rest, if is_short { ": https://d.example/alerts/42" } else { "" });
            assert!(!names.is_empty());
        }
    }
}
