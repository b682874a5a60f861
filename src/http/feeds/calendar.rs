//! Release dates as a calendar (RFC 5545).

use super::{FeedContent, FeedEntry};
use crate::vocab::day::Day;
use crate::vocab::release_time::ReleaseTime;

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
    let score = entry.dqs.map_or_else(String::new, |dqs| format!(" (score {dqs})"));
    let dropped = entry.dropped.unwrap_or(entry.release);
    let status = if entry.is_gone { "CANCELLED" } else { "TENTATIVE" };
    let stage = entry.stage.map(|stage| format!("Stage {stage}. Expected, not verified."));
    let text = entry.text(&stage.unwrap_or_default());
    let (start, end) = period(entry.release, entry.time);
    for line in [
        "BEGIN:VEVENT",
        // If the same name drops again, the new event has another ID.
        &format!("UID:{}/{}@{}", entry.name, dropped, page.host),
        &format!("DTSTAMP:{}", page.updated.instant().format("%Y%m%dT%H%M%SZ")),
        &start,
        &end,
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

/// Returns the properties of when a name is released: at an hour if one is known, otherwise a whole day.
fn period(release: Day, time: ReleaseTime) -> (String, String) {
    let Some(at) = time.at else {
        let date = |day: Day| day.date().format("%Y%m%d");
        let start = format!("DTSTART;VALUE=DATE:{}", date(release));
        // The following day, because the end of an event is exclusive.
        return (start, format!("DTEND;VALUE=DATE:{}", date(release.plus(1))));
    };
    let start = format!("DTSTART:{}", at.instant().format("%Y%m%dT%H%M%SZ"));
    (start, format!("DURATION:PT{}M", time.window_minutes))
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
    fn names_are_released_at_an_hour_or_on_a_day() {
        let release: Day = "2026-03-31".parse().expect("a day");
        let period = |suffix| period(release, ReleaseTime::of(suffix, release.into()));
        let pair = |start: &str, end: &str| (start.to_owned(), end.to_owned());
        assert_eq!(period("com"), pair("DTSTART:20260331T180000Z", "DURATION:PT60M"));
        assert_eq!(period("net.au"), pair("DTSTART:20260331T030000Z", "DURATION:PT30M"));
        let day = pair("DTSTART;VALUE=DATE:20260331", "DTEND;VALUE=DATE:20260401");
        assert_eq!((period("fr"), period("com.pl")), (day.clone(), day));
    }

    #[test]
    fn texts_are_escaped() {
        assert_eq!(escaped("a,b;c\\d\ne\u{7}"), "a\\,b\\;c\\\\d\\ne");
    }
}
