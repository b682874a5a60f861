//! Cells and lines of CSV files (RFC 4180).

use std::borrow::Cow;
use std::fmt::Display;

use crate::index::query::rows::DropRow;
use crate::vocab::cell::without_formula;

/// Buffer size to reserve for each row of the drops list.
pub const DROP_CSV_BYTES: usize = 144;

/// Header line of the drops export.
pub const DROPS_CSV_HEADER: &str = "domain,tld,length,dqs,explanation\r\n";
/// Byte order mark. Without one, Excel decodes the file with the code page of the machine.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// The start of a CSV file: a byte order mark if `bom`, then the header line.
pub fn csv_header(header: impl Into<Cow<'static, str>>, bom: bool) -> Cow<'static, str> {
    let header = header.into();
    if bom { format!("{BYTE_ORDER_MARK}{header}").into() } else { header }
}

/// A cell without user text; empty for `None`.
pub fn cell(value: Option<impl Display>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// A cell with user text, quoted according to RFC 4180 §2.
pub fn user_cell(text: &str) -> Cow<'_, str> {
    let text = without_formula(text);
    if !text.contains([',', '"', '\r', '\n']) {
        return text;
    }
    Cow::Owned(format!("\"{}\"", text.replace('"', "\"\"")))
}

/// Appends a row of the drops list as a line of the drops export. Names and TLDs consist of letters,
/// digits, hyphens and dots, and need no quotes; the explanation is always quoted.
pub fn push_drop_csv(row: &DropRow<'_>, out: &mut Vec<u8>) {
    push(out, row.name);
    push(out, ",");
    push(out, row.tld);
    push(out, ",");
    push_number(out, row.length);
    push(out, ",");
    push_number(out, row.dqs.points());
    push(out, ",");
    push_quoted_cell(out, row.explanation);
    push(out, "\r\n");
}

/// Appends a cell in quotes, with inner quotes doubled.
pub fn push_quoted_cell(out: &mut Vec<u8>, text: &str) {
    let mut before = "\"";
    for piece in text.split('"') {
        push(out, before);
        push(out, piece);
        before = "\"\"";
    }
    push(out, "\"");
}

/// Appends `number` in decimal digits.
#[inline]
pub fn push_number(out: &mut Vec<u8>, number: impl Into<u32>) {
    let mut number = number.into();
    if number < 10 {
        return out.push(b'0' + number as u8);
    }
    let mut digits = [0; 10];
    let mut start = digits.len();
    while number > 0 {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    out.extend_from_slice(&digits[start..]);
}

/// Appends text unchanged. Inlined, so that the compiler copies a constant text with a few moves
/// instead of a call.
#[inline(always)]
pub fn push(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_cells_are_quoted_and_not_formulas() {
        for (text, cell) in [
            ("", ""),
            ("Gandi SAS", "Gandi SAS"),
            ("a'b", "a'b"),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("two\nlines", "\"two\nlines\""),
            ("=1+2", "'=1+2"),
            ("'=1+2", "''=1+2"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\tx", "'\tx"),
            ("\rx", "\"'\rx\""),
            ("\n=1", "\"'\n=1\""),
            ("＝1", "'＝1"),
            ("＋1", "'＋1"),
            ("－1", "'－1"),
            ("＠SUM(A1)", "'＠SUM(A1)"),
            ("=HYPERLINK(\"x\",1)", "\"'=HYPERLINK(\"\"x\"\",1)\""),
            (" =1", " =1"),
            ("a=1", "a=1"),
        ] {
            assert_eq!(user_cell(text), cell, "{text:?}");
        }
    }
}
