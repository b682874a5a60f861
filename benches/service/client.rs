//! Sends requests one by one over one connection, to read their bodies; `wrk` generates the load.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};

use anyhow::{Context, ensure};

/// Requests each of `targets` once, in order; `visit` gets the index and the body of each response.
///
/// # Errors
///
/// The connection fails, a response has another status than 200, or `visit` fails.
pub fn ask_each(
    address: SocketAddr,
    key: &str,
    targets: &[String],
    mut visit: impl FnMut(usize, &[u8]) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let stream = TcpStream::connect(address).context("cannot connect to the server")?;
    stream.set_nodelay(true).context("cannot set TCP_NODELAY")?;
    let mut answers = BufReader::new(stream);
    for (at, target) in targets.iter().enumerate() {
        let request = format!(
            "GET {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\r\n"
        );
        answers.get_mut().write_all(request.as_bytes()).context("sending a request")?;
        let body = read_answer(&mut answers).with_context(|| target.clone())?;
        visit(at, &body)?;
    }
    Ok(())
}

fn read_answer(answers: &mut impl BufRead) -> anyhow::Result<Vec<u8>> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        ensure!(answers.read_line(&mut head)? > 0, "the server closed a connection");
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let mut body = vec![0; length.with_context(|| format!("no length in the head\n{head}"))?];
    answers.read_exact(&mut body)?;
    let text = || String::from_utf8_lossy(&body);
    ensure!(head.starts_with("HTTP/1.1 200 "), "is not 200:\n{head}{}", text());
    Ok(body)
}
