//! `dropdex export drops`: the export of the drops list, without HTTP and without a row limit.

use std::io::{self, Write, stdout};
use std::sync::LazyLock;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, Subcommand};

use crate::config::Config;
use crate::http::export::export_lines;
use crate::http::fact_rows::exported;
use crate::http::operations::EXPORT_OPTIONS;
use crate::index::filter::{AsOf, DropFilter};
use crate::index::generation::open;
use crate::query::error::BadParameter;
use crate::query::params::{Limits, Params};
use crate::service::fact_book::FactBook;

/// Bytes of rows per write; smaller writes would cost more than producing the rows.
const WRITE_BYTES: usize = 64 * 1024;

/// Write lists to standard output, without a running server
#[derive(Args, Debug)]
pub struct ExportArgs {
    #[command(subcommand)]
    command: ExportCommand,
}

#[derive(Subcommand, Debug)]
enum ExportCommand {
    /// The drops list, best first, with the filters of GET /api/v1/drops and no row limit
    Drops(DropsArgs),
}

#[derive(Args, Debug)]
struct DropsArgs {
    #[command(flatten)]
    filters: FilterArgs,
    /// Maximum rows [default: all]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Rows to skip
    #[arg(long, default_value_t = 0)]
    offset: u32,
}

/// Option names of [`EXPORT_OPTIONS`].
static OPTIONS: LazyLock<Vec<String>> = LazyLock::new(|| {
    EXPORT_OPTIONS.iter().map(|parameter| parameter.name.replace('_', "-")).collect()
});

/// Values of API parameters that are given as options. The options are generated from the API's
/// table of parameters, and the API's parser reads the values.
#[derive(Debug)]
struct FilterArgs(Vec<(&'static str, String)>);

impl Args for FilterArgs {
    fn augment_args(command: Command) -> Command {
        command.args(EXPORT_OPTIONS.iter().zip(OPTIONS.iter()).map(|(parameter, option)| {
            Arg::new(parameter.name)
                .long(option.as_str())
                .help(parameter.description)
                .allow_hyphen_values(true)
                .action(ArgAction::Append)
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        FilterArgs::augment_args(command)
    }
}

impl FromArgMatches for FilterArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<FilterArgs, clap::Error> {
        let sent = EXPORT_OPTIONS.iter().filter_map(|parameter| {
            let values = matches.get_many::<String>(parameter.name)?;
            Some((parameter.name, values.map(String::as_str).collect::<Vec<_>>().join(",")))
        });
        Ok(FilterArgs(sent.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = FilterArgs::from_arg_matches(matches)?;
        Ok(())
    }
}

impl DropsArgs {
    fn pairs(&self) -> Vec<(&str, &str)> {
        self.filters.0.iter().map(|(name, value)| (*name, value.as_str())).collect()
    }
}

/// Reports an error of the API's parser as a command-line error, and exits.
fn usage(err: BadParameter) -> ! {
    let message = format!("--{}: {}\n", err.name.replace('_', "-"), err.what);
    clap::Error::raw(ErrorKind::ValueValidation, message).exit()
}

/// Runs the command.
///
/// # Errors
/// The message to print before exit 1.
pub fn run(args: ExportArgs, config: &Config) -> anyhow::Result<()> {
    let ExportCommand::Drops(args) = args.command;
    let as_of = AsOf { today: config.clock.today(), catch_days: config.catch_days };
    let pairs = args.pairs();
    let params = Params::from_pairs(&pairs);
    let limits = Limits { default: u32::MAX, max: u32::MAX };
    let filter = params.drops(limits, as_of.today).unwrap_or_else(|err| usage(err));
    let (limit, offset) = (args.limit.unwrap_or(u32::MAX), args.offset);
    let mut filter = DropFilter { limit, offset, ..filter };
    let book = FactBook::new(&config.data, usize::MAX);
    let visible = book.visible(None);
    let used = visible.resolve_drops(&mut filter, as_of.today).unwrap_or_else(|err| usage(err));
    let facts = params.fact_names().and_then(|names| visible.shown(&names));
    let facts = exported(facts.unwrap_or_else(|err| usage(err)))?;
    let (_, header, line) = export_lines(&params, facts).unwrap_or_else(|err| usage(err));
    let index = open::open_current(&config.index)?.index;
    book.join(&index, &used)?;
    let mut out = stdout().lock();
    let mut buffer = header.as_bytes().to_vec();
    let mut written: io::Result<()> = Ok(());
    let places = match config.sources.export_internal {
        true => index.drop_places(&filter, as_of),
        false => index.exported_places(&filter, as_of),
    }?;
    index.shape_drops(&places, as_of, |_, row| {
        line(row, &mut buffer);
        if buffer.len() >= WRITE_BYTES && written.is_ok() {
            written = out.write_all(&buffer);
            buffer.clear();
        }
    });
    written?;
    out.write_all(&buffer)?;
    out.flush()?;
    Ok(())
}
