//! Cells of CSV files that hold text from outside.

use std::borrow::Cow;

/// Characters that start a formula in a spreadsheet, or a line or cell that may start with one; the last
/// four are the full-width forms that spreadsheets of East Asian locales read alike.
const FORMULA_STARTS: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

/// Puts a `'` before text that a spreadsheet would evaluate as a formula (OWASP, CSV Injection).
pub fn without_formula(text: &str) -> Cow<'_, str> {
    if text.starts_with(FORMULA_STARTS) {
        Cow::Owned(format!("'{text}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// The text that [`without_formula`] was given.
pub fn unguarded(text: &str) -> &str {
    let rest = text.strip_prefix('\'');
    rest.filter(|rest| rest.starts_with(FORMULA_STARTS)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_become_text() {
        for start in FORMULA_STARTS {
            let text = format!("{start}1");
            assert_eq!(without_formula(&text), format!("'{text}"));
            assert_eq!(unguarded(&without_formula(&text)), text);
        }
        for text in ["", "1=1", " =1", "a@b", "'=1"] {
            assert_eq!(without_formula(text), text);
            assert!(text.starts_with('\'') || unguarded(text) == text);
        }
    }
}
