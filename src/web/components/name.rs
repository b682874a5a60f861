//! Rendering of names. IDNs are shown in Unicode with the A-label beside them. Labels that mix scripts
//! are marked, because a Cyrillic letter among Latin ones may imitate a known name.

use maud::{Markup, html};

use crate::scorer::mixes_scripts;
use crate::vocab::name::{is_a_label, to_unicode};

/// Path of the page of a name in A-label form, which needs no escaping.
pub fn dossier_path(name: &str) -> String {
    format!("/domain/{name}")
}

/// Renders a name in A-label form with the suffix `tld`.
pub fn name(name: &str, tld: &str) -> Markup {
    named(name, tld, &html! { (spelled(name, tld)) })
}

/// Renders [`name`] as a link to the page of the name.
pub fn name_linked(name: &str, tld: &str) -> Markup {
    named(name, tld, &html! { a href=(dossier_path(name)) { (spelled(name, tld)) } })
}

/// Renders a name as the head of its row, in as few elements as possible: lists consist of these. The
/// suffix of an ASCII name follows the link, which has the whole name as its label.
pub fn row_header(name: &str, tld: &str, more: &Markup) -> Markup {
    html! {
        th scope="row" {
            @if name.split('.').any(is_a_label) { (name_linked(name, tld)) }
            @else { a href=(dossier_path(name)) aria-label=(name) { (label_of(name, tld)) } "." (tld) }
            (more)
        }
    }
}

fn named(name: &str, tld: &str, main: &Markup) -> Markup {
    let idn = name.split('.').any(is_a_label);
    html! {
        (main)
        @if idn { " " span.alabel title=(name) { (name) } }
        @if mixes_scripts(label_of(name, tld)) {
            " " span.badge.bad title="This name mixes letters of several scripts. It may imitate another name." { "mixed scripts" }
        }
    }
}

/// Renders the label and the suffix, isolated so that they keep their order in right-to-left
/// scripts.
fn spelled(name: &str, tld: &str) -> Markup {
    html! {
        bdi.name { (to_unicode(label_of(name, tld))) span.suffix { "." (to_unicode(tld)) } }
    }
}

fn label_of<'a>(name: &'a str, tld: &str) -> &'a str {
    name.strip_suffix(tld).and_then(|rest| rest.strip_suffix('.')).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, tld: &str) -> String {
        name_linked(text, tld).into_string()
    }

    #[test]
    fn ascii_names_have_no_a_label() {
        assert_eq!(
            shown("solar.co.uk", "co.uk"),
            "<a href=\"/domain/solar.co.uk\"><bdi class=\"name\">solar\
             <span class=\"suffix\">.co.uk</span></bdi></a>"
        );
    }

    #[test]
    fn idns_show_their_a_label() {
        let html = shown("xn--mnchen-3ya.de", "de");
        assert!(html.contains("href=\"/domain/xn--mnchen-3ya.de\""), "{html}");
        assert!(html.contains(">münchen<"), "{html}");
        assert!(html.contains("\">xn--mnchen-3ya.de</span>"), "{html}");
        assert!(!html.contains("mixed"), "{html}");
        let html = shown("xn--e1afmkfd.xn--p1ai", "xn--p1ai");
        assert!(html.contains(">пример<") && html.contains(">.рф<"), "{html}");
    }

    #[test]
    fn mixed_scripts_are_marked() {
        // The second letter is Cyrillic.
        let html = shown("xn--pypal-4ve.com", "com");
        assert!(html.contains(">mixed scripts<"), "{html}");
    }
}
