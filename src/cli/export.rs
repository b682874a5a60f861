//! `dropdex export drops`: the CSV export, without HTTP and without a row limit.

use std::io::{self, Write, stdout};
use std::ops::ControlFlow;

use clap::{Args, Subcommand};

use crate::config::Config;
use crate::http::rows::{DROPS_CSV_HEADER, push_drop_csv};
use crate::index::filter::{AsOf, CommonFilter, DropFilter, View};
use crate::index::generation::open;
use crate::vocab::dqs::Dqs;
use crate::vocab::limits::LABEL_CHARS_MAX;
use crate::vocab::query::{QueryError, Substring, fold_tld};
use crate::vocab::stage::Stage;

/// Bytes of rows per write. Smaller writes cost more than their rows.
const WRITE_BYTES: usize = 64 * 1024;

/// Write lists as CSV to standard output, without a running server
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
    /// TLDs, separated by commas
    #[arg(long, value_delimiter = ',')]
    tld: Vec<String>,
    /// Minimum DQS
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=100))]
    min_dqs: u8,
    /// Maximum characters of the label
    #[arg(long, default_value_t = LABEL_CHARS_MAX, value_parser = clap::value_parser!(u8).range(1..=63))]
    max_len: u8,
    /// Text that the name contains
    #[arg(long, value_parser = parse_substring)]
    q: Option<Substring>,
    /// Stage: redemption, pending-delete, catchable or released
    #[arg(long)]
    stage: Option<Stage>,
    /// Stages to list; ignored with --stage
    #[arg(long, value_enum, default_value_t = ViewArg::Active)]
    view: ViewArg,
    /// Maximum rows [default: all]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Rows to skip
    #[arg(long, default_value_t = 0)]
    offset: u32,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum ViewArg {
    Active,
    Today,
    All,
}

fn parse_substring(text: &str) -> Result<Substring, QueryError> {
    Substring::parse(text)
}

impl From<DropsArgs> for DropFilter {
    fn from(args: DropsArgs) -> DropFilter {
        let view = match args.view {
            ViewArg::Active => View::Active,
            ViewArg::Today => View::Today,
            ViewArg::All => View::All,
        };
        DropFilter {
            common: CommonFilter {
                tlds: args.tld.iter().filter_map(|tld| fold_tld(tld)).collect(),
                min_dqs: Dqs::clamped(args.min_dqs.into()),
                max_len: args.max_len,
            },
            view: args.stage.map_or(view, View::Stage),
            contains: args.q,
            limit: args.limit.unwrap_or(u32::MAX),
            offset: args.offset,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// The message to print before exit 1.
pub fn run(args: ExportArgs, config: &Config) -> anyhow::Result<()> {
    let ExportCommand::Drops(args) = args.command;
    let index = open::open_current(&config.index)?.index;
    let as_of = AsOf { today: config.clock.today(), catch_days: config.catch_days };
    let mut out = stdout().lock();
    let mut buffer = DROPS_CSV_HEADER.as_bytes().to_vec();
    let mut written: io::Result<()> = Ok(());
    index.for_each_drop(&args.into(), as_of, |row| {
        push_drop_csv(row, &mut buffer);
        if buffer.len() < WRITE_BYTES {
            return ControlFlow::Continue(());
        }
        written = out.write_all(&buffer);
        buffer.clear();
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    written?;
    out.write_all(&buffer)?;
    out.flush()?;
    Ok(())
}
