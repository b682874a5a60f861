//! The interface of the engine behind the shared log: a stream of records, numbered from 1 without gaps.

use std::future::Future;

use thiserror::Error;
use tokio::sync::mpsc;

use super::record::SharedPosition;

/// A record of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamRecord {
    pub seq: u64,
    pub bytes: Vec<u8>,
}

/// The outcome of an append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Published {
    /// Stored under this number.
    At(u64),
    /// The record was not stored: another record is the last one.
    Superseded,
    /// The record was not stored: the stream's record at the expected position differs from the one
    /// that this node knows.
    Differs,
    /// Unknown: the record may be stored, now or later.
    Unknown(StreamError),
}

/// The stream gave no response, or an error.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct StreamError(pub String);

/// Records of a subscription. After an error or the end, the caller subscribes again.
pub type Records = mpsc::Receiver<Result<StreamRecord, StreamError>>;

/// A stream of records that several nodes append to.
pub trait Stream: Send + Sync + 'static {
    /// Appends a record if `last` is the number of the stream's last record.
    fn append(&self, last: u64, bytes: Vec<u8>) -> impl Future<Output = Published> + Send;

    /// Returns the number of the last record, 0 for an empty stream.
    fn last(&self) -> impl Future<Output = Result<u64, StreamError>> + Send;

    /// Returns the record of this number, if it exists.
    fn record(&self, seq: u64)
    -> impl Future<Output = Result<Option<Vec<u8>>, StreamError>> + Send;

    /// Returns the records from `first` on.
    fn follow(&self, first: u64) -> impl Future<Output = Result<Records, StreamError>> + Send;

    /// Appends a record after the record `last`. If `known` is given, that record is compared with it first.
    fn append_after(
        &self,
        last: u64,
        known: Option<SharedPosition>,
        bytes: Vec<u8>,
    ) -> impl Future<Output = Published> + Send {
        async move {
            if let Some(known) = known {
                match self.record(known.seq).await {
                    Ok(Some(found)) if SharedPosition::after(known.seq, &found) != known => {
                        return Published::Differs;
                    }
                    // If that record is missing, the append fails.
                    Ok(_) => {}
                    Err(error) => return Published::Unknown(error),
                }
            }
            self.append(last, bytes).await
        }
    }

    /// Returns the end of the stream, and the records after `known`. The record `known` arrives again, to be compared.
    fn follow_after(
        &self,
        known: u64,
    ) -> impl Future<Output = Result<(u64, Records), StreamError>> + Send {
        async move {
            let last = self.last().await?;
            Ok((last, self.follow(known.max(1)).await?))
        }
    }
}
