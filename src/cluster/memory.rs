//! A stream in memory, for tests. The stream can simulate every failure of a real engine.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;

use super::log::Waits;
use super::record::{Chain, Part, RecordId, SharedRecord};
use super::stream::{Published, Records, Stream, StreamError, StreamRecord};

/// Timings for a stream that fails and recovers within milliseconds.
pub const WAITS: Waits = Waits {
    retry: Duration::from_millis(2),
    compare: Duration::from_millis(1),
    tick: Duration::from_millis(20),
    send: Duration::from_secs(5),
    outcome: Duration::from_secs(10),
    short: Duration::from_millis(200),
    close: Duration::from_secs(5),
    silence: Duration::from_millis(20),
};

/// A stream in memory. Clones share their records.
#[derive(Clone, Default)]
pub struct Memory {
    records: Arc<Mutex<Vec<Vec<u8>>>>,
    /// Of this many calls, one fails on average; with 0, none does.
    pub fails_one_in: Arc<AtomicU64>,
    /// Whether records are stored without comparing the expected last record.
    pub expects_nothing: bool,
}

impl Memory {
    pub fn records(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fails(&self) -> bool {
        let one_in = self.fails_one_in.load(Ordering::Relaxed);
        one_in > 0 && fastrand::u64(..one_in) == 0
    }

    fn store(&self, last: u64, bytes: Vec<u8>) -> Published {
        let mut records = self.records();
        if records.len() as u64 != last && !self.expects_nothing {
            return Published::Superseded;
        }
        records.push(bytes);
        Published::At(records.len() as u64)
    }

    /// Appends a record as another node would.
    pub fn push(&self, before: Chain, node: &str, parts: Vec<Part<'_>>) {
        let message = SharedRecord { id: RecordId([7; 16]), unix_ms: 0, before, node, parts };
        self.records().push(message.encode());
    }
}

fn lost() -> StreamError {
    StreamError("lost".to_owned())
}

impl Stream for Memory {
    async fn append(&self, last: u64, bytes: Vec<u8>) -> Published {
        if !self.fails() {
            tokio::time::sleep(Duration::from_micros(fastrand::u64(..500))).await;
            return self.store(last, bytes);
        }
        match fastrand::u8(..3) {
            0 => {}
            // The response is lost.
            1 => drop(self.store(last, bytes)),
            // The record is stored after the caller's timeout.
            _ => {
                let stream = self.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(fastrand::u64(..10))).await;
                    stream.store(last, bytes);
                });
            }
        }
        Published::Unknown(lost())
    }

    async fn last(&self) -> Result<u64, StreamError> {
        if self.fails() { Err(lost()) } else { Ok(self.records().len() as u64) }
    }

    async fn record(&self, seq: u64) -> Result<Option<Vec<u8>>, StreamError> {
        if self.fails() {
            return Err(lost());
        }
        Ok(self.records().get(seq as usize - 1).cloned())
    }

    async fn follow(&self, first: u64) -> Result<Records, StreamError> {
        if self.fails() {
            return Err(lost());
        }
        let (records, received) = mpsc::channel(4);
        let stream = self.clone();
        tokio::spawn(async move {
            let mut seq = first;
            while !records.is_closed() {
                let bytes = stream.records().get(seq as usize - 1).cloned();
                let record = match bytes {
                    None => {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                        continue;
                    }
                    // Delivers no more records.
                    Some(_) if stream.fails() => return records.closed().await,
                    Some(_) if stream.fails() => Err(lost()),
                    Some(bytes) => Ok(StreamRecord { seq, bytes }),
                };
                if records.send(record).await.is_err() {
                    return;
                }
                seq += 1;
            }
        });
        Ok(received)
    }
}
