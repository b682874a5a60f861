//! Signatures of a response that consists of many messages (RFC 8945 §5.3.1).
//!
//! The first and the last message are signed. Up to 99 unsigned messages may follow a signed one; the
//! next signature covers them.

use hickory_proto::rr::TSigner;
use hickory_proto::rr::rdata::tsig::signed_bitmessage_to_buf;

use super::TransferError;

/// Maximum messages in a row without a signature.
pub(super) const UNSIGNED_MAX: usize = 99;

/// The signatures of a response so far.
pub(super) struct Signatures {
    key: TSigner,
    /// Signature of the query, or of the last signed message.
    previous: Vec<u8>,
    /// Time of the server's last signature; `None` before its first message.
    signed_at: Option<u64>,
    /// The unsigned messages received since then: up to [`UNSIGNED_MAX`], of up to 64 KiB each.
    unsigned: Vec<u8>,
    unsigned_count: usize,
}

impl Signatures {
    /// Creates the verifier of the response to a query with the signature `question`.
    pub(super) fn of_response(key: TSigner, question: Vec<u8>) -> Signatures {
        Signatures {
            key,
            previous: question,
            signed_at: None,
            unsigned: Vec::new(),
            unsigned_count: 0,
        }
    }

    /// Checks the next message, received at `now`, in seconds since 1970.
    pub(super) fn check(
        &mut self,
        message: &[u8],
        is_signed: bool,
        now: u64,
    ) -> Result<(), TransferError> {
        if is_signed {
            return self.check_signed(message, now);
        }
        if self.signed_at.is_none() {
            return Err(wrong("the first message has no signature (TSIG)"));
        }
        if self.unsigned_count == UNSIGNED_MAX {
            return Err(wrong("more than 99 messages in a row have no signature (TSIG)"));
        }
        self.unsigned_count += 1;
        self.unsigned.extend_from_slice(message);
        Ok(())
    }

    /// Checks that the last message was signed.
    pub(super) fn check_end(&self) -> Result<(), TransferError> {
        if self.unsigned_count > 0 {
            return Err(wrong("the last message has no signature (TSIG)"));
        }
        Ok(())
    }

    fn check_signed(&mut self, message: &[u8], now: u64) -> Result<(), TransferError> {
        // The digest of the first signature covers all TSIG variables, the digests of later ones
        // only the time.
        let is_first = self.signed_at.is_none();
        let (rest, record) = signed_bitmessage_to_buf(message, None, is_first)?;
        let tsig = record.data;
        if record.name != *self.key.signer_name() || tsig.algorithm != *self.key.algorithm() {
            return Err(wrong("it is signed with another key or algorithm"));
        }
        let mut digested = (self.previous.len() as u16).to_be_bytes().to_vec();
        digested.extend_from_slice(&self.previous);
        digested.append(&mut self.unsigned);
        digested.extend_from_slice(&rest);
        if self.key.verify(&digested, &tsig.mac).is_err() {
            return Err(wrong("its signature does not fit it and the messages before it"));
        }
        if tsig.time.abs_diff(now) > tsig.fudge.into() {
            return Err(TransferError::Clock);
        }
        if self.signed_at.is_some_and(|before| tsig.time < before) {
            return Err(wrong("it was signed before the message that it follows"));
        }
        self.previous = tsig.mac;
        self.signed_at = Some(tsig.time);
        self.unsigned_count = 0;
        Ok(())
    }
}

fn wrong(what: &str) -> TransferError {
    TransferError::Message(what.to_owned())
}
