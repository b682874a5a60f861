//! The result of a request: one outcome per list, the new generation, and the failure, if any.

use std::error::Error;
use std::fmt::Write;

use serde::{Deserialize, Serialize};

use crate::corpus::ingest::Ingested;
use crate::index::storage::manifest::Manifest;

/// The result of a request.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// The lists that were read, in order. If a list was refused, it is the last one.
    pub lists: Vec<ListReport>,
    /// The new generation, if one was built.
    pub generation: Option<Manifest>,
    /// Reason why the work stopped, unless it was a refused list.
    pub failure: Option<Failure>,
    pub seconds: f64,
    /// Remarks for a terminal, in order, such as recognised formats and rejected rows.
    pub notes: Vec<String>,
}

/// One list and its outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListReport {
    /// The file name without folders; both names for a zone pair.
    pub file: String,
    pub outcome: ListOutcome,
}

/// The outcome of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListOutcome {
    /// The corpus has a new batch.
    Added {
        format: String,
        /// Description of how the list was read: the roles of columns and the meaning of days, as a
        /// clause.
        #[serde(default)]
        reading: String,
        ingested: Ingested,
    },
    /// A zone file, compared with those of earlier days. The resulting lists have separate
    /// outcomes, which precede this one.
    Compared { zone: String, lists: u32 },
    /// The corpus already held this list; nothing changed.
    AlreadyHeld { format: String },
    /// The file is not a usable list, and never will be; nothing changed.
    Refused { reason: String },
}

/// Why the work stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub step: Step,
    /// Whether the cause lies outside the list and is temporary, such as another ingest or a full
    /// disk.
    pub is_transient: bool,
    /// Whether the disk is full.
    pub is_full: bool,
    /// One line: the error and its causes.
    pub message: String,
}

/// A step of the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    Ingest,
    Rebuild,
}

impl ListOutcome {
    /// Whether the corpus has new batches.
    pub fn has_added(&self) -> bool {
        match self {
            ListOutcome::Added { .. } => true,
            ListOutcome::Compared { lists, .. } => *lists > 0,
            ListOutcome::AlreadyHeld { .. } | ListOutcome::Refused { .. } => false,
        }
    }
}

impl Outcome {
    /// Creates the result of a request that could not be started, for a temporary cause.
    pub fn failed(err: &anyhow::Error) -> Outcome {
        let message = one_line(err.as_ref());
        let step = Step::Ingest;
        let failure = Failure { step, is_transient: true, is_full: false, message };
        Outcome { failure: Some(failure), ..Outcome::default() }
    }

    /// Returns the error to report: the failure or, without one, the reason why a list was refused.
    pub fn error(&self) -> Option<&str> {
        self.failure.as_ref().map(|failure| failure.message.as_str()).or_else(|| self.refused())
    }

    /// Returns the reason why a list was refused.
    pub fn refused(&self) -> Option<&str> {
        self.lists.iter().find_map(|list| match &list.outcome {
            ListOutcome::Refused { reason } => Some(reason.as_str()),
            _ => None,
        })
    }

    /// Returns the results of the added lists.
    pub fn added(&self) -> impl Iterator<Item = &Ingested> {
        self.lists.iter().filter_map(|list| match &list.outcome {
            ListOutcome::Added { ingested, .. } => Some(ingested),
            _ => None,
        })
    }
}

/// Returns the error and its distinct causes on one line.
pub fn one_line(err: &dyn Error) -> String {
    let mut line = String::new();
    let mut cause = Some(err);
    while let Some(err) = cause {
        let text = err.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        if line.is_empty() {
            line = text;
        } else if !line.contains(&text) {
            let _ = write!(line, ": {text}");
        }
        cause = err.source();
    }
    line
}
