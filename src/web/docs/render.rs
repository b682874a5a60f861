//! Renders Markdown to HTML, and collects the headings. The Markdown is the project's own and part of
//! the binary; raw HTML in it is shown as text.

use std::collections::HashMap;

use pulldown_cmark::{CodeBlockKind, CowStr, Event, Options, Parser, Tag, TagEnd, html};
use rust_embed::Embed;

/// Example programs shown on the pages, which the tests run.
#[derive(Embed)]
#[folder = "../../data/examples"]
struct Examples;

/// A rendered page.
pub struct Document {
    pub html: String,
    /// The text of the first paragraph, cut at the end of a word.
    pub about: String,
    /// The headings in order; the first is the title.
    pub headings: Vec<Heading>,
}

impl Document {
    /// The text of the first heading.
    pub fn title(&self) -> &str {
        self.headings.first().map_or("", |heading| &heading.text)
    }
}

/// A heading, with the fragment that links to it.
pub struct Heading {
    pub level: u8,
    pub text: String,
    pub id: String,
}

/// Renders one page.
pub fn render(markdown: &str) -> Document {
    let mut events: Vec<Event<'_>> = Parser::new_ext(markdown, Options::ENABLE_TABLES).collect();
    let headings = name_headings(&mut events);
    let about = first_paragraph(&events);
    let mut html = String::new();
    html::push_html(&mut html, adapt(show_examples(events)).into_iter());
    Document { html, about, headings }
}

/// Maximum characters of a description; search engines show no more.
const ABOUT_CHARS_MAX: usize = 155;

fn first_paragraph(events: &[Event<'_>]) -> String {
    let text: String = events
        .iter()
        .skip_while(|event| !matches!(event, Event::Start(Tag::Paragraph)))
        .take_while(|event| !matches!(event, Event::End(TagEnd::Paragraph)))
        .filter_map(|event| match event {
            Event::Text(text) | Event::Code(text) => Some(&**text),
            Event::SoftBreak => Some(" "),
            _ => None,
        })
        .collect();
    match text.char_indices().nth(ABOUT_CHARS_MAX) {
        Some((end, _)) => format!("{}…", text[..end].rsplit_once(' ').map_or("", |(cut, _)| cut)),
        None => text,
    }
}

/// Gives each heading the ID that code forges such as GitHub generate.
fn name_headings(events: &mut [Event<'_>]) -> Vec<Heading> {
    let mut headings = Vec::new();
    let mut uses: HashMap<String, usize> = HashMap::new();
    let mut at = 0;
    while at < events.len() {
        if let Event::Start(Tag::Heading { level, .. }) = events[at] {
            let text: String = events[at + 1..]
                .iter()
                .take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))))
                .filter_map(|event| match event {
                    Event::Text(text) | Event::Code(text) => Some(&**text),
                    _ => None,
                })
                .collect();
            let mut id = slug(&text);
            let count = uses.entry(id.clone()).or_default();
            if *count > 0 {
                id = format!("{id}-{count}");
            }
            *count += 1;
            if let Event::Start(Tag::Heading { id: place, .. }) = &mut events[at] {
                *place = Some(CowStr::from(id.clone()));
            }
            headings.push(Heading { level: level as u8, text, id });
        }
        at += 1;
    }
    headings
}

/// Converts to lower case, removes punctuation and replaces spaces with hyphens.
pub fn slug(text: &str) -> String {
    text.to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

/// Replaces each paragraph that consists of a link to an example with the program itself.
fn show_examples(events: Vec<Event<'_>>) -> Vec<Event<'_>> {
    let mut shown = Vec::with_capacity(events.len());
    let mut rest = events.into_iter().peekable();
    while let Some(event) = rest.next() {
        let example = match (&event, rest.peek()) {
            (Event::Start(Tag::Paragraph), Some(Event::Start(Tag::Link { dest_url, .. }))) => {
                dest_url.strip_prefix("../examples/").and_then(Examples::get)
            }
            _ => None,
        };
        let Some(example) = example else {
            shown.push(event);
            continue;
        };
        rest.by_ref().find(|event| matches!(event, Event::End(TagEnd::Paragraph)));
        let code = String::from_utf8_lossy(&example.data).into_owned();
        shown.push(Event::Start(Tag::CodeBlock(CodeBlockKind::Indented)));
        shown.push(Event::Text(code.into()));
        shown.push(Event::End(TagEnd::CodeBlock));
    }
    shown
}

/// Adapts Markdown to the site: links between files become links between pages, tables can be scrolled
/// by keyboard, and code can be focused. A link to a file that the site does not serve becomes plain
/// text.
fn adapt(events: Vec<Event<'_>>) -> Vec<Event<'_>> {
    let mut adapted = Vec::with_capacity(events.len());
    let mut in_dropped_link = false;
    for event in events {
        match event {
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                let target = page_link(&dest_url);
                in_dropped_link = target.is_none();
                adapted.extend(
                    target
                        .map(CowStr::from)
                        .map(|dest_url| Event::Start(Tag::Link { link_type, dest_url, title, id })),
                );
            }
            Event::End(TagEnd::Link) if in_dropped_link => in_dropped_link = false,
            Event::Start(Tag::Image { link_type, dest_url, title, id }) => {
                let name = dest_url.rsplit('/').next().unwrap_or_default();
                let dest_url = CowStr::from(format!("/docs/{name}"));
                adapted.push(Event::Start(Tag::Image { link_type, dest_url, title, id }));
            }
            Event::Start(Tag::Table(columns)) => {
                let region = r#"<div class="table" tabindex="0" role="region" aria-label="Table">"#;
                adapted.extend([Event::Html(region.into()), Event::Start(Tag::Table(columns))]);
            }
            Event::End(TagEnd::Table) => {
                adapted.extend([Event::End(TagEnd::Table), Event::Html("</div>".into())]);
            }
            Event::Start(Tag::CodeBlock(_)) => {
                adapted.push(Event::Html(
                    r#"<pre tabindex="0" role="group" aria-label="Code"><code>"#.into(),
                ));
            }
            Event::End(TagEnd::CodeBlock) => adapted.push(Event::Html("</code></pre>\n".into())),
            Event::Html(text) | Event::InlineHtml(text) => adapted.push(Event::Text(text)),
            other => adapted.push(other),
        }
    }
    adapted
}

/// Returns the target on the site of a link in the sources; `None` for files that the site does not
/// serve.
fn page_link(target: &str) -> Option<String> {
    if target.starts_with("https://") || target.starts_with('#') {
        return Some(target.to_owned());
    }
    let (file, fragment) = target.split_once('#').unwrap_or((target, ""));
    let slug = match file.strip_suffix(".md")? {
        "../../src/ARCHITECTURE" => "architecture",
        page => page.strip_prefix("../data/docs/").unwrap_or(page),
    };
    let hash = if fragment.is_empty() { "" } else { "#" };
    (!slug.contains('/')).then(|| format!("/docs/{slug}{hash}{fragment}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_have_the_fragments_that_links_use() {
        let document = render("# A title\n## /api/v1/alerts\n## `Twice`, and\n## Twice, and\n");
        let ids: Vec<_> = document.headings.iter().map(|heading| heading.id.as_str()).collect();
        assert_eq!(ids, ["a-title", "apiv1alerts", "twice-and", "twice-and-1"]);
        assert_eq!(document.title(), "A title");
        assert!(document.html.contains("<h2 id=\"twice-and\">"), "{}", document.html);
    }

    #[test]
    fn links_between_files_become_links_between_pages() {
        let html =
            render("[a](api.md#names) [b](../../tests/PROOF.md) [c](https://x.example)").html;
        assert!(html.contains("<a href=\"/docs/api#names\">a</a>"), "{html}");
        assert!(html.contains("</a> b <a"), "{html}");
        assert!(html.contains("<a href=\"https://x.example\">c</a>"), "{html}");
    }

    #[test]
    fn a_paragraph_with_only_an_example_link_shows_the_program() {
        let html = render("[drops.py](../examples/drops.py)\n").html;
        assert!(html.contains("AuthenticatedClient"), "{html}");
        assert!(!html.contains("<a "), "{html}");
    }

    #[test]
    fn raw_html_is_shown_as_text() {
        assert!(render("<b>x</b>\n").html.contains("&lt;b&gt;"));
    }
}
