//! Doing once what is asked twice (the `Idempotency-Key` of a POST).

use super::Decided;
use crate::accounts::event::Event;
use crate::accounts::owned::replies::{KeptReply, digest_of};
use crate::accounts::state::Account;
use crate::accounts::write::{Answered, Idempotency, Post, Reply, WriteError};
use crate::journal::AppendError;
use crate::vocab::time::UnixMs;

/// Bytes of an answer that is to be kept, at most: it shares a record with its effect.
const REPLY_BYTES_MAX: usize = 256 << 10;
/// Bytes of all answers kept for an account, at most: a day's worth of the longest claims.
const REPLIES_BYTES_MAX: usize = 64 << 20;

/// Decides on a POST: `carry_out` unless its key was used in the last 24 h. Then the answer of that
/// time is given again, or the request refused when it was another one.
pub(in crate::accounts) fn posted(
    account: &Account,
    post: &Post,
    carry_out: impl FnOnce() -> Result<Decided<Reply>, WriteError>,
) -> Result<Decided<Answered>, WriteError> {
    let Some(idempotency) = &post.idempotency else {
        let Decided { events, answer } = carry_out()?;
        return Ok(Decided { events, answer: Answered { reply: answer, replayed: false } });
    };
    let key = digest_of(&idempotency.key);
    match account.owned.replies.get(&key, UnixMs::of(post.now)) {
        Some(kept) if kept.fingerprint == idempotency.fingerprint => Ok(Decided {
            events: Vec::new(),
            answer: Answered { reply: kept.reply(), replayed: true },
        }),
        Some(_) => Err(WriteError::IdempotencyConflict),
        None => {
            let Decided { mut events, answer } = carry_out()?;
            events.push(keep(account, post, idempotency, &answer)?);
            Ok(Decided { events, answer: Answered { reply: answer, replayed: false } })
        }
    }
}

fn keep(
    account: &Account,
    post: &Post,
    idempotency: &Idempotency,
    reply: &Reply,
) -> Result<Event, WriteError> {
    let len = reply.body.len();
    if len > REPLY_BYTES_MAX {
        return Err(AppendError::TooLong { len }.into());
    }
    if account.owned.replies.body_bytes() + len > REPLIES_BYTES_MAX {
        let limit = (REPLIES_BYTES_MAX >> 20) as u32;
        return Err(WriteError::TooMany { what: "MiB of answers kept for a day", limit });
    }
    let kept = KeptReply {
        key: digest_of(&idempotency.key),
        fingerprint: idempotency.fingerprint,
        at: UnixMs::of(post.now),
        status: reply.status,
        body: reply.body.as_slice().into(),
    };
    Ok(Event::ReplyKept { account: account.id, reply: Box::new(kept.into()) })
}
