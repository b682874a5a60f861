//! Undoing an action: its rows, and the marks of names, which are facts.

use crate::accounts::{Caller, Undone};
use crate::app::{App, Now};
use crate::error::ApiError;
use crate::marks;
use crate::vocab::ids::ActionId;

/// Restores what an action of the last ten minutes changed, except what was changed after it.
///
/// # Errors
/// 404 for an unknown or older action; the errors of a write.
pub async fn undo(app: &App, caller: &Caller, id: ActionId, now: Now) -> Result<Undone, ApiError> {
    let kept = match app.store.marks_of(caller, id) {
        marks if marks.is_empty() => 0,
        // If the rows below are refused, a second attempt finds the marks restored and keeps them.
        marks => marks::restore(app, caller, marks, now).await?,
    };
    let undone = app.store.undo(caller, id).await?;
    Ok(Undone { restored: undone.restored - kept, kept: undone.kept + kept })
}
