//! Helpers of the decide functions. A decide function reads an account and returns the events of a
//! write, or refuses it. A decide function changes nothing and, apart from drawing ids and secrets,
//! is deterministic.

use std::ops::RangeInclusive;

use super::error::{InvalidField, WriteError};
use super::event::Event;

/// The result of a decision.
pub struct Decided<T> {
    /// Events, written as one transaction; empty if nothing changes.
    pub events: Vec<Event>,
    /// Value that the caller receives once the events are durable.
    pub value: T,
}

impl<T> Decided<T> {
    pub fn new(events: impl IntoIterator<Item = Event>, value: T) -> Decided<T> {
        Decided { events: events.into_iter().collect(), value }
    }
}

/// Draws random ids until one is free. There are 9 * 10^15 ids, so the first draw is almost always free.
pub fn draw_id<T: Copy>(
    id: impl Fn(u64) -> Option<T>,
    is_taken: impl Fn(T) -> bool,
) -> Result<T, WriteError> {
    loop {
        // An id has 53 bits.
        let bits = u64::from_le_bytes(random_bytes()?) >> 11;
        if let Some(id) = id(bits).filter(|id| !is_taken(*id)) {
            return Ok(id);
        }
    }
}

pub fn random_bytes<const N: usize>() -> Result<[u8; N], WriteError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(WriteError::Random)?;
    Ok(bytes)
}

/// Checks the length of a text in characters, and that no character is `bad`. A text that must not
/// be empty must not consist of white space either.
pub fn check_text(
    field: InvalidField,
    text: &str,
    chars: RangeInclusive<usize>,
    bad: impl Fn(char) -> bool,
) -> Result<(), WriteError> {
    let is_blank = *chars.start() > 0 && text.trim().is_empty();
    if is_blank || !chars.contains(&text.chars().count()) {
        let (min, max) = (chars.start(), chars.end());
        return Err(invalid(field, format!("must have {min} to {max} characters")));
    }
    if text.contains(bad) {
        return Err(invalid(field, "must not hold control characters"));
    }
    Ok(())
}

pub fn invalid(field: InvalidField, what: impl Into<String>) -> WriteError {
    WriteError::Invalid { field, what: what.into() }
}
