//! Tables.

use maud::{Markup, html};

use Column::{Hidden, Number, Text};

/// Heading of a column.
#[derive(Clone, Copy)]
pub enum Column<'a> {
    Text(&'a str),
    /// Right-aligned.
    Number(&'a str),
    /// For screen readers only.
    Hidden(&'a str),
}

/// Renders the head of a table.
pub fn columns(columns: &[Column<'_>]) -> Markup {
    html! {
        thead {
            tr {
                @for column in columns {
                    @match *column {
                        Text(word) => th scope="col" { (word) },
                        Number(word) => th.number scope="col" { (word) },
                        Hidden(word) => th scope="col" { span.hidden { (word) } },
                    }
                }
            }
        }
    }
}

/// Renders a table that scrolls on narrow screens, also by keyboard. `class` may be empty.
pub fn table(label: &str, class: &str, head: &[Column<'_>], body: Markup) -> Markup {
    html! {
        div.table tabindex="0" role="region" aria-label=(label) {
            table class=[(!class.is_empty()).then_some(class)] { (columns(head)) (body) }
        }
    }
}
