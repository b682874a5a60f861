//! Zone transfers (AXFR, RFC 5936), signed with TSIG (RFC 8945) if the server requires it.
//!
//! The received records are written to a zone file, which is then checked for completeness like a
//! downloaded one. Only records of delegations are kept. Bytes and time are bounded.

use std::io::{self, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hickory_proto::ProtoError;
use hickory_proto::op::{Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::tsig::{TsigAlgorithm, TsigError};
use hickory_proto::rr::{Name, RData, Record, RecordType, TSigner};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use url::Host;

use crate::http::{CallError, Client};
use crate::rate::{LeastRate, TooSlow};

use signatures::Signatures;

mod signatures;
#[cfg(test)]
mod tests;

/// Deadline of each message.
const IDLE_MAX: Duration = Duration::from_secs(60);
/// Window over which the rate of a transfer is checked.
const RATE_WINDOW: Duration = Duration::from_secs(60);
/// Maximum difference between the clocks of client and server (RFC 8945 §10).
const FUDGE: Duration = Duration::from_secs(300);
/// Message ID of requests; a constant suffices, because a connection has only one request at a
/// time.
const REQUEST_ID: u16 = 1;

/// A key shared by client and server.
#[derive(Clone)]
pub struct TransferKey(TSigner);

impl TransferKey {
    /// Creates a key from its name, algorithm (`hmac-sha256`, `hmac-sha384`, `hmac-sha512`) and
    /// secret bytes.
    ///
    /// # Errors
    /// A description of the fault, without the secret.
    pub fn new(name: &str, algorithm: &str, secret: Vec<u8>) -> Result<TransferKey, String> {
        let algorithm = match algorithm {
            "hmac-sha256" => TsigAlgorithm::HmacSha256,
            "hmac-sha384" => TsigAlgorithm::HmacSha384,
            "hmac-sha512" => TsigAlgorithm::HmacSha512,
            other => {
                return Err(format!(
                    "`{other}` is not an algorithm: hmac-sha256, hmac-sha384 or hmac-sha512"
                ));
            }
        };
        let name =
            Name::from_ascii(name).map_err(|_| format!("`{name}` is not the name of a key"))?;
        let signer = TSigner::new(secret, algorithm, name, FUDGE.as_secs() as u16);
        signer.map(TransferKey).map_err(|error| error.to_string())
    }
}

/// Why a zone was not transferred.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    #[error("`{0}` is not the name of a zone")]
    ZoneName(String),
    #[error("cannot connect to {server}: {source}")]
    Connect { server: String, source: CallError },
    #[error("the server sent nothing for {} s", IDLE_MAX.as_secs())]
    Timeout,
    #[error(transparent)]
    Slow(#[from] TooSlow),
    #[error(
        "the zone has more than {0} bytes, the limit; raise `max_mib` in the settings if it is that large"
    )]
    TooLarge(u64),
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
    #[error(
        "the clocks of the server and of this machine differ by more than {} s; set the clock of this machine",
        FUDGE.as_secs()
    )]
    Clock,
    #[error("a message of the server is malformed or not signed as it should be: {0}")]
    Message(String),
    #[error("the server sent a record of `{owner}`, which is outside the zone `{zone}`")]
    OutsideZone { owner: String, zone: String },
    #[error("cannot write the zone file: {0}")]
    Write(io::Error),
}

impl From<ProtoError> for TransferError {
    fn from(error: ProtoError) -> TransferError {
        TransferError::Message(error.to_string())
    }
}

/// A connection to a name server of a zone.
pub struct Transfer {
    stream: TcpStream,
    zone: Name,
    key: Option<TransferKey>,
    /// Maximum bytes to receive, and to write.
    max_bytes: u64,
    received: u64,
    rate: LeastRate,
}

impl Transfer {
    /// Connects to a server (`zone.internet.ee`, 53) through the guard of `client`. Receives at most
    /// `max_bytes`.
    ///
    /// # Errors
    /// `zone` is not a valid name, the guard refuses the address, or no connection can be made.
    pub async fn connect(
        client: &Client,
        (host, port): (&str, u16),
        zone: &str,
        key: Option<TransferKey>,
        max_bytes: u64,
    ) -> Result<Transfer, TransferError> {
        let name = Name::from_ascii(zone).ok().filter(|name| !name.is_root());
        let mut zone = name.ok_or_else(|| TransferError::ZoneName(zone.to_owned()))?;
        zone.set_fqdn(true);
        let failed = |source| TransferError::Connect { server: format!("{host}:{port}"), source };
        let parsed =
            Host::parse(host).map_err(|error| failed(CallError::BadRequest(error.to_string())))?;
        let stream = client.dial(&parsed, port).await.map_err(failed)?;
        let rate = LeastRate::new(RATE_WINDOW);
        Ok(Transfer { stream, zone, key, max_bytes, received: 0, rate })
    }

    /// Queries the serial number of the zone. If the serial number is already known, the zone has
    /// not changed.
    ///
    /// # Errors
    /// See [`TransferError`].
    pub async fn serial(&mut self) -> Result<u32, TransferError> {
        let mut signatures = self.ask(RecordType::SOA).await?;
        let answer = self.receive(signatures.as_mut()).await?;
        if let Some(signatures) = &signatures {
            signatures.check_end()?;
        }
        let serial = answer.answers.iter().find_map(|record| match &record.data {
            RData::SOA(soa) => Some(soa.serial),
            _ => None,
        });
        serial.ok_or_else(|| TransferError::Message("no SOA record".to_owned()))
    }

    /// Transfers the zone and writes it as a zone file. Ends the connection.
    ///
    /// # Errors
    /// See [`TransferError`]. The written file is then incomplete.
    pub async fn run(mut self, into: &mut (impl Write + Send)) -> Result<(), TransferError> {
        let malformed = |what: &str| TransferError::Message(what.to_owned());
        let mut signatures = self.ask(RecordType::AXFR).await?;
        let mut opening: Option<RData> = None;
        let (mut is_closed, mut written) = (false, 0);
        while !is_closed {
            let answer = self.receive(signatures.as_mut()).await?;
            for record in &answer.answers {
                let is_soa = record.record_type() == RecordType::SOA;
                match &opening {
                    _ if is_closed => return Err(malformed("records after the end of the zone")),
                    None if !is_soa => return Err(malformed("no SOA record at the start")),
                    None => opening = Some(record.data.clone()),
                    Some(opening) if is_soa && *opening != record.data => {
                        return Err(malformed(
                            "the SOA record at the end is not that at the start",
                        ));
                    }
                    Some(_) => is_closed = is_soa,
                }
                written += self.write(into, record)?;
                if written > self.max_bytes {
                    return Err(TransferError::TooLarge(self.max_bytes));
                }
            }
            if opening.is_none() {
                return Err(malformed("no SOA record at the start"));
            }
        }
        if let Some(signatures) = &signatures {
            signatures.check_end()?;
        }
        into.flush().map_err(TransferError::Write)
    }

    /// Writes an NS record, or the SOA record at the start and end of the zone. Returns the bytes
    /// written. Skips other records, and glue outside the zone.
    fn write(&self, into: &mut impl Write, record: &Record) -> Result<u64, TransferError> {
        let is_within = match &record.data {
            RData::SOA(_) => record.name == self.zone,
            RData::NS(_) => self.zone.zone_of(&record.name),
            _ => return Ok(0),
        };
        let owner = record.name.to_ascii();
        if !is_within {
            return Err(TransferError::OutsideZone { owner, zone: self.zone.to_ascii() });
        }
        let line =
            format!("{owner}\t{}\tin\t{}\t{}\n", record.ttl, record.record_type(), record.data);
        into.write_all(line.as_bytes()).map_err(TransferError::Write)?;
        Ok(line.len() as u64)
    }

    /// Sends a query. Returns the verifier of the response's signatures.
    async fn ask(&mut self, what: RecordType) -> Result<Option<Signatures>, TransferError> {
        let mut message = Message::new(REQUEST_ID, MessageType::Query, OpCode::Query);
        message.add_query(Query::query(self.zone.clone(), what));
        let signatures = match &self.key {
            Some(TransferKey(signer)) => {
                message.finalize(signer, now())?;
                let signature = message.signature().map(|record| record.data.mac.clone());
                Some(Signatures::of_response(signer.clone(), signature.unwrap_or_default()))
            }
            None => None,
        };
        let bytes = message.to_vec()?;
        let mut framed = (bytes.len() as u16).to_be_bytes().to_vec();
        framed.extend(bytes);
        let sent = timeout(IDLE_MAX, self.stream.write_all(&framed)).await;
        sent.map_err(|_| TransferError::Timeout)?.map_err(TransferError::Ended)?;
        self.rate = LeastRate::new(RATE_WINDOW);
        Ok(signatures)
    }

    async fn receive(
        &mut self,
        signatures: Option<&mut Signatures>,
    ) -> Result<Message, TransferError> {
        let read = async {
            let length = self.stream.read_u16().await?;
            let mut bytes = vec![0; length.into()];
            self.stream.read_exact(&mut bytes).await.map(|_| bytes)
        };
        let bytes = timeout(IDLE_MAX, read).await.map_err(|_| TransferError::Timeout)?;
        let bytes = bytes.map_err(TransferError::Ended)?;
        self.count(bytes.len() as u64)?;
        // A server that does not know the key sends an unsigned refusal.
        let message =
            Message::from_vec(&bytes).map_err(|error| TransferError::Message(error.to_string()))?;
        let error = message.signature().and_then(|record| record.data.error);
        match message.response_code {
            ResponseCode::NoError => {}
            ResponseCode::NotAuth if signatures.is_some() => {
                return Err(match error {
                    Some(TsigError::BadTime) => TransferError::Clock,
                    _ => TransferError::Key,
                });
            }
            code => return Err(TransferError::Refused(code)),
        }
        if message.id != REQUEST_ID || message.message_type != MessageType::Response {
            return Err(TransferError::Message("it answers another question".to_owned()));
        }
        if let Some(signatures) = signatures {
            signatures.check(&bytes, message.signature().is_some(), now())?;
        }
        Ok(message)
    }

    /// Counts the bytes of a message.
    fn count(&mut self, bytes: u64) -> Result<(), TransferError> {
        // Each message is preceded by its length, even an empty one.
        self.received += 2 + bytes;
        if self.received > self.max_bytes {
            return Err(TransferError::TooLarge(self.max_bytes));
        }
        Ok(self.rate.count(2 + bytes)?)
    }
}

/// Unix time for signatures. Signing reads the system clock, because the clock that tests set does
/// not apply here.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
