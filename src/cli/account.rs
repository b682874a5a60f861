//! `dropdex account`: adds and changes accounts.
//!
//! Works with and without a running server: commands go to its admin socket or, without one, to the
//! store in the data folder.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::{Args, Subcommand};

use crate::accounts::admin::{AdminCommand, AdminReply};
use crate::accounts::{AccountSummary, Email, NewKey};
use crate::cli::admin_client;
use crate::http::account_data::file_name;
use crate::vocab::clock::Clock;
use crate::vocab::limits::KEY_DAYS_MAX;
use crate::vocab::plan::{Plan, Plans};
use crate::vocab::scope::{Scope, Scopes};
use crate::vocab::secret::Secret;

/// Maximum bytes of a password on standard input; 128 characters need less.
const PASSWORD_BYTES_MAX: u64 = 4 << 10;

/// Add, list and change accounts
#[derive(Args, Debug)]
pub struct AccountArgs {
    #[command(subcommand)]
    command: AccountCommand,
}

#[derive(Subcommand, Debug)]
enum AccountCommand {
    /// Add an account; `dropdex account key` then creates its API key
    Add {
        /// E-mail address of the account
        email: Email,
        /// Plan: free, core, pro or api
        #[arg(long)]
        plan: Plan,
        /// Read a password of 8 to 128 characters from standard input
        #[arg(long)]
        password_stdin: bool,
        /// Mail the owner a link to choose a password; the server must be running and have [smtp]
        #[arg(long, conflicts_with = "password_stdin")]
        invite: bool,
    },
    /// List all accounts, in the order they were added
    List {
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Change the plan of an account, from its next request on
    SetPlan {
        /// E-mail address of the account
        email: Email,
        /// Plan: free, core, pro or api
        plan: Plan,
    },
    /// Create an API key and print it once; without --name it replaces the account's first key, which
    /// stops working immediately
    Key {
        /// E-mail address of the account
        email: Email,
        /// Create a further key with this name
        #[arg(long)]
        name: Option<String>,
        /// Scopes of the key, comma-separated: read, export, watchlist, alerts, portfolio, feeds,
        /// mcp [default: all]
        #[arg(long, requires = "name", value_delimiter = ',')]
        scopes: Vec<Scope>,
        /// Days until it expires [default: never]
        #[arg(long, requires = "name", value_parser = clap::value_parser!(u16).range(1..=i64::from(KEY_DAYS_MAX)))]
        days: Option<u16>,
    },
    /// Set a new password, read from standard input, and end all sessions
    SetPassword {
        /// E-mail address of the account
        email: Email,
        /// Read the password of 8 to 128 characters from standard input; required
        #[arg(long, required = true)]
        password_stdin: bool,
    },
    /// Reset today's allowances of requests and exports of an account
    ResetUsage {
        /// E-mail address of the account
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        email: Option<Email>,
        /// All accounts
        #[arg(long)]
        all: bool,
    },
    /// Write everything of an account to a zip archive of JSON and CSV files
    ///
    /// README.txt in the archive describes its files. It has no password, key or other secret.
    Export {
        /// E-mail address of the account
        email: Email,
        /// File to create; `-` is standard output [default: dropdex-EMAIL-DATE.zip]
        file: Option<PathBuf>,
    },
    /// Disable an account permanently; its API key stops working immediately
    Disable {
        /// E-mail address of the account
        email: Email,
    },
    /// Disable an account now, and erase it with all its data after seven days
    ///
    /// Until then, `account restore` brings it back. Afterwards nothing of it is in the service, and its
    /// address is free. Segments of the journal keep it until they are removed, and backups until they are.
    Delete {
        /// E-mail address of the account
        email: Email,
    },
    /// Keep an account that was to be deleted; its keys work again
    Restore {
        /// E-mail address of the account
        email: Email,
    },
}

/// Runs `dropdex account` on the data folder `data_dir`.
///
/// # Errors
/// The message to print before exit 1.
pub fn run(args: AccountArgs, data_dir: &Path, plans: Plans, clock: Clock) -> anyhow::Result<()> {
    let mut streams = Streams {
        input: &mut io::stdin().lock(),
        output: &mut io::stdout().lock(),
        notes: &mut io::stderr().lock(),
    };
    run_with(args, data_dir, plans, clock, &mut streams)
}

/// The streams of a command.
pub struct Streams<'a> {
    /// Standard input, for `--password-stdin`.
    pub input: &'a mut dyn Read,
    /// Standard output, for results.
    pub output: &'a mut dyn Write,
    /// Standard error, for remarks.
    pub notes: &'a mut dyn Write,
}

/// [`run`] with the given streams.
///
/// # Errors
/// The errors of [`run`].
pub fn run_with(
    args: AccountArgs,
    data_dir: &Path,
    plans: Plans,
    clock: Clock,
    streams: &mut Streams<'_>,
) -> anyhow::Result<()> {
    let as_json = matches!(args.command, AccountCommand::List { json: true });
    let file = match &args.command {
        AccountCommand::Export { email, file } => {
            Some(file.clone().unwrap_or_else(|| file_name(email, clock.now()).into()))
        }
        _ => None,
    };
    let command = admin_command(args.command, streams.input)?;
    let reply = match &command {
        // Only the server has the mail settings and can verify the link.
        AdminCommand::AddAccount { invite: true, .. } => {
            admin_client::execute_on_server(&command, data_dir)?
        }
        _ => admin_client::execute_command(&command, data_dir, plans, clock)?,
    };
    match (reply, file) {
        (AdminReply::Exported { zip }, Some(file)) => save(&zip, &file, streams),
        (reply, _) => print(&command, reply, as_json, streams),
    }
}

/// Writes an archive to a new file that only its owner can read, or to standard output for `-`.
fn save(zip: &str, file: &Path, streams: &mut Streams<'_>) -> anyhow::Result<()> {
    let archive = STANDARD.decode(zip).map_err(|_| admin_client::unexpected_reply())?;
    if file == Path::new("-") {
        streams.output.write_all(&archive)?;
        return streams.output.flush().context("cannot write the archive");
    }
    let at = file.display();
    anyhow::ensure!(!file.exists(), "{at} exists already; choose another name");
    let new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    let mut new = new.with_context(|| format!("cannot create {at}"))?;
    new.write_all(&archive).with_context(|| format!("cannot write {at}"))?;
    writeln!(streams.output, "{at} has everything of the account ({} bytes)", archive.len())?;
    streams.output.flush().context("cannot write the result")
}

fn admin_command(command: AccountCommand, input: &mut dyn Read) -> anyhow::Result<AdminCommand> {
    Ok(match command {
        AccountCommand::Add { email, plan, password_stdin, invite } => {
            let password = password_stdin.then(|| read_password(input)).transpose()?;
            AdminCommand::AddAccount { email, plan, password, invite }
        }
        AccountCommand::List { .. } => AdminCommand::ListAccounts,
        AccountCommand::SetPlan { email, plan } => AdminCommand::SetPlan { email, plan },
        AccountCommand::Key { email, name, scopes, days } => {
            let scopes = Scopes::of(scopes).unwrap_or(Scopes::ALL);
            let new = name.map(|name| NewKey { name, scopes, days });
            AdminCommand::IssueKey { email, new }
        }
        AccountCommand::SetPassword { email, .. } => {
            AdminCommand::SetPassword { email, password: read_password(input)? }
        }
        AccountCommand::ResetUsage { email, .. } => AdminCommand::ResetUsage { email },
        AccountCommand::Disable { email } => AdminCommand::Disable { email },
        AccountCommand::Export { email, .. } => AdminCommand::ExportAccount { email },
        AccountCommand::Delete { email } => AdminCommand::Delete { email },
        AccountCommand::Restore { email } => AdminCommand::RestoreAccount { email },
    })
}

fn read_password(input: &mut dyn Read) -> anyhow::Result<Secret> {
    let mut text = String::new();
    input
        .take(PASSWORD_BYTES_MAX)
        .read_to_string(&mut text)
        .context("cannot read the password from standard input as UTF-8 text")?;
    // The line break comes from the terminal or `echo`.
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let password = text.strip_suffix('\n').unwrap_or(text);
    let password = password.strip_suffix('\r').unwrap_or(password);
    Ok(Secret::new(password.to_owned()))
}

fn print(
    command: &AdminCommand,
    reply: AdminReply,
    as_json: bool,
    streams: &mut Streams<'_>,
) -> anyhow::Result<()> {
    let Streams { output, notes, .. } = streams;
    match (command, reply) {
        (AdminCommand::AddAccount { email, plan, password, invite }, AdminReply::Added { .. }) => {
            writeln!(output, "added {email} on plan {plan}")?;
            if *invite {
                writeln!(notes, "a link to choose a password was mailed to {email}")?;
            } else if password.is_none() {
                writeln!(
                    notes,
                    "{email} has no password yet: `dropdex account set-password {email}` sets one; with mail, \
                     --invite mails a link to choose one, as does \"Forgot your password?\" on the login page"
                )?;
            }
            writeln!(notes, "`dropdex account key {email}` creates its API key")?;
        }
        (_, AdminReply::Accounts { accounts }) if as_json => {
            serde_json::to_writer_pretty(&mut *output, &accounts)?;
            writeln!(output)?;
        }
        (_, AdminReply::Accounts { accounts }) => print_table(&accounts, *output)?,
        (AdminCommand::SetPlan { email, plan }, AdminReply::Done) => {
            writeln!(output, "{email} is on plan {plan}")?;
        }
        (_, AdminReply::Reset { accounts }) => {
            writeln!(output, "today's allowances begin again; accounts: {accounts}")?;
        }
        (AdminCommand::Disable { email }, AdminReply::Done) => {
            writeln!(output, "{email} is disabled; its key no longer works")?;
        }
        (AdminCommand::Delete { email }, AdminReply::Leaving { at }) => {
            writeln!(output, "{email} is disabled, and is erased on {at}")?;
            writeln!(notes, "until then, `dropdex account restore {email}` keeps it")?;
        }
        (AdminCommand::RestoreAccount { email }, AdminReply::Done) => {
            writeln!(output, "{email} is kept; its keys work again")?;
        }
        (AdminCommand::SetPassword { email, .. }, AdminReply::Done) => {
            writeln!(output, "{email} has a new password; it is logged out everywhere")?;
        }
        (AdminCommand::IssueKey { email, .. }, AdminReply::Key { key, replaced }) => {
            writeln!(output, "{}", key.reveal())?;
            let old = if replaced { " Its old key no longer works." } else { "" };
            writeln!(notes, "the key of {email}, shown this once.{old}")?;
        }
        (_, AdminReply::Refused { error }) => bail!(error),
        (_, _) => return Err(admin_client::unexpected_reply()),
    }
    output.flush().context("cannot write the result")
}

fn print_table(accounts: &[AccountSummary], output: &mut dyn Write) -> io::Result<()> {
    let width = accounts.iter().map(|it| it.email.as_str().chars().count()).max().unwrap_or(0);
    let width = width.max("EMAIL".len());
    writeln!(
        output,
        "{:>6}  {:width$}  PLAN  STATE     CREATED     KEY        REQUESTS  EXPORTS",
        "ID", "EMAIL"
    )?;
    for account in accounts {
        let state = match account.erase_at {
            Some(_) => "deleted",
            None if account.disabled => "disabled",
            None => "active",
        };
        let key = account.key_last4.as_ref().map_or("-".into(), |last4| format!("ddx_…{last4}"));
        writeln!(
            output,
            "{:>6}  {:width$}  {:4}  {state:8}  {}  {key:9}  {:>8}  {:>7}",
            account.id.0,
            account.email.as_str(),
            account.plan.as_str(),
            account.created,
            account.requests_today,
            account.exports_today,
        )?;
    }
    Ok(())
}
