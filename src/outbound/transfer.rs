//! Zone transfers (AXFR, RFC 5936), signed with TSIG (RFC 8945) where the server wants that.
//!
//! The received records are written as a zone file. It is then read and checked for completeness
//! like a downloaded file. Only records of delegations are kept.

use std::io::{self, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hickory_proto::op::{DnsResponse, Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::tsig::TsigAlgorithm;
use hickory_proto::rr::{Name, RData, Record, RecordType, TSigVerifier, TSigner};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Deadline of the connection, and of each message.
const IDLE_MAX: Duration = Duration::from_secs(60);
/// Clocks of client and server may differ by this (RFC 8945 §10).
const FUDGE: Duration = Duration::from_secs(300);
/// Messages are numbered per connection; there is one request on it.
const REQUEST_ID: u16 = 1;

/// A key that client and server share.
#[derive(Clone)]
pub struct TransferKey(TSigner);

impl TransferKey {
    /// A key by its name, algorithm (`hmac-sha256`, `hmac-sha384`, `hmac-sha512`) and secret bytes.
    ///
    /// # Errors
    /// The fault of the key as text, without the secret.
    pub fn new(name: &str, algorithm: &str, secret: Vec<u8>) -> Result<TransferKey, String> {
        let algorithm = match algorithm {
            "hmac-sha256" => TsigAlgorithm::HmacSha256,
            "hmac-sha384" => TsigAlgorithm::HmacSha384,
            "hmac-sha512" => TsigAlgorithm::HmacSha512,
            other => {
                return Err(format!(
                    "`{other}` is no algorithm: hmac-sha256, hmac-sha384 or hmac-sha512"
                ));
            }
        };
        let name = Name::from_ascii(name).map_err(|_| format!("`{name}` is no name of a key"))?;
        let signer = TSigner::new(secret, algorithm, name, FUDGE.as_secs() as u16);
        signer.map(TransferKey).map_err(|error| error.to_string())
    }
}

/// Why a zone was not transferred.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    #[error("`{0}` is no name of a zone")]
    ZoneName(String),
    #[error("cannot connect to {server}: {source}")]
    Connect { server: String, source: io::Error },
    #[error("the server sent nothing for {} s", IDLE_MAX.as_secs())]
    Timeout,
    #[error("the connection ended in the middle of the transfer: {0}; try again later")]
    Ended(io::Error),
    #[error(
        "the server refuses to transfer the zone ({0}); ask the registry whether it publishes the zone, and how"
    )]
    Refused(ResponseCode),
    #[error(
        "the server does not know the key, or its secret is another; see the registry's page for the present one"
    )]
    Key,
    #[error("a message of the server is malformed or not signed as it should be: {0}")]
    Message(String),
    #[error("cannot write the zone file: {0}")]
    Write(io::Error),
}

/// A connection to a server of a zone.
pub struct Transfer {
    stream: TcpStream,
    zone: Name,
    key: Option<TransferKey>,
}

impl Transfer {
    /// Connects to a server (`zone.internet.ee:53`).
    ///
    /// # Errors
    /// No zone has that name, or there is no connection.
    pub async fn connect(
        server: &str,
        zone: &str,
        key: Option<TransferKey>,
    ) -> Result<Transfer, TransferError> {
        let name = Name::from_ascii(zone).ok().filter(|name| !name.is_root());
        let mut zone = name.ok_or_else(|| TransferError::ZoneName(zone.to_owned()))?;
        zone.set_fqdn(true);
        let connected = timeout(IDLE_MAX, TcpStream::connect(server)).await;
        let stream = connected.map_err(|_| TransferError::Timeout)?;
        let server = server.to_owned();
        let stream = stream.map_err(|source| TransferError::Connect { server, source })?;
        Ok(Transfer { stream, zone, key })
    }

    /// Serial number of the zone. A zone whose number is known has nothing new.
    ///
    /// # Errors
    /// See [`TransferError`].
    pub async fn serial(&mut self) -> Result<u32, TransferError> {
        let mut verifier = self.ask(RecordType::SOA).await?;
        let answer = self.receive(verifier.as_mut()).await?;
        let serial = answer.answers.iter().find_map(|record| match &record.data {
            RData::SOA(soa) => Some(soa.serial),
            _ => None,
        });
        serial.ok_or_else(|| TransferError::Message("no SOA record".to_owned()))
    }

    /// Transfers the zone and writes it as a zone file. Ends the connection.
    ///
    /// # Errors
    /// See [`TransferError`]. What was written is then no whole zone file.
    pub async fn run(mut self, into: &mut (impl Write + Send)) -> Result<(), TransferError> {
        let mut verifier = self.ask(RecordType::AXFR).await?;
        let mut soas = 0;
        while soas < 2 {
            let answer = self.receive(verifier.as_mut()).await?;
            for record in &answer.answers {
                soas += u8::from(record.record_type() == RecordType::SOA);
                write_record(into, record).map_err(TransferError::Write)?;
            }
            if soas == 0 {
                return Err(TransferError::Message("no SOA record at the start".to_owned()));
            }
        }
        into.flush().map_err(TransferError::Write)
    }

    /// Sends a question; returns what checks the signatures of the answers.
    async fn ask(&mut self, what: RecordType) -> Result<Option<TSigVerifier>, TransferError> {
        let malformed =
            |error: hickory_proto::ProtoError| TransferError::Message(error.to_string());
        let mut message = Message::new(REQUEST_ID, MessageType::Query, OpCode::Query);
        message.add_query(Query::query(self.zone.clone(), what));
        let verifier = match &self.key {
            Some(TransferKey(signer)) => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                message.finalize(signer, now.as_secs()).map_err(malformed)?
            }
            None => None,
        };
        let bytes = message.to_vec().map_err(malformed)?;
        let mut framed = (bytes.len() as u16).to_be_bytes().to_vec();
        framed.extend(bytes);
        let sent = timeout(IDLE_MAX, self.stream.write_all(&framed)).await;
        sent.map_err(|_| TransferError::Timeout)?.map_err(TransferError::Ended)?;
        Ok(verifier)
    }

    async fn receive(
        &mut self,
        verifier: Option<&mut TSigVerifier>,
    ) -> Result<DnsResponse, TransferError> {
        let malformed = |error: String| TransferError::Message(error);
        let read = async {
            let length = self.stream.read_u16().await?;
            let mut bytes = vec![0; length.into()];
            self.stream.read_exact(&mut bytes).await.map(|_| bytes)
        };
        let bytes = timeout(IDLE_MAX, read).await.map_err(|_| TransferError::Timeout)?;
        let bytes = bytes.map_err(TransferError::Ended)?;
        // A refusal is not signed when the server does not know the key.
        let message = Message::from_vec(&bytes).map_err(|error| malformed(error.to_string()))?;
        match message.response_code {
            ResponseCode::NoError => {}
            ResponseCode::NotAuth if verifier.is_some() => return Err(TransferError::Key),
            code => return Err(TransferError::Refused(code)),
        }
        if message.id != REQUEST_ID || message.message_type != MessageType::Response {
            return Err(malformed("it answers another question".to_owned()));
        }
        match verifier {
            Some(verifier) => verifier.verify(&bytes).map_err(|error| malformed(error.to_string())),
            None => DnsResponse::from_buffer(bytes).map_err(|error| malformed(error.to_string())),
        }
    }
}

/// Writes a record that delegates, or opens and closes the zone.
fn write_record(into: &mut impl Write, record: &Record) -> io::Result<()> {
    if !matches!(record.data, RData::SOA(_) | RData::NS(_)) {
        return Ok(());
    }
    let (kind, owner) = (record.record_type(), record.name.to_ascii());
    writeln!(into, "{owner}\t{}\tin\t{kind}\t{}", record.ttl, record.data)
}
