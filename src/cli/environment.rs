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
        let top = TOP.map(|name| format!("{PREFIX}{name}").to_lowercase());
        let all = known.iter().chain(&top).map(String::as_str);
        let hint = similar::nearest(&name.to_lowercase(), all).map_or_else(
            || "a setting is DROPDEX_NAME or DROPDEX_SECTION__NAME".to_owned(),
            |nearest| format!("did you mean {}?", nearest.to_uppercase()),
        );
        format!("the environment variable {name} has no effect; {hint}")
    };
    unknown.map(warning).collect()
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
        for name in ["DROPDEX_DATA", "DROPDEX_LISTEN", "DROPDEX_LOG_JSON", "DROPDEX_SMTP_PASSWORD"]
        {
            assert!(!is_unknown(name, &known), "{name}");
        }
        assert!(is_unknown("DROPDEX_DATAA", &known) && is_unknown("DROPDEX_X", &known));
        assert!(!is_unknown("PATH", &known) && !is_unknown("DROPDE", &known));
        let nearest = similar::nearest("DROPDEX_DATAA", known.iter().map(String::as_str));
        assert_eq!(nearest.map(str::to_uppercase).as_deref(), Some("DROPDEX_DATA"));
    }
}
