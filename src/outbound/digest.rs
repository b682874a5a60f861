//! The mail of a morning digest. Names and text from users are escaped.

use std::fmt::Write;

use crate::alert::{Escaped, MailLinks, one_line, settings_page};
use crate::vocab::day::Day;
use crate::vocab::dropped_name::DroppedName;
use crate::vocab::ids::{RuleId, SearchId};
use crate::vocab::name::DomainName;

/// A digest to be mailed.
pub struct DigestMail<'a> {
    /// UTC day on which it was queued.
    pub date: Day,
    /// Number of new names of which the best are listed.
    pub total: u32,
    /// The best new names, best first.
    pub best: Vec<&'a DroppedName>,
    pub searches: Vec<SearchPart<'a>>,
}

/// The new names of a saved search.
pub struct SearchPart<'a> {
    pub id: SearchId,
    pub name: &'a str,
    /// Number of new names, of which `names` are the first.
    pub total: u32,
    pub names: Vec<&'a DroppedName>,
}

/// A heading, the link to all of its names, and the first of them.
struct Part<'a> {
    title: String,
    path: Option<String>,
    names: &'a [&'a DroppedName],
}

/// Explains the score of a name.
pub type Explain<'a> = &'a dyn Fn(&DomainName) -> Option<String>;

impl DigestMail<'_> {
    /// Subject line.
    pub fn headline(&self) -> String {
        let names = match self.total {
            0 => None,
            1 => Some("1 new name".to_owned()),
            total => Some(format!("{total} new names")),
        };
        let searches = match self.searches.len() {
            0 => None,
            1 => Some("1 search with new names".to_owned()),
            searches => Some(format!("{searches} searches with new names")),
        };
        let said: Vec<_> = names.into_iter().chain(searches).collect();
        format!("Morning digest of {}: {}", self.date, said.join(", "))
    }

    fn parts(&self) -> Vec<Part<'_>> {
        let best = Part { title: "Best new names".to_owned(), path: None, names: &self.best };
        let of_search =
            |search: &'_ SearchPart<'_>| format!("{}: {} new", one_line(search.name), search.total);
        let searches = self.searches.iter().map(|search| Part {
            title: of_search(search),
            path: Some(format!("searches/{}?new=1", search.id)),
            names: &search.names,
        });
        std::iter::once(best).filter(|best| !best.names.is_empty()).chain(searches).collect()
    }

    /// Text of the mail.
    pub fn text(&self, links: MailLinks<'_>, explain: Explain<'_>) -> String {
        let mut text = format!("{}\n", self.headline());
        let mut line = |line: &str| {
            writeln!(text, "{line}").expect("writing to a string succeeds");
        };
        for Part { title, path, names } in self.parts() {
            line(&format!("\n{title}"));
            if let Some((home, path)) = links.home.zip(path) {
                line(&format!("{home}/{path}"));
            }
            for name in names {
                line(&format!("{}  {}", name.name, said(name)));
                if let Some(reason) = explain(&name.name) {
                    line(&format!("  {reason}"));
                }
                if let Some(home) = links.home {
                    line(&format!("  {home}/domain/{}", name.name));
                }
            }
        }
        line("\n-- \nYour morning digest.");
        if let Some(home) = links.home {
            line(&format!("Edit these settings: {}", settings_page(home, RuleId::DIGEST)));
        }
        if let Some(unsubscribe) = links.unsubscribe {
            line(&format!("Unsubscribe from these mails: {unsubscribe}"));
        }
        text
    }

    /// HTML of the mail.
    pub fn html(&self, links: MailLinks<'_>, explain: Explain<'_>) -> String {
        let link = |path: &str, text: &str| match links.home {
            Some(home) => {
                format!("<a href=\"{}/{}\">{}</a>", Escaped(home), Escaped(path), Escaped(text))
            }
            None => Escaped(text).to_string(),
        };
        let mut body = String::new();
        for Part { title, path, names } in self.parts() {
            let title =
                path.map_or_else(|| Escaped(&title).to_string(), |path| link(&path, &title));
            let rows = names.iter().map(|name| {
                let domain = name.name.as_str();
                let reason = explain(&name.name);
                let reason = reason.map(|it| format!("<br><small>{}</small>", Escaped(&it)));
                format!(
                    "<tr><td>{}{}</td><td align=\"right\">{}</td><td>{}</td><td>{}</td></tr>\n",
                    link(&format!("domain/{domain}"), domain),
                    reason.unwrap_or_default(),
                    name.dqs,
                    name.stage,
                    name.release
                )
            });
            let rows: String = rows.collect();
            write!(body, "<h3>{title}</h3>\n<table cellpadding=\"4\">\n{rows}</table>\n")
                .expect("writing to a string succeeds");
        }
        let edit = links.home.map(|home| settings_page(home, RuleId::DIGEST));
        let feet = [
            (edit.as_deref(), "Edit these settings"),
            (links.unsubscribe, "Unsubscribe from these mails"),
        ];
        let feet: String = feet
            .into_iter()
            .filter_map(|(address, text)| {
                Some(format!("<br><a href=\"{}\">{text}</a>", Escaped(address?)))
            })
            .collect();
        let title = self.headline();
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title></head>\n\
             <body><h2>{title}</h2>\n{body}<p><small>Your morning digest.{feet}</small></p></body></html>\n"
        )
    }
}

fn said(name: &DroppedName) -> String {
    let DroppedName { dqs, stage, release, .. } = name;
    format!("DQS {dqs}, {stage}, released on {release}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocab::dqs::Dqs;
    use crate::vocab::stage::Stage;

    #[test]
    fn a_digest_has_its_parts_and_escapes_text() {
        let name = |text: &str| DroppedName {
            name: DomainName::parse(text).expect("a name"),
            dqs: Dqs::new(77).expect("a score"),
            drop_date: "2026-03-01".parse().expect("a day"),
            release: "2026-04-05".parse().expect("a day"),
            release_second: None,
            stage: Stage::Redemption,
        };
        let (one, two) = (name("one.com"), name("two.com"));
        let id = SearchId::parse("42").expect("an id");
        let search = SearchPart { id, name: "<b>\r\nBcc: x", total: 9, names: vec![&two] };
        let date = "2026-03-02".parse().expect("a day");
        let mail = DigestMail { date, total: 12, best: vec![&one], searches: vec![search] };
        let links = MailLinks {
            home: Some("https://d.example"),
            unsubscribe: Some("https://d.example/unsubscribe/00ff"),
        };
        let explain = |_: &DomainName| Some("<Two words>".to_owned());
        assert_eq!(
            mail.headline(),
            "Morning digest of 2026-03-02: 12 new names, 1 search with new names"
        );
        let (text, html) = (mail.text(links, &explain), mail.html(links, &explain));
        for part in [&text, &html] {
            for said in [
                "Best new names",
                "one.com",
                "https://d.example/domain/two.com",
                "https://d.example/searches/42?new=1",
                "  Bcc: x: 9 new",
                "https://d.example/account/notifications",
                "https://d.example/unsubscribe/00ff",
                "2026-04-05",
            ] {
                assert!(part.contains(said), "{said}: {part}");
            }
        }
        assert!(text.contains("<Two words>") && !html.contains("<Two") && !html.contains("<b>"));
        let none = DigestMail { best: Vec::new(), ..mail };
        assert!(!none.text(links, &explain).contains("Best"));
    }
}
