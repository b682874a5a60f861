//! Work on lists beside a running server: the server does it, one after the other, and the command
//! prints what came of it. Without a server the command does it itself.

use std::io::{Write, stderr, stdout};
use std::path::PathBuf;

use anyhow::{Context, anyhow};

use crate::cli::ExitWith;
use crate::config::Config;
use crate::workers::admin::{self, AskError, JobCommand, JobReply, Work};

/// Has the server that runs with this data folder do `work`; `None` where there is none, or where it
/// cannot read one of `files`.
///
/// # Errors
/// That of the command, already printed; or the server does not answer.
pub fn run(
    config: &Config,
    work: Work,
    arguments: Vec<String>,
    files: Vec<PathBuf>,
) -> anyhow::Result<Option<()>> {
    let index = std::path::absolute(&config.index).context("the index folder")?;
    let command = JobCommand::Job { work, arguments, files, index, today: config.clock.pinned() };
    let reply = match admin::ask_for_job(&config.data, &command) {
        Ok(reply) => reply,
        Err(AskError::NobodyThere { .. }) => return Ok(None),
        Err(err @ AskError::NoAnswer { .. }) => {
            return Err(err).context(
                "the work may or may not have been done: run the command again, which changes \
                 nothing that is done already",
            );
        }
    };
    match reply {
        JobReply::Finished { code, stdout: out, stderr: said } => {
            stderr().write_all(said.as_bytes())?;
            stdout().write_all(out.as_bytes())?;
            match code {
                Some(0) => Ok(Some(())),
                Some(code) => {
                    let code = u8::try_from(code).unwrap_or(1);
                    Err(ExitWith { code, why: String::new() }.into())
                }
                None => Err(anyhow!("the server's process for it was killed; run it again")),
            }
        }
        JobReply::CannotRead { file } => {
            let file = file.display();
            writeln!(stderr(), "the running server cannot read {file}: it is done here instead")?;
            Ok(None)
        }
        JobReply::Refused { error } => Err(anyhow!(error)),
    }
}

/// Paths that another process understands.
///
/// # Errors
/// One is no UTF-8.
pub fn absolute(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let absolute = |path: &PathBuf| {
        let path = std::path::absolute(path).context("a path")?;
        let shown = path.display();
        anyhow::ensure!(
            path.to_str().is_some(),
            "{shown} is not UTF-8, so the server cannot be told of it: add --here"
        );
        Ok(path)
    };
    paths.iter().map(absolute).collect()
}
