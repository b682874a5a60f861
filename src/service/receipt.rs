//! Receipts of writes that add a resource.

use serde::Deserialize;

use crate::accounts::{Answered, Receipt};

/// Builds the receipt of a form, whose page needs only the ID of the added resource.
pub fn of_id(id: u64) -> Receipt {
    Receipt { code: 0, bytes: format!("{{\"id\":{id}}}").into_bytes() }
}

/// The ID of an added resource, taken from the value or, for a repeated request, from the receipt.
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
