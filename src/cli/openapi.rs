//! `dropdex openapi`: the OpenAPI document, without a running server.

use std::io::{Write, stdout};

use clap::Args;

use crate::http::operations::document;

/// Print the OpenAPI document of the API to standard output
#[derive(Args, Debug)]
pub struct OpenapiArgs {}

/// Prints the document.
///
/// # Errors
/// Standard output is closed.
pub fn run(_: OpenapiArgs) -> anyhow::Result<()> {
    let mut out = stdout().lock();
    serde_json::to_writer_pretty(&mut out, document())?;
    writeln!(out)?;
    out.flush()?;
    Ok(())
}
