//! A WHOIS server on loopback (RFC 3912): reads one line, sends the answer, closes.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// The server; it runs until the test ends.
#[derive(Clone)]
pub struct WhoisServer {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    says: HashMap<String, &'static str>,
    asked: Vec<String>,
}

impl WhoisServer {
    pub fn start() -> WhoisServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let server = WhoisServer { address, state: Arc::default() };
        let served = server.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { continue };
                let mut line = String::new();
                if BufReader::new(&stream).read_line(&mut line).is_err() {
                    continue;
                }
                let mut state = served.state();
                let answer = state.says.get(line.trim_end()).copied().unwrap_or("");
                state.asked.push(line);
                drop(state);
                // The client may have closed the connection.
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        server
    }

    /// Sets the answer to a query.
    pub fn say(&self, query: &str, answer: &'static str) {
        self.state().says.insert(query.to_owned(), answer);
    }

    /// Returns the lines that were received.
    pub fn asked(&self) -> Vec<String> {
        self.state().asked.clone()
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
