//! The `[links]` section of the configuration: pages of other sites about a name.

use serde::Deserialize;
use url::Url;

use crate::vocab::name::DomainName;
use crate::vocab::tld::fold_tld;

/// External links of a dossier, by purpose. A list in the settings replaces the default for its
/// purpose.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Links {
    /// Services that accept orders before a name drops.
    pub backorder: Vec<Link>,
    /// Sites with facts about the name.
    pub research: Vec<Link>,
    /// Services that register available names.
    pub registrar: Vec<Link>,
}

/// A link to another site's page about a name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    pub name: String,
    url: Template,
    /// Suffixes that the site serves; empty for all.
    #[serde(default)]
    tlds: Vec<Suffix>,
    /// Suffixes that the site does not serve.
    #[serde(default)]
    not_tlds: Vec<Suffix>,
}

/// A suffix in the spelling of the index.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
struct Suffix(String);

impl TryFrom<String> for Suffix {
    type Error = String;

    fn try_from(text: String) -> Result<Suffix, String> {
        let tld = fold_tld(text.trim_start_matches('.'));
        tld.map(|tld| Suffix(tld.into())).ok_or_else(|| format!("`{text}` is not a TLD"))
    }
}

/// A URL with placeholders: `{name}` (`xn--mnchen-3ya.de` for `münchen.de`), `{label}`, `{tld}`, and
/// `{unicode}` for the label in Unicode. Invariant: http or https, and no placeholder in the host.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
struct Template(String);

impl TryFrom<String> for Template {
    type Error = String;

    fn try_from(text: String) -> Result<Template, String> {
        let template = Template(text);
        let sample = |name: &str| {
            let name = DomainName::parse(name).expect("a name");
            Url::parse(&template.filled(&name)).map_err(|err| format!("`{}`: {err}", template.0))
        };
        let (one, other) = (sample("a.com")?, sample("b.de")?);
        if !matches!(one.scheme(), "http" | "https") {
            return Err(format!("`{}`: must begin with https:// or http://", template.0));
        }
        if one.origin() != other.origin() {
            return Err(format!("`{}`: a placeholder must not be part of the host", template.0));
        }
        if one.as_str().contains("%7B") || one.as_str().contains('{') {
            let known = "{name}, {label}, {tld} and {unicode}";
            return Err(format!("`{}`: has an unknown placeholder; known are {known}", template.0));
        }
        Ok(template)
    }
}

impl Template {
    fn filled(&self, name: &DomainName) -> String {
        let unicode = crate::vocab::name::to_unicode(name.label());
        let unicode: String = url::form_urlencoded::byte_serialize(unicode.as_bytes()).collect();
        self.0
            .replace("{name}", name.as_str())
            .replace("{label}", name.label())
            .replace("{tld}", name.tld())
            .replace("{unicode}", &unicode)
    }
}

impl Link {
    fn new(name: &str, url: &str, tlds: &str) -> Link {
        let suffixes =
            |list: &str| list.split_whitespace().map(|it| Suffix(it.to_owned())).collect();
        let (tlds, not_tlds) = match tlds.strip_prefix("not ") {
            Some(list) => (Vec::new(), suffixes(list)),
            None => (suffixes(tlds), Vec::new()),
        };
        let url = Template::try_from(url.to_owned()).expect("a test checks the defaults");
        Link { name: name.to_owned(), url, tlds, not_tlds }
    }

    /// Returns the URL for a name; `None` if the site does not serve its suffix.
    pub fn address(&self, name: &DomainName) -> Option<String> {
        let is_one = |list: &[Suffix]| list.iter().any(|suffix| suffix.0 == name.tld());
        let is_served = (self.tlds.is_empty() || is_one(&self.tlds)) && !is_one(&self.not_tlds);
        is_served.then(|| self.url.filled(name))
    }
}

/// Suffixes for which the large venues for generic names accept backorders.
const GENERIC: &str = "com net org info biz io co me tv cc us xyz online site shop app dev ai";
/// Suffixes for which Catched accepts backorders.
const EUROPEAN: &str = "nl de be eu uk co.uk fr it es ch at dk se no fi pl cz pt li lu";

impl Default for Links {
    fn default() -> Links {
        let links = |all: &[(&str, &str, &str)]| {
            all.iter().map(|(name, url, tlds)| Link::new(name, url, tlds)).collect()
        };
        Links {
            backorder: links(&[
                ("DropCatch", "https://www.dropcatch.com/domain/{name}", GENERIC),
                ("SnapNames", "https://www.snapnames.com/domain/{name}.action", GENERIC),
                ("NameJet", "https://www.namejet.com/domain/{name}.action", GENERIC),
                ("GoDaddy", "https://auctions.godaddy.com/beta?query={name}", GENERIC),
                ("Dynadot", "https://www.dynadot.com/market/backorder?domain={name}", ""),
                ("Gname", "https://www.gname.com/backorder?keyword={name}", GENERIC),
                ("Catched", "https://catched.com/domains?q={name}", EUROPEAN),
            ]),
            research: links(&[
                ("Web archive", "https://web.archive.org/web/*/{name}", ""),
                ("Past sales", "https://namebio.com/?s={label}", ""),
                ("Web search", "https://www.google.com/search?q=%22{unicode}%22", ""),
                (
                    "Trademarks",
                    "https://www.tmdn.org/tmview/#/tmview/results?basicSearch={unicode}",
                    "",
                ),
                ("RDAP record", "https://client.rdap.org/?type=domain&object={name}", ""),
            ]),
            registrar: links(&[
                ("Porkbun", "https://porkbun.com/checkout/search?q={name}", ""),
                (
                    "Namecheap",
                    "https://www.namecheap.com/domains/registration/results/?domain={name}",
                    "",
                ),
                ("INWX", "https://www.inwx.com/en/domain/check#search={name}", ""),
            ]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> DomainName {
        DomainName::parse(text).expect("a name")
    }

    fn served(links: &[Link], text: &str) -> Vec<String> {
        let served = links.iter().filter(|link| link.address(&name(text)).is_some());
        served.map(|link| link.name.clone()).collect()
    }

    #[test]
    fn defaults_fit_the_suffix() {
        let links = Links::default();
        assert_eq!(served(&links.backorder, "a.com").len(), 6);
        assert_eq!(served(&links.backorder, "a.de"), ["Dynadot", "Catched"]);
        let search = links.research.iter().find(|link| link.name == "Web search");
        let address = search.and_then(|link| link.address(&name("münchen.de")));
        assert_eq!(address.as_deref(), Some("https://www.google.com/search?q=%22m%C3%BCnchen%22"));
    }

    #[test]
    fn templates_are_checked() {
        let parse = |url: &str| Template::try_from(url.to_owned()).map(|_| ());
        for good in [
            "https://a.example/{name}",
            "http://a.example/?q={label}&t={tld}",
            "https://a.example/",
        ] {
            assert_eq!(parse(good), Ok(()), "{good}");
        }
        for (bad, what) in [
            ("a.example/{name}", "relative URL"),
            ("javascript:alert('{name}')", "https://"),
            ("https://{name}/", "host"),
            ("https://a.example/{domain}", "placeholder"),
        ] {
            assert!(parse(bad).is_err_and(|err| err.contains(what)), "{bad}: {:?}", parse(bad));
        }
    }
}
