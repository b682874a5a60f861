//! The mail to the owner of a rule, or of a watchlist, after one of its channels was switched off.

use crate::alert::{Escaped, one_line, settings_page};
use crate::vocab::ids::RuleId;

/// A channel that was switched off.
#[derive(Clone, Copy, Debug)]
pub struct Notice<'a> {
    pub rule_id: RuleId,
    pub rule_name: &'a str,
    /// The channel without its secrets: `Slack (hooks.slack.com …wxyz)`.
    pub channel: &'a str,
    /// The reason, as a sentence.
    pub why: &'a str,
    /// Public URL of this server.
    pub home: Option<&'a str>,
}

impl Notice<'_> {
    /// Subject line.
    pub fn subject(&self) -> String {
        format!("Alerts stopped: {} of {}", self.channel, one_line(self.rule_name))
    }

    /// Text of the mail.
    pub fn text(&self) -> String {
        self.lines().join("\n\n") + "\n"
    }

    /// HTML of the mail.
    pub fn html(&self) -> String {
        let paragraph = |line: &String| format!("<p>{}</p>\n", Escaped(line));
        let lines: String = self.lines().iter().map(paragraph).collect();
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{}</title></head>\n\
             <body>{lines}</body></html>\n",
            Escaped(&self.subject())
        )
    }

    fn lines(&self) -> [String; 3] {
        let (what, it) = match self.rule_id {
            RuleId::WATCHLIST => ("watchlist".to_owned(), "its settings"),
            RuleId::DIGEST => ("morning digest".to_owned(), "its settings"),
            id => (
                format!("alert rule \"{}\" (id {})", one_line(self.rule_name), id.get()),
                "the rule",
            ),
        };
        let place = match self.home {
            Some(home) => settings_page(home, self.rule_id),
            None => format!("the page of {it}"),
        };
        [
            format!("Your {what} no longer sends to {}. {}", self.channel, self.why),
            "Its queued messages to this channel were cancelled. Its other channels continue to work."
                .to_owned(),
            format!(
                "To switch it on again, check the address, save {it}, and send a test: {place}"
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_parts_say_what_happened_and_what_to_do() {
        let notice = Notice {
            rule_id: RuleId::parse("42").expect("an id"),
            rule_name: "<b>\r\nBcc: x@y.example",
            channel: "Slack (hooks.slack.com …wxyz)",
            why: "Nothing could be delivered for 5 days.",
            home: Some("https://d.example"),
        };
        assert!(!notice.subject().contains(['\r', '\n']), "{}", notice.subject());
        for part in [notice.text(), notice.html()] {
            for said in ["…wxyz", "for 5 days", "(id 42)", "https://d.example/alerts/42"] {
                assert!(part.contains(said), "{said}: {part}");
            }
        }
        assert!(!notice.html().contains("<b>"), "{}", notice.html());
        let watchlist = Notice { rule_id: RuleId::WATCHLIST, rule_name: "Watchlist", ..notice };
        for said in ["Your watchlist no longer", "save its settings", "/watchlist/alerts"] {
            assert!(watchlist.text().contains(said), "{said}: {}", watchlist.text());
        }
    }
}
