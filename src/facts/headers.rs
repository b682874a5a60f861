//! Names of columns as files write them, and the names whose columns are dropped.

use crate::vocab::money::Currency;

/// Maximum characters of a header that reports repeat.
const SHOWN_CHARS_MAX: usize = 60;
/// Parts of names, as [`Header::plain`] has them, of columns with personal data or secrets. Too many columns
/// are dropped rather than too few.
const PERSONAL: [&str; 35] = [
    "registrant",
    "admin",
    "tech",
    "billing",
    "contact",
    "owner",
    "holder",
    "buyer",
    "customer",
    "client",
    "firstname",
    "lastname",
    "fullname",
    "organisation",
    "organization",
    "mail",
    "phone",
    "telefon",
    "mobile",
    "fax",
    "address",
    "adresse",
    "street",
    "postal",
    "zipcode",
    "whois",
    "account",
    "username",
    "login",
    "authcode",
    "epp",
    "passw",
    "secret",
    "token",
    "apikey",
];

/// The name of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// The name in lower case, only `a` to `z` and digits, without `*`, `(Required)` and a currency in
    /// brackets.
    pub(crate) plain: String,
    /// Number of columns of the same plain name up to this one, from 1.
    pub(crate) occurrence: usize,
    /// The name as written, shortened.
    pub(crate) shown: String,
    /// The currency in brackets: `Amount (USD)`.
    pub(crate) currency: Option<Currency>,
}

impl Header {
    /// Reads the cells of a header row.
    pub(crate) fn row<'a>(cells: impl IntoIterator<Item = &'a str>) -> Vec<Header> {
        let mut headers: Vec<Header> = Vec::new();
        for cell in cells {
            let mut header = Header::new(cell);
            header.occurrence += headers.iter().filter(|it| it.plain == header.plain).count();
            headers.push(header);
        }
        headers
    }

    fn new(cell: &str) -> Header {
        let (name, currency) = without_hints(cell);
        let plain = name.chars().filter(char::is_ascii_alphanumeric);
        let shown = cell.trim().chars().take(SHOWN_CHARS_MAX);
        Header {
            plain: plain.map(|char| char.to_ascii_lowercase()).collect(),
            occurrence: 1,
            shown: shown.map(|char| if char.is_control() { ' ' } else { char }).collect(),
            currency,
        }
    }

    /// Returns true for a column that may hold personal data or secrets.
    pub(crate) fn is_personal(&self) -> bool {
        // `Ownership Date` names no owner.
        let plain = self.plain.replace("ownership", "");
        PERSONAL.iter().any(|part| plain.contains(part))
    }
}

/// Removes `(Required)` and a currency in brackets from a name, and returns the currency.
fn without_hints(cell: &str) -> (String, Option<Currency>) {
    let (mut name, mut rest, mut currency) = (String::new(), cell, None);
    while let Some((before, after)) = rest.split_once('(') {
        let Some((inner, after)) = after.split_once(')') else { break };
        name.push_str(before);
        // `(all)` does not stand for the currency ALL.
        let code = Some(inner.trim()).filter(|it| it.bytes().all(|byte| byte.is_ascii_uppercase()));
        match code.and_then(Currency::parse) {
            Some(code) => currency = Some(code),
            None if inner.trim().eq_ignore_ascii_case("required") => {}
            None => name.push_str(inner),
        }
        rest = after;
    }
    name.push_str(rest);
    (name, currency)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_without_case_marks_and_hints() {
        for (cell, plain, currency) in [
            ("Domain Name", "domainname", None),
            ("domain_name", "domainname", None),
            ("*Name (Required)", "name", None),
            ("Amount (USD)", "amount", Some("USD")),
            ("Price (EUR) ", "price", Some("EUR")),
            ("Domain Name (ACE)", "domainnameace", None),
            ("Ref. domains (all)", "refdomainsall", None),
            ("Organic / Keywords (Top 3)", "organickeywordstop3", None),
            ("(51+", "51", None),
            ("Từ khóa", "tkha", None),
            ("#", "", None),
        ] {
            let header = Header::new(cell);
            assert_eq!(header.plain, plain, "{cell}");
            assert_eq!(header.currency.map(Currency::as_str), currency, "{cell}");
        }
    }

    #[test]
    fn repeated_names_are_numbered() {
        let headers = Header::row(["Registration Date", "Folder", "registration_date"]);
        let occurrences: Vec<_> = headers.iter().map(|header| header.occurrence).collect();
        assert_eq!(occurrences, [1, 1, 2]);
    }

    #[test]
    fn columns_with_personal_data_and_secrets_are_recognised() {
        for name in [
            "Registrant Name",
            "Admin Email",
            "Tech Phone",
            "Billing City",
            "E-Mail",
            "Fax",
            "Street Address",
            "AuthCode",
            "EPP Key",
            "Password",
            "Account No",
            "Account Holder",
            "date_added_to_account",
            "Owner",
            "RootDomainIPAddress",
        ] {
            assert!(Header::new(name).is_personal(), "{name}");
        }
        let document = include_str!("../../data/docs/facts.md");
        let (_, document) =
            document.split_once("### Personal data and secrets").expect("a section");
        for part in PERSONAL {
            assert!(document.contains(&format!(" {part}")), "{part}");
        }
        for name in ["Domain Name", "Ownership Date", "Status", "Name Server", "Title"] {
            assert!(!Header::new(name).is_personal(), "{name}");
        }
    }
}
