//! The limit of the HTTP library: a route of static bytes in a process of its own, with no middleware.

use std::env;
use std::io::{BufRead, BufReader, Write, stdout};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use anyhow::Context;
use axum::Router;
use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use crate::server::json_of;

/// Path of the only route.
pub const PATH: &str = "/bare";

/// Serves a JSON string of this many bytes until the process is killed. Prints the address.
///
/// # Errors
/// There is no free port.
pub fn serve(bytes: usize) -> anyhow::Result<()> {
    let body = Bytes::from(json_of(bytes));
    let respond = move || async move { ([(CONTENT_TYPE, "application/json")], body) };
    let router = Router::new().route(PATH, get(respond));
    Runtime::new()?.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let mut out = stdout().lock();
        writeln!(out, "{}", listener.local_addr()?)?;
        out.flush()?;
        axum::serve(listener, router).await
    })?;
    Ok(())
}

/// A process that runs [`serve`]; dropping it kills the process.
pub struct Bare {
    child: Child,
    pub address: SocketAddr,
}

impl Bare {
    /// # Errors
    /// The process does not start.
    pub fn start(bytes: usize) -> anyhow::Result<Bare> {
        let mut command = Command::new(env::current_exe()?);
        command.args(["bare", "--bytes", &bytes.to_string()]).stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start the bare route")?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("its output is piped")?).read_line(&mut line)?;
        let address = line.trim().parse().context("the bare route did not start")?;
        Ok(Bare { child, address })
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
