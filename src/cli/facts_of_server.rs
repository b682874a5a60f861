//! `dropdex facts add`, `list` and `remove`: the sources of facts that all accounts of a server see. A running
//! server notices changes of their files within seconds.

use std::fs;
use std::io::{Write, stdout};
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;

use crate::config::Config;
use crate::facts::compile::{Rights, compile};
use crate::facts::published::FactsFolder;
use crate::facts::store::Licence;
use crate::facts::{Choices, DateOrder, FactsFile, Mapping};
use crate::nodes;
use crate::service::fact_book::FactBook;
use crate::vocab::money::Currency;

#[derive(Args, Debug)]
pub struct AddArgs {
    /// CSV files, separated by commas, semicolons or tabs
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Order of day and month in columns that do not show it: dmy or mdy
    #[arg(long, value_name = "ORDER")]
    date_order: Option<DateOrder>,
    /// Currency of amounts that state none, such as USD
    #[arg(long, value_name = "CODE", value_parser = super::parse_currency)]
    currency: Option<Currency>,
    /// Columns of the files with one header, as for `facts inspect`
    #[arg(long, value_name = "MAPPING")]
    map: Vec<Mapping>,
    /// Licence of the values: open, share-alike or own
    ///
    /// Exports of link and keyword tools are licensed to the person who made them. They are refused without this
    /// option; state one that your contract permits.
    #[arg(long, value_name = "LICENCE")]
    licence: Option<Licence>,
    /// Line to be shown beside the values
    #[arg(long, value_name = "TEXT")]
    attribution: Option<String>,
}

/// Refuses a change on a node of a cluster whose facts are those that it fetched: its next fetch would undo it.
fn check_leads(config: &Config) -> anyhow::Result<()> {
    if config.cluster.is_some() && nodes::has_files_of_the_leader(&config.data) {
        bail!(
            "this node has the facts of the node that leads; run the command there (`dropdex cluster status` shows \
             which one leads)"
        );
    }
    Ok(())
}

/// Adds files to the sources of the server.
///
/// # Errors
/// The message to print before exit 1.
pub fn add(args: AddArgs, config: &Config) -> anyhow::Result<()> {
    check_leads(config)?;
    let folder = FactsFolder::new(&config.data);
    let choices =
        Choices { date_order: args.date_order, currency: args.currency, ..Choices::default() };
    let rights = Rights { licence: args.licence, attribution: args.attribution };
    for path in &args.files {
        let shown = path.display();
        let file = FactsFile::open(path, &args.map, choices).with_context(|| shown.to_string())?;
        let refused = file.report.refused_rows;
        let sources = FactBook::new(&config.data, usize::MAX).server_sources();
        let before =
            |id: &str| sources.iter().find(|it| it.name() == id).map(|source| &source.edition);
        let all = compile(file, config.clock.today(), &rights, before);
        for compiled in all.with_context(|| shown.to_string())? {
            if args.licence.is_none() && compiled.meta.licence == Licence::Vendor {
                bail!(
                    "{shown}: {} licenses its exports to the person who made them; add the file to your own \
                     account, or state what your contract permits with --licence own",
                    compiled.meta.title
                );
            }
            folder.put(&compiled.meta.id, &compiled.bytes)?;
            let (id, rows, new) = (&compiled.meta.id, compiled.rows, compiled.from_file);
            writeln!(
                stdout(),
                "{id}: {rows} rows, {new} of them from {shown}; refused: {refused}"
            )?;
        }
    }
    Ok(())
}

/// Lists the sources of the server.
///
/// # Errors
/// The message to print before exit 1.
pub fn list(config: &Config) -> anyhow::Result<()> {
    let book = FactBook::new(&config.data, usize::MAX);
    let mut out = stdout().lock();
    for source in book.server_sources() {
        let meta = source.edition.meta();
        let columns = meta.columns.iter().map(|column| column.name.as_str());
        let columns = columns.collect::<Vec<_>>().join(", ");
        let (rows, as_of, licence) = (source.edition.rows(), meta.as_of, meta.licence);
        writeln!(out, "{}  {rows} rows  {as_of}  {licence}  {columns}", meta.id)?;
    }
    for (path, problem) in book.problems() {
        writeln!(out, "{}: {problem}", path.display())?;
    }
    Ok(())
}

/// Removes a source of the server.
///
/// # Errors
/// No source has this name.
pub fn remove(source: &str, config: &Config) -> anyhow::Result<()> {
    check_leads(config)?;
    let path = FactsFolder::new(&config.data).edition(source);
    if !crate::vocab::fact::is_part(source) || !path.is_file() {
        bail!("there is no source {source}; `dropdex facts list` lists them");
    }
    fs::remove_file(&path).with_context(|| path.display().to_string())
}
