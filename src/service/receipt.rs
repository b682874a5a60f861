//! Receipts of writes that add a resource.

use serde::Deserialize;

use crate::accounts::{Answered, Receipt};

/// The receipt of a form, whose page needs no more than the id of what was added.
pub fn of_id(id: u64) -> Receipt {
    Receipt { code: 0, bytes: format!("{{\"id\":{id}}}").into_bytes() }
}

/// The id of an added resource, from the value or, for a repeat, from the receipt.
pub fn added_id<T>(answered: &Answered<T>, id: impl FnOnce(&T) -> u64) -> Option<u64> {
    #[derive(Deserialize)]
    struct Added {
        id: u64,
    }

    match &answered.value {
        Some(value) => Some(id(value)),
        None => serde_json::from_slice(&answered.receipt.bytes).map(|Added { id }| id).ok(),
    }
}
