//! Release dates as a calendar (RFC 5545).

use super::{FeedContent, FeedEntry};

/// Media type.
pub const KIND: &str = "text/calendar; charset=utf-8";
/// Maximum bytes of a line without its line break (RFC 5545 §3.1).
const LINE_OCTETS: usize = 75;

/// Writes the calendar as text.
pub fn write(page: &FeedContent<'_>) -> String {
    let mut out = String::with_capacity(512 + page.entries.len() * 512);
    let title = escaped(page.title);
    for line in [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//dropdex//Release dates//EN",
        "CALSCALE:GREGORIAN",
        "METHOD:PUBLISH",
        &format!("NAME:{title}"),
        &format!("X-WR-CALNAME:{title}"),
        "REFRESH-INTERVAL;VALUE=DURATION:PT6H",
        "X-PUBLISHED-TTL:PT6H",
    ] {
        push(&mut out, line);
    }
    for entry in page.entries {
        write_event(&mut out, page, entry);
    }
    push(&mut out, "END:VCALENDAR");
    out
}

fn write_event(out: &mut String, page: &FeedContent<'_>, entry: &FeedEntry) {
    let date = |day: crate::vocab::day::Day| day.date().format("%Y%m%d").to_string();
    let score = entry.dqs.map_or_else(String::new, |dqs| format!(" (score {dqs})"));
    let dropped = entry.dropped.unwrap_or(entry.release);
    let status = if entry.is_gone { "CANCELLED" } else { "TENTATIVE" };
    let stage = entry.stage.map(|stage| format!("Stage {stage}. Expected, not verified."));
    let text = entry.text(&stage.unwrap_or_default());
    for line in [
        "BEGIN:VEVENT",
        // If the same name drops again, the new event has another ID.
        &format!("UID:{}/{}@{}", entry.name, dropped, page.host),
        &format!("DTSTAMP:{}", page.updated.instant().format("%Y%m%dT%H%M%SZ")),
        &format!("DTSTART;VALUE=DATE:{}", date(entry.release)),
        // The following day, because the end of an event is exclusive.
        &format!("DTEND;VALUE=DATE:{}", date(entry.release.plus(1))),
        &format!("SUMMARY:{} drops{score}", escaped(&entry.unicode)),
        &format!("DESCRIPTION:{}", escaped(&text)),
        &format!("URL:{}/domain/{}", page.home, entry.name),
        &format!("STATUS:{status}"),
        "TRANSP:TRANSPARENT",
        "END:VEVENT",
    ] {
        push(out, line);
    }
}

/// Adds a line, folded to at most [`LINE_OCTETS`] but never within a character.
fn push(out: &mut String, line: &str) {
    let mut octets = 0;
    for letter in line.chars() {
        if octets + letter.len_utf8() > LINE_OCTETS {
            out.push_str("\r\n ");
            octets = 1;
        }
        out.push(letter);
        octets += letter.len_utf8();
    }
    out.push_str("\r\n");
}

/// Escapes the text of a property (RFC 5545 §3.3.11).
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\\' | ';' | ',' => out.extend(['\\', letter]),
            '\n' => out.push_str("\\n"),
            letter if letter.is_control() => {}
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_folded_between_characters() {
        let mut out = String::new();
        push(&mut out, &format!("SUMMARY:{}", "ü".repeat(60)));
        let lines: Vec<_> = out.split("\r\n").collect();
        assert_eq!(lines.len(), 3, "and an empty one after the last end");
        assert!(lines.iter().all(|line| line.len() <= LINE_OCTETS), "{lines:?}");
        assert!(lines[1].starts_with(' '));
        assert_eq!(lines.concat().replace(' ', ""), format!("SUMMARY:{}", "ü".repeat(60)));
    }

    #[test]
    fn texts_are_escaped() {
        assert_eq!(escaped("a,b;c\\d\ne\u{7}"), "a\\,b\\;c\\\\d\\ne");
    }
}
