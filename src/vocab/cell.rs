//! Cells of CSV files that hold text from outside.

use std::borrow::Cow;

/// Characters that start a formula in a spreadsheet, or start a new line or cell, which may hold a
/// formula. The last four are the full-width forms, which spreadsheets of East Asian locales treat
/// alike.
const FORMULA_STARTS: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

/// Puts a `'` before text that a spreadsheet would evaluate as a formula (OWASP, CSV Injection),
/// and before text that already looks guarded, so that [`unguarded`] restores every text.
pub fn without_formula(text: &str) -> Cow<'_, str> {
    if is_guarded_or_formula(text) { Cow::Owned(format!("'{text}")) } else { Cow::Borrowed(text) }
}

/// Restores the text that was passed to [`without_formula`], by removing one `'`.
pub fn unguarded(text: &str) -> &str {
    text.strip_prefix('\'').filter(|rest| is_guarded_or_formula(rest)).unwrap_or(text)
}

/// Returns true for any number of `'`, followed by the start of a formula.
fn is_guarded_or_formula(text: &str) -> bool {
    text.trim_start_matches('\'').starts_with(FORMULA_STARTS)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn formulas_become_text() {
        for start in FORMULA_STARTS {
            for quotes in ["", "'", "''"] {
                let text = format!("{quotes}{start}1");
                assert_eq!(without_formula(&text), format!("'{text}"));
                assert_eq!(unguarded(&without_formula(&text)), text);
            }
        }
        for text in ["", "1=1", " =1", "a@b", "'", "'a", "''", "' =1"] {
            assert_eq!(without_formula(text), text);
            assert_eq!(unguarded(text), text);
        }
    }

    proptest! {
        #[test]
        fn guarded_texts_are_restored(text in "['=+@\t\r\n＝－a -]{0,6}|.*") {
            let cell = without_formula(&text);
            prop_assert_eq!(unguarded(&cell), text.as_str());
            prop_assert!(!cell.starts_with(FORMULA_STARTS));
        }
    }
}
