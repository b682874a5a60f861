//! A mail server that keeps the mails that it accepts.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// An accepted mail.
pub struct Mail {
    pub to: String,
    pub text: String,
}

/// A minimal mail server that accepts mails.
pub struct Mailbox {
    address: SocketAddr,
    mails: Receiver<Mail>,
}

impl Mailbox {
    pub fn new() -> Mailbox {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (sender, mails) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // If a client disconnects, its mail is discarded.
                let _ = converse(stream, &sender);
            }
        });
        Mailbox { address, mails }
    }

    /// Returns settings of a server that sends its mail here; `others` are appended to the section.
    pub fn settings(&self, others: &str) -> String {
        format!(
            "public_url = \"https://drops.example.net\"\n{others}[smtp]\nhost = \"127.0.0.1\"\nport = {}\n\
             tls = \"none\"\nfrom = \"drops@example.net\"\n",
            self.address.port()
        )
    }

    /// Waits for the next mail.
    pub fn next(&self) -> Mail {
        self.mails.recv_timeout(Duration::from_secs(30)).expect("a mail")
    }

    /// Whether no mail has arrived.
    pub fn is_empty(&self) -> bool {
        self.mails.try_recv().is_err()
    }
}

fn converse(stream: TcpStream, mails: &Sender<Mail>) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let mut out = stream;
    let mut to = String::new();
    out.write_all(b"220 mail.example.net\r\n")?;
    while let Some(line) = lines.next().transpose()? {
        let answer = match line.get(..4).unwrap_or_default().to_ascii_uppercase().as_str() {
            "RCPT" => {
                to = line;
                "250 ok"
            }
            "DATA" => {
                out.write_all(b"354 go on\r\n")?;
                let body = lines.by_ref().map_while(Result::ok).take_while(|line| line != ".");
                let text = body.map(|line| line + "\n").collect::<String>().replace("=\n", "");
                let _ = mails.send(Mail { to: std::mem::take(&mut to), text });
                "250 taken"
            }
            "QUIT" => "221 bye",
            _ => "250 ok",
        };
        out.write_all(format!("{answer}\r\n").as_bytes())?;
    }
    Ok(())
}
