//! Settings from environment variables. `DROPDEX_SERVER__MAX_READS` is `max_reads` of `[server]`, and
//! `DROPDEX_PUBLIC_URL` is `public_url`. Lists and tables are written as in TOML: `["a", "b"]`, `{keep = 3}`.

use anyhow::Context;
use config::{Map, Value, ValueKind};

/// Start of the names of all variables.
pub const PREFIX: &str = "DROPDEX_";
/// Separates a section from its setting.
const SEPARATOR: &str = "__";

/// Names at the top level of the settings file.
pub const TOP: [&str; 32] = [
    "data",
    "index",
    "inbox",
    "facts",
    "export_files",
    "sources",
    "zones",
    "today",
    "psl",
    "listen",
    "node",
    "cluster",
    "backup",
    "catch_days",
    "plans",
    "accounts",
    "public_url",
    "smtp",
    "telegram",
    "webhooks",
    "rdap",
    "whois",
    "archive",
    "sample",
    "dns",
    "outbound",
    "web",
    "links",
    "metrics",
    "log",
    "server",
    "tls",
];

/// A variable with a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    pub name: String,
    /// Sections and key, `["server", "max_reads"]`.
    path: Vec<String>,
    text: String,
}

impl Variable {
    /// Parses a variable of the environment. `None` if it names no setting or is empty.
    pub fn new(name: &str, text: &str) -> Option<Variable> {
        let lower = name.strip_prefix(PREFIX)?.to_ascii_lowercase();
        let mut path: Vec<String> = lower.split(SEPARATOR).map(str::to_owned).collect();
        let is_setting = TOP.contains(&path[0].as_str()) && !path.iter().any(String::is_empty);
        if !is_setting || text.is_empty() {
            return None;
        }
        // Tables of `[sources]` are those of sources, whose names have hyphens, which names of variables cannot have.
        let is_table = path.len() > 2 || text.starts_with('{');
        if let [section, source, ..] = path.as_mut_slice()
            && section == "sources"
            && is_table
        {
            *source = source.replace('_', "-");
        }
        Some(Variable { name: name.to_owned(), path, text: text.to_owned() })
    }

    /// Whether the variable sets this key, a part of it, or a table that contains it.
    pub fn is_about(&self, key: &str) -> bool {
        let keys = key.split('.').filter(|key| !key.is_empty());
        let mut both = self.path.iter().zip(keys.clone());
        keys.count() > 0 && both.all(|(one, other)| one == other)
    }

    /// The value: a list or a table in TOML, or a text, from which numbers and switches are read as needed.
    fn value(&self) -> anyhow::Result<Value> {
        let is_table = self.text.starts_with('{');
        if !is_table && !self.text.starts_with('[') {
            return Ok(Value::from(self.text.as_str()));
        }
        let toml = format!("value = {}", self.text);
        let source = config::File::from_str(&toml, config::FileFormat::Toml);
        let read = config::Config::builder().add_source(source).build();
        match read.and_then(|read| read.cache.into_table()) {
            Ok(mut read) => read.remove("value").context("the value is empty"),
            // An IPv6 address.
            Err(_) if !is_table => Ok(Value::from(self.text.as_str())),
            Err(err) => Err(err).with_context(|| format!("{} is not a table in TOML", self.name)),
        }
    }
}

/// Adds variables to the settings of a file, which they override. Tables are merged.
///
/// # Errors
/// A table is not valid TOML.
pub fn merge(sections: &mut Map<String, Value>, variables: &[Variable]) -> anyhow::Result<()> {
    // Parts of a table override a whole one.
    let mut sorted: Vec<&Variable> = variables.iter().collect();
    sorted.sort_by_key(|variable| variable.path.len());
    for variable in sorted {
        let mut value = variable.value()?;
        for key in variable.path.iter().skip(1).rev() {
            value = Map::from([(key.clone(), value)]).into();
        }
        insert(sections, &variable.path[0], value);
    }
    Ok(())
}

fn insert(table: &mut Map<String, Value>, key: &str, new: Value) {
    match (table.get_mut(key).map(|old| &mut old.kind), new.kind) {
        (Some(ValueKind::Table(old)), ValueKind::Table(new)) => {
            for (key, value) in new {
                insert(old, &key, value);
            }
        }
        (_, kind) => {
            table.insert(key.to_owned(), Value::new(None, kind));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_name_sections_settings_and_sources() {
        let path = |name: &str| Variable::new(name, "x").map(|variable| variable.path.join("."));
        for (name, expected) in [
            ("DROPDEX_PUBLIC_URL", Some("public_url")),
            ("DROPDEX_SERVER__MAX_READS", Some("server.max_reads")),
            ("DROPDEX_SOURCES__UK_NOMINET__ENABLED", Some("sources.uk-nominet.enabled")),
            ("DROPDEX_SOURCES__IDLE_SECONDS", Some("sources.idle_seconds")),
            ("DROPDEX_PLANS__PRO__PRICE_USD", Some("plans.pro.price_usd")),
            ("DROPDEX_SERVER__", None),
            ("DROPDEX_NOTHING", None),
            ("DROPDEX_SMTP_PASSWORD", None),
            ("PATH", None),
        ] {
            assert_eq!(path(name).as_deref(), expected, "{name}");
        }
        assert_eq!(Variable::new("DROPDEX_NODE", ""), None, "empty counts as absent");
    }

    #[test]
    fn a_variable_is_about_its_key_and_what_contains_it() {
        let variable = Variable::new("DROPDEX_SERVER__MAX_READS", "x").expect("a setting");
        for key in ["server", "server.max_reads", "server.max_reads.x"] {
            assert!(variable.is_about(key), "{key}");
        }
        assert!(!variable.is_about("server.max_writes") && !variable.is_about(""));
    }
}
