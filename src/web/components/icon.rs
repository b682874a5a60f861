//! Icons of 24 pixels in the colour of the text, as the path of their lines.

use maud::{Markup, html};

pub const DROP: &str = "M12 3c4 5 6.5 8 6.5 11.5a6.5 6.5 0 0 1-13 0C5.5 11 8 8 12 3z";
pub const STAR: &str = "M12 3.5l2.6 5.4 5.9.8-4.3 4.1 1 5.9-5.2-2.8-5.2 2.8 1-5.9-4.3-4.1 5.9-.8z";
pub const BELL: &str = "M6 16.5v-6a6 6 0 0 1 12 0v6l1.5 1.5h-15zM10 21h4";
pub const COIN: &str =
    "M12 3a9 9 0 1 0 .1 0M12 6.5v11M15 9.3c-1-2-6-2-6 .4 0 2.7 6 1.5 6 4.3 0 2.5-5.2 2.7-6.2.3";
pub const DOTS: &str = "M5 12h.1M12 12h.1M19 12h.1";
pub const FUNNEL: &str = "M4 7h16M7 12h10M10 17h4";

/// Renders an icon without words.
pub fn icon(path: &str) -> Markup {
    html! {
        svg.icon viewBox="0 0 24 24" width="22" height="22" aria-hidden="true" focusable="false" { path d=(path) {} }
    }
}
