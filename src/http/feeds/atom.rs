//! Feeds as Atom (RFC 4287).

use std::fmt::Write;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};

use super::{FeedContent, FeedEntry};

/// Media type.
pub const KIND: &str = "application/atom+xml; charset=utf-8";

/// Writes the feed as text.
pub fn write(page: &FeedContent<'_>) -> String {
    let mut out = String::with_capacity(1_024 + page.entries.len() * 768);
    // Each entry has a distinct instant, because readers sort and distinguish entries by it.
    let newest = page.entries.iter().map(|entry| entry.since).max().unwrap_or(page.updated);
    let moment = |at: DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::Millis, true);
    let ends = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\">\n\
         <id>tag:{host},2026:feed/{id}</id>\n<title>{title}</title>\n<updated>{updated}</updated>\n\
         <author><name>dropdex</name></author>\n\
         <link rel=\"self\" type=\"application/atom+xml\" href=\"{own}\"/>\n\
         <link rel=\"alternate\" type=\"text/html\" href=\"{home}{shown_at}\"/>\n",
        host = escaped(page.host),
        id = page.id,
        title = escaped(page.title),
        updated = moment(newest.instant() + TimeDelta::milliseconds(page.entries.len() as i64)),
        own = escaped(page.own),
        home = escaped(page.home),
        shown_at = page.shown_at,
    );
    out.push_str(&ends);
    for (at, entry) in page.entries.iter().enumerate() {
        let left = (page.entries.len() - at) as i64;
        let updated = moment(entry.since.instant() + TimeDelta::milliseconds(left));
        write_entry(&mut out, page, entry, &updated);
    }
    out.push_str("</feed>\n");
    out
}

fn write_entry(out: &mut String, page: &FeedContent<'_>, entry: &FeedEntry, updated: &str) {
    let FeedEntry { name, unicode, release, .. } = entry;
    let (host, home) = (escaped(page.host), escaped(page.home));
    let date = entry.dropped.unwrap_or(*release);
    let title = escaped(unicode);
    let score = entry.dqs.map_or_else(String::new, |dqs| format!(", score {dqs}"));
    let stage = entry
        .stage
        .map_or_else(String::new, |stage| format!("Stage {stage}, expected release {release}."));
    let text = escaped(&entry.text(&stage));
    let event = match entry.is_gone {
        true => "renewed or registered again".to_owned(),
        false => format!("drops {release}"),
    };
    writeln!(
        out,
        "<entry>\n<id>tag:{host},{date}:drop/{name}</id>\n<title>{title}{score}, {event}</title>\n\
         <updated>{updated}</updated>\n<link rel=\"alternate\" type=\"text/html\" href=\"{home}/domain/{name}\"/>\n\
         <content type=\"text\">{text}</content>\n</entry>",
    )
    .expect("writing to a string succeeds");
}

/// Escapes text for an element or an attribute. Characters not allowed in XML become spaces.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' => out.push(' '),
            '\u{fffe}' | '\u{ffff}' => out.push(' '),
            letter if letter.is_control() => out.push(' '),
            letter => out.push(letter),
        }
    }
    out
}
