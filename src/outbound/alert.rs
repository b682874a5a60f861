//! Content of alerts: webhook JSON, chat text, and the text and HTML of mails. Names and text from
//! users are escaped.

use std::fmt::{self, Write};
use std::iter;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use crate::vocab::day::Day;
use crate::vocab::dropped_name::{AlertName, DroppedName};
use crate::vocab::ids::RuleId;
use crate::vocab::name::DomainName;
use crate::vocab::watched_change::WatchedChange;

/// Maximum names in a mail; the API lists all.
pub const MAIL_NAMES_MAX: usize = 100;
/// Maximum names in a chat message: one screen.
const CHAT_NAMES_MAX: usize = 40;

/// A change of a watched name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct AlertChange {
    #[serde(flatten)]
    pub change: WatchedChange,
}

impl From<WatchedChange> for AlertChange {
    fn from(change: WatchedChange) -> AlertChange {
        AlertChange { change }
    }
}

/// Subject of a message, and the first rows of its list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Names that match a rule, best first.
    Rule { id: RuleId, name: String, names: Vec<DroppedName> },
    /// Changes of names on the watchlist.
    Watchlist(Vec<AlertChange>),
}

/// A message about the matches of one rule in one list, or about watched names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alert {
    /// Whether it is a sample.
    pub is_test: bool,
    /// ID of the delivery, shared by all attempts.
    pub delivery_id: String,
    /// Time at which the message was queued.
    pub at: DateTime<Utc>,
    /// The day of the list and of the stages, or of the first change.
    pub date: Day,
    /// Number of names that matched, or of changes.
    pub total: u32,
    pub content: Content,
    /// Explanations of the scores of the first lines. Only mails contain explanations: a webhook is the
    /// same in every attempt, while scores may change.
    pub reasons: Vec<Option<String>>,
}

/// One line of a message.
struct AlertRow<'a> {
    domain: &'a DomainName,
    /// Text after the domain.
    text: String,
    /// Score and text as table cells.
    cells: [String; 3],
}

impl Content {
    /// Number of lines.
    fn len(&self) -> usize {
        match self {
            Content::Rule { names, .. } => names.len(),
            Content::Watchlist(changes) => changes.len(),
        }
    }

    fn row(&self, at: usize) -> AlertRow<'_> {
        match self {
            Content::Rule { names, .. } => {
                let name @ DroppedName { name: domain, dqs, stage, release, .. } = &names[at];
                let release = match name.release_time().words() {
                    Some(hour) => format!("{release}, {hour}"),
                    None => release.to_string(),
                };
                let text = format!("DQS {dqs}, {stage}, released on {release}");
                let cells = [dqs.to_string(), stage.to_string(), release];
                AlertRow { domain, text, cells }
            }
            Content::Watchlist(changes) => {
                let AlertChange { change } = &changes[at];
                let dqs = change.dqs.map(|dqs| dqs.to_string()).unwrap_or_default();
                let cells = [dqs, change.words(), change.day.to_string()];
                let (domain, text) = (&change.name, change.words());
                AlertRow { domain, text, cells }
            }
        }
    }

    fn rows(&self) -> impl Iterator<Item = AlertRow<'_>> {
        (0..self.len()).map(|at| self.row(at))
    }

    /// Table headings for the cells.
    fn heads(&self) -> [&'static str; 3] {
        match self {
            Content::Rule { .. } => ["DQS", "Stage", "Release"],
            Content::Watchlist(_) => ["DQS", "What happened", "Day (UTC)"],
        }
    }

    /// Texts of the links that edit the rule or settings, and that stop the mails.
    fn links(&self) -> [&'static str; 2] {
        match self {
            Content::Rule { .. } => ["Edit this rule", "Unsubscribe from this rule"],
            Content::Watchlist(_) => ["Edit these settings", "Unsubscribe from these mails"],
        }
    }
}

impl fmt::Display for AlertRow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}  {}", self.domain.as_str(), self.text)
    }
}

/// Format of a chat message.
#[derive(Clone, Copy, Debug)]
pub struct Layout<'a> {
    /// Maximum size in bytes, at least 1,000. No service counts a text as longer than its number of
    /// bytes.
    pub bytes_max: usize,
    /// First line, in the markup of the service; may be empty. Takes at most half of `bytes_max`.
    pub head: &'a str,
    /// Separator of two lines.
    pub between: &'a str,
    /// Link to the page with all names, as text in the markup of the service.
    pub link: Option<&'a str>,
}

/// Links in a mail.
#[derive(Clone, Copy, Debug)]
pub struct MailLinks<'a> {
    /// URL of this server.
    pub home: Option<&'a str>,
    /// URL that turns off this rule's mails.
    pub unsubscribe: Option<&'a str>,
}

/// Kind of a webhook message, in the words of its JSON.
#[derive(Serialize, ToSchema)]
enum MessageType {
    #[serde(rename = "alert.matched")]
    AlertMatched,
    #[serde(rename = "alert.test")]
    AlertTest,
    #[serde(rename = "watchlist.changed")]
    WatchlistChanged,
    #[serde(rename = "watchlist.test")]
    WatchlistTest,
}

/// Body of a webhook. It is the same, byte for byte, in every attempt.
#[derive(Serialize, ToSchema)]
#[schema(as = WebhookMessage)]
pub struct Envelope<'a> {
    #[schema(inline)]
    r#type: MessageType,
    /// When the message was queued.
    #[schema(format = DateTime)]
    timestamp: String,
    #[schema(inline)]
    data: Data<'a>,
}

/// Names that a rule matched, or changes of watched names.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    /// Id of the delivery, also in the header `webhook-id`.
    delivery_id: &'a str,
    /// The rule; absent from messages about watched names.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline, nullable = false)]
    rule: Option<NamedRule<'a>>,
    /// The day of the list and of the stages, or of the first change.
    #[schema(value_type = String, format = Date)]
    date: Day,
    /// Number of names that matched, or of changes.
    total: u32,
    /// The best 500 names, best first; absent from messages about watched names.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    names: Option<Vec<AlertName<'a>>>,
    /// The changes; absent from messages of a rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    changes: Option<&'a [AlertChange]>,
    /// True when there are more names or changes than are listed.
    truncated: bool,
}

#[derive(Serialize, ToSchema)]
struct NamedRule<'a> {
    #[schema(value_type = u64)]
    id: RuleId,
    name: &'a str,
}

impl Alert {
    /// Sets the reasons of the first `most` lines.
    pub fn explain(&mut self, most: usize, reason: impl Fn(&DomainName) -> Option<String>) {
        self.reasons = self.content.rows().take(most).map(|row| reason(row.domain)).collect();
    }

    /// The lines of a mail, each with its reason.
    fn mail_rows(&self) -> impl Iterator<Item = (AlertRow<'_>, Option<&str>)> {
        let reasons = self.reasons.iter().map(Option::as_deref).chain(iter::repeat(None));
        self.content.rows().take(MAIL_NAMES_MAX).zip(reasons)
    }

    /// Body of a webhook, identical in every attempt.
    pub fn json(&self) -> String {
        let (rule, names, changes) = match &self.content {
            Content::Rule { id, name, names } => (
                Some(NamedRule { id: *id, name }),
                Some(names.iter().map(AlertName::from).collect()),
                None,
            ),
            Content::Watchlist(changes) => (None, None, Some(changes.as_slice())),
        };
        let envelope = Envelope {
            r#type: match (self.is_test, &self.content) {
                (false, Content::Rule { .. }) => MessageType::AlertMatched,
                (true, Content::Rule { .. }) => MessageType::AlertTest,
                (false, Content::Watchlist(_)) => MessageType::WatchlistChanged,
                (true, Content::Watchlist(_)) => MessageType::WatchlistTest,
            },
            timestamp: self.at.to_rfc3339_opts(SecondsFormat::Millis, true),
            data: Data {
                delivery_id: &self.delivery_id,
                rule,
                date: self.date,
                total: self.total,
                names,
                changes,
                truncated: self.content.len() < self.total as usize,
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
        let test = if self.is_test { "[Test] " } else { "" };
        let (total, date) = (self.total, self.date);
        match &self.content {
            Content::Rule { name, .. } => {
                let names = if total == 1 { "name" } else { "names" };
                format!("{test}{}: {total} {names} on {date}", escape(&one_line(name)))
            }
            Content::Watchlist(changes) => match changes.as_slice() {
                [only] if total == 1 => {
                    format!("{test}{} {}", only.change.name.as_str(), only.change.words())
                }
                _ => format!("{test}Watchlist: {total} changes"),
            },
        }
    }

    /// Text of a chat message: `head`, one line per name, and the number of names left out. The text
    /// is cut only between lines.
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
        for row in self.content.rows().take(CHAT_NAMES_MAX) {
            let row = match text.is_empty() {
                true => row.to_string(),
                false => format!("{between}{row}"),
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

    /// Page of the rule, or of the watchlist's settings, which lists all messages.
    pub fn link(&self, home: &str) -> String {
        match &self.content {
            Content::Rule { id, .. } => settings_page(home, *id),
            Content::Watchlist(_) => settings_page(home, RuleId::WATCHLIST),
        }
    }

    /// Text of a mail.
    pub fn mail_text(&self, links: MailLinks<'_>) -> String {
        let mut text = format!("{}\n\n", self.headline());
        for (row, reason) in self.mail_rows() {
            writeln!(text, "{row}").expect("writing to a string succeeds");
            if let Some(reason) = reason {
                writeln!(text, "  {reason}").expect("writing to a string succeeds");
            }
            if let Some(home) = links.home {
                writeln!(text, "  {home}/domain/{}", row.domain)
                    .expect("writing to a string succeeds");
            }
        }
        write!(text, "{}\n\n-- \n{}\n", self.rest(MAIL_NAMES_MAX), self.why())
            .expect("writing to a string succeeds");
        let [edit, stop] = self.content.links();
        if let Some(home) = links.home {
            writeln!(text, "{edit}: {}", self.link(home)).expect("writing to a string succeeds");
        }
        if let Some(unsubscribe) = links.unsubscribe {
            writeln!(text, "{stop}: {unsubscribe}").expect("writing to a string succeeds");
        }
        text
    }

    /// HTML of a mail.
    pub fn mail_html(&self, links: MailLinks<'_>) -> String {
        let small = |reason: &str| format!("<br><small>{}</small>", Escaped(reason));
        let mut rows = String::new();
        for (row, reason) in self.mail_rows() {
            let domain = Escaped(row.domain.as_str());
            let linked = match links.home {
                Some(home) => format!("<a href=\"{}/domain/{domain}\">{domain}</a>", Escaped(home)),
                None => domain.to_string(),
            };
            let reason = reason.map(small).unwrap_or_default();
            let [dqs, second, third] = &row.cells;
            writeln!(
                rows,
                "<tr><td>{linked}{reason}</td><td align=\"right\">{}</td><td>{}</td><td>{}</td></tr>",
                Escaped(dqs),
                Escaped(second),
                Escaped(third)
            )
            .expect("writing to a string succeeds");
        }
        let link = |address: &str, text: &str| {
            format!("<br><a href=\"{}\">{}</a>", Escaped(address), Escaped(text))
        };
        let [edit, stop] = self.content.links();
        let edit = links.home.map(|home| link(&self.link(home), edit)).unwrap_or_default();
        let unsubscribe =
            links.unsubscribe.map(|unsubscribe| link(unsubscribe, stop)).unwrap_or_default();
        let (title, [dqs, second, third]) = (self.headline(), self.content.heads());
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title></head>\n\
             <body><h2>{title}</h2>\n<table cellpadding=\"4\"><tr><th align=\"left\">Name</th><th>{dqs}</th>\
             <th align=\"left\">{second}</th><th align=\"left\">{third}</th></tr>\n{rows}</table>\n\
             <p>{rest}</p>\n<p><small>{why}{edit}{unsubscribe}</small></p></body></html>\n",
            title = Escaped(&title),
            rest = Escaped(&self.rest(MAIL_NAMES_MAX)),
            why = Escaped(&self.why()),
        )
    }

    /// Number of lines that are left out if `shown` lines are shown.
    fn rest(&self, shown: usize) -> String {
        let shown = self.content.len().min(shown);
        match self.total as usize - shown.min(self.total as usize) {
            0 => String::new(),
            more => format!("\nand {more} more"),
        }
    }

    fn why(&self) -> String {
        match &self.content {
            Content::Rule { id, name, .. } => {
                format!("Your alert rule \"{}\" (id {}).", one_line(name), id.get())
            }
            Content::Watchlist(_) => "These names are on your watchlist.".to_owned(),
        }
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

/// Page of a rule, or of the settings of the watchlist or the digest, on the server at `home`.
pub fn settings_page(home: &str, rule: RuleId) -> String {
    match rule {
        RuleId::WATCHLIST => format!("{home}/watchlist/alerts"),
        RuleId::DIGEST => format!("{home}/account/notifications"),
        rule => format!("{home}/alerts/{rule}"),
    }
}

/// Replaces control characters and line breaks with spaces, for use in headers.
pub fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocab::change::ChangeKind;
    use crate::vocab::dqs::Dqs;
    use crate::vocab::release_time::SecondOfDay;
    use crate::vocab::stage::Stage;
    use serde_json::{Value, json};

    fn alert(total: u32, names: usize) -> Alert {
        let name = |at: usize| DroppedName {
            name: DomainName::parse(&format!("name{at}.com")).expect("a name"),
            dqs: Dqs::new(77).expect("a score"),
            drop_date: "2026-03-01".parse().expect("a day"),
            release: "2026-04-05".parse().expect("a day"),
            release_second: None,
            stage: Stage::Redemption,
        };
        Alert {
            is_test: false,
            delivery_id: "00ff".into(),
            at: "2026-03-02T01:02:03.456Z".parse().expect("a time"),
            date: "2026-03-02".parse().expect("a day"),
            total,
            content: Content::Rule {
                id: RuleId::parse("42").expect("an id"),
                name: "<b>\"R&D's\"\r\nBcc: x@y.example".into(),
                names: (0..names).map(name).collect(),
            },
            reasons: reasons(names),
        }
    }

    fn reasons(lines: usize) -> Vec<Option<String>> {
        (0..lines).map(|at| Some(format!("<Two words {at}>"))).collect()
    }

    fn changes(total: u32, changes: usize) -> Alert {
        let change = |at: usize| AlertChange {
            change: WatchedChange {
                kind: ChangeKind::DropsTomorrow,
                name: DomainName::parse(&format!("name{at}.com")).expect("a name"),
                day: "2026-03-01".parse().expect("a day"),
                verified: false,
                dqs: Dqs::new(77),
                dqs_before: None,
            },
        };
        let content = Content::Watchlist((0..changes).map(change).collect());
        Alert { content, reasons: reasons(changes), ..alert(total, 0) }
    }

    #[test]
    fn changes_of_watched_names_fit_every_channel() {
        let sent: Value = serde_json::from_str(&changes(3, 1).json()).expect("JSON");
        let expected = json!({
            "type": "watchlist.changed",
            "timestamp": "2026-03-02T01:02:03.456Z",
            "data": {
                "deliveryId": "00ff",
                "date": "2026-03-02",
                "total": 3,
                "changes": [{
                    "kind": "drops-tomorrow", "domain": "name0.com", "day": "2026-03-01",
                    "verified": false, "dqs": 77, "dqsBefore": null,
                }],
                "truncated": true,
            },
        });
        assert_eq!(sent, expected);
        assert_eq!(changes(1, 1).headline(), "name0.com drops tomorrow, 2026-03-02");
        let many = changes(1_234, 500);
        assert_eq!(many.headline(), "Watchlist: 1234 changes");
        let links = MailLinks {
            home: Some("https://d.example"),
            unsubscribe: Some("https://d.example/u/1"),
        };
        let (text, html) = (many.mail_text(links), many.mail_html(links));
        for part in [&text, &html] {
            for said in [
                "name0.com",
                "https://d.example/domain/name99.com",
                "drops tomorrow, 2026-03-02",
                "and 1134 more",
                "Edit these settings",
                "https://d.example/watchlist/alerts",
                "https://d.example/u/1",
                "on your watchlist",
            ] {
                assert!(part.contains(said), "{said}: {part}");
            }
        }
        assert!(text.contains("\n  <Two words 0>\n") && !html.contains("<Two"), "{text} {html}");
        let link = many.link("https://d.example");
        let chat = Layout { bytes_max: 1_000, head: "", between: "\n", link: Some(&link) };
        let text = many.chat(chat);
        let (rows, last) = text.rsplit_once('\n').expect("lines");
        let shown = rows.lines().count();
        assert!(
            rows.lines().all(|row| row.ends_with(".com  drops tomorrow, 2026-03-02")),
            "{text}"
        );
        assert_eq!(last, format!("and {} more: {link}", 1_234 - shown));
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
                    "releaseDate": "2026-04-05", "releaseAt": "2026-04-05T18:00:00.000Z",
                    "releaseCertainty": "window", "releaseWindowMinutes": 60, "stage": "redemption",
                }],
                "truncated": true,
            },
        });
        assert_eq!(sent, expected);
        let test = Alert { is_test: true, ..alert(1, 1) };
        let sent: Value = serde_json::from_str(&test.json()).expect("JSON");
        assert_eq!(
            (&sent["type"], &sent["data"]["truncated"]),
            (&json!("alert.test"), &json!(false))
        );
    }

    #[test]
    fn mails_have_the_hour_of_a_release_in_words() {
        let mut alert = alert(3, 3);
        let Content::Rule { names, .. } = &mut alert.content else { unreachable!("of a rule") };
        for (name, domain) in names.iter_mut().zip(["solar.co.uk", "solar.com", "solar.fr"]) {
            name.name = DomainName::parse(domain).expect("a name");
            name.release_second = SecondOfDay::new(11 * 3_600 + 31 * 60 + 21);
        }
        let links = MailLinks { home: None, unsubscribe: None };
        let (text, html) = (alert.mail_text(links), alert.mail_html(links));
        for release in
            ["2026-04-05, at 11:31:21 UTC", "2026-04-05, usual hour 18:00 UTC", "2026-04-05"]
        {
            assert!(text.contains(&format!("released on {release}\n")), "{release}: {text}");
            assert!(html.contains(&format!(">{release}<")), "{release}: {html}");
        }
    }

    #[test]
    fn text_from_users_is_escaped() {
        let alert = alert(1, 1);
        let links = MailLinks { home: Some("https://d.example/?a&b"), unsubscribe: None };
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
        let links =
            MailLinks { home: None, unsubscribe: Some("https://d.example/unsubscribe/00ff") };
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
        let links = MailLinks { home: Some("https://d.example"), unsubscribe: None };
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
        let Content::Rule { names, .. } = &mut long.content else { panic!("names of a rule") };
        names.iter_mut().skip(1).step_by(2).for_each(|name| {
            name.name = DomainName::parse(longest).expect("a name");
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
            let whole = long.content.rows().map(|row| row.to_string());
            assert!(whole.zip(names).all(|(whole, shown)| whole == **shown), "{text}");
            let expected = format!("and {} more", 1_000 - names.len());
            let rest = last.strip_prefix(&expected).unwrap_or_else(|| panic!("{last}"));
            let is_short = link.is_some_and(|link| link.len() < 100);
            assert_eq!(rest, if is_short { ": https://d.example/alerts/42" } else { "" });
            assert!(!names.is_empty());
        }
    }
}
