//! Renamed settings. An old name works for one more version and causes a warning in the log.

use anyhow::Context;
use config::{Map, Value, ValueKind};

/// A renamed setting, as `section.key`.
#[derive(Debug, PartialEq, Eq)]
pub struct Renamed {
    pub old: &'static str,
    pub new: &'static str,
    /// Factor between the units of the old and the new name.
    factor: u32,
}

const fn renamed(old: &'static str, new: &'static str) -> Renamed {
    Renamed { old, new, factor: 1 }
}

static SETTINGS: [Renamed; 9] = [
    renamed("web.proxies", "server.proxies"),
    renamed("webhooks.deny_names", "webhooks.deny_hosts"),
    renamed("server.connections", "server.max_connections"),
    renamed("server.connections_per_address", "server.max_connections_per_address"),
    renamed("server.reads", "server.max_reads"),
    renamed("server.exports", "server.max_exports"),
    renamed("server.log_ins", "server.max_log_ins"),
    renamed("server.writes", "server.max_writes"),
    Renamed { old: "server.queue_seconds", new: "server.queue_timeout_ms", factor: 1000 },
];

impl Renamed {
    /// Logs that the old name is in use.
    pub fn warn(&self) {
        tracing::warn!(
            old = self.old,
            new = self.new,
            "a setting was renamed; use its new name, the next version rejects the old one"
        );
    }
}

/// Gives the settings of a file their new names. Returns the settings that had old names.
///
/// # Errors
/// A setting is given by both names, or is not a number although the unit of the setting changed.
pub(super) fn apply(sections: &mut Map<String, Value>) -> anyhow::Result<Vec<&'static Renamed>> {
    let mut used = Vec::new();
    for renamed in &SETTINGS {
        let Renamed { old, new, factor } = renamed;
        let Some(mut value) =
            split(old).and_then(|(section, key)| section_mut(sections, section)?.remove(key))
        else {
            continue;
        };
        if *factor != 1 {
            let number = value.into_float().with_context(|| (*old).to_owned())?;
            value = (number * f64::from(*factor)).into();
        }
        let (section, key) = split(new).expect("every setting is in a section");
        sections.entry(section.to_owned()).or_insert_with(|| Map::<String, Value>::new().into());
        let Some(section) = section_mut(sections, section) else { continue };
        anyhow::ensure!(
            section.insert(key.to_owned(), value).is_none(),
            "{old} was renamed to {new}, and both are set; remove {old}"
        );
        used.push(renamed);
    }
    Ok(used)
}

fn split(name: &'static str) -> Option<(&'static str, &'static str)> {
    name.split_once('.')
}

fn section_mut<'a>(
    sections: &'a mut Map<String, Value>,
    name: &str,
) -> Option<&'a mut Map<String, Value>> {
    match &mut sections.get_mut(name)?.kind {
        ValueKind::Table(section) => Some(section),
        _ => None,
    }
}
