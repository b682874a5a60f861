//! A small HTTP/1.1 client over one keep-alive connection, strict in the responses that it accepts.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

/// Deadline of a response; no response takes this long.
const ANSWER_MAX: Duration = Duration::from_secs(60);
/// Maximum bytes of a head line; the server's longest line is far shorter.
const HEAD_LINE_MAX: u64 = 64 * 1024;

/// RFC 3986 §2.3: the unreserved characters need no escape.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Returns `text` as a path segment or a query value, in UTF-8.
pub fn escape(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}

/// Returns `path?name=value&...` with escaped values.
pub fn with_query(path: &str, parameters: &[(&str, String)]) -> String {
    let pairs: Vec<String> =
        parameters.iter().map(|(name, value)| format!("{name}={}", escape(value))).collect();
    if pairs.is_empty() { path.to_owned() } else { format!("{path}?{}", pairs.join("&")) }
}

/// A complete response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    /// Names in lower case, in the order sent.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    /// Returns the value of a header that must be sent only once; `None` if it was not sent.
    #[track_caller]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(sent, _)| sent == name);
        let first = values.next().map(|(_, value)| value.as_str());
        assert!(values.next().is_none(), "header {name} was sent twice: {:?}", self.headers);
        first
    }

    /// Returns the value of a header that contains an integer; `None` if it was not sent.
    #[track_caller]
    pub fn number(&self, name: &str) -> Option<i64> {
        let value = self.header(name)?;
        Some(value.parse().unwrap_or_else(|_| panic!("{name}: {value} is not a number")))
    }

    /// The body as text.
    #[track_caller]
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("bodies are UTF-8")
    }

    /// Returns the body as JSON; asserts the content type.
    #[track_caller]
    pub fn json(&self) -> Value {
        let kind = self.header("content-type").unwrap_or_default();
        let text = self.text();
        assert!(kind.starts_with("application/json"), "content-type {kind:?}, body {text}");
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// Returns the status and the JSON body, for one comparison.
    #[track_caller]
    pub fn answer(&self) -> (u16, Value) {
        (self.status, self.json())
    }
}

/// One client on one connection at a time.
pub struct Client {
    address: SocketAddr,
    key: Option<String>,
    connection: Option<BufReader<TcpStream>>,
    connections: u32,
}

impl Client {
    /// Creates a client of the server at `address`.
    pub fn new(address: SocketAddr) -> Client {
        Client { address, key: None, connection: None, connections: 0 }
    }

    /// Sends `Authorization: Bearer <key>` with every request from now on.
    pub fn with_key(mut self, key: &str) -> Client {
        self.key = Some(key.to_owned());
        self
    }

    /// Returns the number of connections made so far: 1 while the server keeps the first one open.
    pub fn connections(&self) -> u32 {
        self.connections
    }

    /// Sends a GET request; the path and query are not escaped.
    #[track_caller]
    pub fn get(&mut self, target: &str) -> Response {
        self.request("GET", target, &[])
    }

    /// Sends a request without a body; `target` is not escaped.
    ///
    /// A connection that the server closed while it was idle is replaced once, as RFC 9112 §9.3.1
    /// allows for requests that can be repeated.
    #[track_caller]
    pub fn request(&mut self, method: &str, target: &str, headers: &[(&str, &str)]) -> Response {
        let reused = self.connection.is_some();
        match self.attempt(method, target, headers, None) {
            Ok(response) => response,
            Err(error) if reused && closed_while_idle(&error) => self
                .attempt(method, target, headers, None)
                .unwrap_or_else(|error| panic!("{method} {target}: {error}")),
            Err(error) => panic!("{method} {target}: {error}"),
        }
    }

    /// Sends a request with a JSON body.
    #[track_caller]
    pub fn send(&mut self, method: &str, target: &str, body: &Value) -> Response {
        let kind = [("Content-Type", "application/json")];
        self.send_with(method, target, &kind, body.to_string().as_bytes())
    }

    /// Sends a request with a body and more headers.
    #[track_caller]
    pub fn send_with(
        &mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Response {
        self.try_send(method, target, headers, body)
            .unwrap_or_else(|error| panic!("{method} {target}: {error}"))
    }

    /// As [`Client::send_with`], for tests that kill the server. Never repeats the request: after an error
    /// its effect is unknown.
    pub fn try_send(
        &mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Response> {
        self.attempt(method, target, headers, Some(body))
    }

    /// As [`Client::request`], for tests that kill the server. Never repeats the request.
    pub fn try_request(
        &mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
    ) -> io::Result<Response> {
        self.attempt(method, target, headers, None)
    }

    fn attempt(
        &mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
    ) -> io::Result<Response> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connect()?,
        };
        let mut head = format!("{method} {target} HTTP/1.1\r\nHost: {}\r\n", self.address);
        if let Some(key) = &self.key {
            head.push_str(&format!("Authorization: Bearer {key}\r\n"));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(body) = body {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        let mut request = head.into_bytes();
        request.extend_from_slice(body.unwrap_or_default());
        connection.get_mut().write_all(&request)?;
        let response = read_response(&mut connection, method == "HEAD")?;
        let close = response.header("connection").is_some_and(|value| value == "close");
        if !close {
            self.connection = Some(connection);
        }
        Ok(response)
    }

    fn connect(&mut self) -> io::Result<BufReader<TcpStream>> {
        let stream = TcpStream::connect_timeout(&self.address, ANSWER_MAX)?;
        stream.set_read_timeout(Some(ANSWER_MAX))?;
        stream.set_write_timeout(Some(ANSWER_MAX))?;
        stream.set_nodelay(true)?;
        self.connections += 1;
        Ok(BufReader::new(stream))
    }
}

fn closed_while_idle(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected)
}

fn read_response(from: &mut impl BufRead, head_only: bool) -> io::Result<Response> {
    let status_line = read_line(from)?;
    let status = status_line
        .strip_prefix("HTTP/1.1 ")
        .and_then(|rest| rest.get(..3))
        .and_then(|code| code.parse().ok())
        .ok_or_else(|| broken(format!("status line {status_line:?}")))?;
    let mut headers = Vec::new();
    loop {
        let line = read_line(from)?;
        if line.is_empty() {
            break;
        }
        let (name, value) =
            line.split_once(':').ok_or_else(|| broken(format!("header line {line:?}")))?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut response = Response { status, headers, body: Vec::new() };
    if !head_only && status != 204 && status != 304 {
        response.body = read_body(from, &response)?;
    }
    Ok(response)
}

fn read_body(from: &mut impl BufRead, head: &Response) -> io::Result<Vec<u8>> {
    match (head.header("transfer-encoding"), head.header("content-length")) {
        (Some("chunked"), None) => read_chunks(from),
        (None, Some(length)) => {
            let length = length.parse().map_err(|_| broken(format!("content-length {length}")))?;
            read_exactly(from, length)
        }
        (encoding, length) => {
            Err(broken(format!("transfer-encoding {encoding:?}, content-length {length:?}")))
        }
    }
}

fn read_chunks(from: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = read_line(from)?;
        let size = line.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(size, 16).map_err(|_| broken(format!("chunk {line:?}")))?;
        if size == 0 {
            // Trailers, if any, up to the empty line.
            while !read_line(from)?.is_empty() {}
            return Ok(body);
        }
        body.extend(read_exactly(from, size)?);
        let end = read_line(from)?;
        if !end.is_empty() {
            return Err(broken(format!("{end:?} after a chunk")));
        }
    }
}

fn read_exactly(from: &mut impl BufRead, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = from.take(length).read_to_end(&mut bytes)? as u64;
    if read == length { Ok(bytes) } else { Err(broken(format!("{read} of {length} bytes"))) }
}

/// Reads a line without its CRLF. An end before the first byte means that the connection was closed
/// while idle.
fn read_line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = Vec::new();
    from.take(HEAD_LINE_MAX).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Err(io::ErrorKind::ConnectionAborted.into());
    }
    let text = line.strip_suffix(b"\r\n").ok_or_else(|| broken(format!("line {line:?}")))?;
    String::from_utf8(text.to_vec()).map_err(|_| broken("a head line is not UTF-8".into()))
}

fn broken(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &str, head_only: bool) -> io::Result<(u16, Vec<u8>, String)> {
        let mut from = BufReader::new(bytes.as_bytes());
        let response = read_response(&mut from, head_only)?;
        let mut rest = String::new();
        from.read_to_string(&mut rest)?;
        Ok((response.status, response.body, rest))
    }

    #[test]
    fn bodies_end_where_the_head_says() {
        let next = "HTTP/1.1 204 No Content\r\n\r\n";
        for (bytes, head_only, body) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", false, "abc"),
            ("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n", true, ""),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n\
                 0\r\nTrailer: 1\r\n\r\n",
                false,
                "abcde",
            ),
        ] {
            let whole = format!("{bytes}{next}");
            let (status, got, rest) = read(&whole, head_only).expect("well formed");
            assert_eq!((status, got.as_slice(), rest.as_str()), (200, body.as_bytes(), next));
        }
    }

    #[test]
    fn malformed_responses_are_refused() {
        for bytes in [
            "",
            "HTTP/1.1 200 OK\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        ] {
            assert!(read(bytes, false).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn values_are_escaped_by_byte() {
        let target = with_query("/p", &[("q", "mü &+%".into()), ("tld", "co.uk,рф".into())]);
        assert_eq!(target, "/p?q=m%C3%BC%20%26%2B%25&tld=co.uk%2C%D1%80%D1%84");
        assert_eq!(with_query("/p", &[]), "/p");
    }
}
