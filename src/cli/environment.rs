//! Detects likely typos: environment variables with the prefix of dropdex settings that match no
//! setting.

use clap::CommandFactory;

use crate::cli::Cli;
use crate::config::environment::{PREFIX, TOP, Variable};
use crate::vocab::similar;

/// Variables with secrets, which are not options.
pub const SECRETS: [&str; 5] = [
    "DROPDEX_SMTP_PASSWORD",
    "DROPDEX_TELEGRAM_TOKEN",
    "DROPDEX_CZDS_PASSWORD",
    "DROPDEX_S3_SECRET_ACCESS_KEY",
    "DROPDEX_BACKUP_S3_SECRET_ACCESS_KEY",
];

/// Returns the settings of the environment that have neither an option nor a secret.
pub fn settings() -> Vec<Variable> {
    let known = known();
    let set = std::env::vars().filter(|(name, _)| !known.contains(&name.to_lowercase()));
    set.filter_map(|(name, text)| Variable::new(&name, &text)).collect()
}

/// Describes the variables that no version of dropdex reads.
pub fn unknown() -> Vec<String> {
    let known = known();
    let set = std::env::vars_os().filter(|(_, value)| !value.is_empty());
    let names = set.filter_map(|(name, _)| name.into_string().ok());
    let unknown = names.filter(|name| is_unknown(name, &known));
    let warning = |name: String| {
        let hint = nearest(&name, &known).map_or_else(
            || "a setting is DROPDEX_NAME or DROPDEX_SECTION__NAME".to_owned(),
            |nearest| format!("did you mean {nearest}?"),
        );
        format!("the environment variable {name} has no effect; {hint}")
    };
    unknown.map(warning).collect()
}

/// Returns a name that has an effect and is similar to an unknown one.
fn nearest(name: &str, known: &[String]) -> Option<String> {
    let lower = name.to_lowercase();
    let own = lower.get(PREFIX.len()..)?;
    let (section, rest) = own.split_once("__").unwrap_or((own, ""));
    let is_section =
        |top: &&&str| own.strip_prefix(**top).is_some_and(|rest| rest.starts_with('_'));
    let sections = TOP.iter().copied();
    let options = known.iter().filter_map(|name| name.get(PREFIX.len()..));
    let found = if !rest.is_empty() {
        format!("{}__{rest}", similar::nearest(section, sections)?)
    } else if let Some(nearest) = similar::nearest(own, options.chain(sections)) {
        nearest.to_owned()
    } else {
        let top = TOP.iter().filter(is_section).max_by_key(|top| top.len())?;
        format!("{top}__{}", own[top.len()..].trim_start_matches('_'))
    };
    Some(format!("{PREFIX}{}", found.to_uppercase()))
}

/// Returns the command without variables that are empty, which count as unset.
pub fn without_empty(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|option| {
        let set = option.get_env().and_then(std::env::var_os);
        if set.is_some_and(|value| value.is_empty()) { option.env(None) } else { option }
    });
    command.mut_subcommands(without_empty)
}

/// Returns the names of all known variables, in lower case.
fn known() -> Vec<String> {
    let mut known: Vec<String> = SECRETS.iter().map(|name| name.to_lowercase()).collect();
    let mut commands = vec![Cli::command()];
    while let Some(command) = commands.pop() {
        let names = command.get_arguments().filter_map(|option| option.get_env());
        known.extend(names.map(|name| name.to_string_lossy().to_lowercase()));
        commands.extend(command.get_subcommands().cloned());
    }
    known.sort_unstable();
    known.dedup();
    known
}

fn is_unknown(name: &str, known: &[String]) -> bool {
    name.starts_with(PREFIX)
        && !known.contains(&name.to_lowercase())
        && Variable::new(name, "x").is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_options_and_secrets_are_known_and_others_are_not() {
        let known = known();
        for name in ["DROPDEX_DATA", "DROPDEX_CONFIG", "DROPDEX_LOG_JSON", "DROPDEX_SMTP_PASSWORD"]
        {
            assert!(!is_unknown(name, &known), "{name}");
        }
        assert!(is_unknown("DROPDEX_DATAA", &known) && is_unknown("DROPDEX_X", &known));
        assert!(!is_unknown("PATH", &known) && !is_unknown("DROPDE", &known));
        for (name, expected) in [
            ("DROPDEX_DATAA", Some("DROPDEX_DATA")),
            ("DROPDEX_SMTP_PASWORD", Some("DROPDEX_SMTP_PASSWORD")),
            ("DROPDEX_SERVR__MAX_READS", Some("DROPDEX_SERVER__MAX_READS")),
            ("DROPDEX_SERVER_MAX_READS", Some("DROPDEX_SERVER__MAX_READS")),
            ("DROPDEX_EXPORT_FILES_KEEP_DAYS", Some("DROPDEX_EXPORT_FILES__KEEP_DAYS")),
            ("DROPDEX_PORT", None),
            ("DROPDEX_", None),
        ] {
            assert_eq!(nearest(name, &known).as_deref(), expected, "{name}");
        }
    }
}
