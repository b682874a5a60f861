//! Files of facts that an account adds (`data/docs/facts.md`).

use std::sync::Arc;

use crate::accounts::{Caller, FactsRow};
use crate::app::{App, Now};
use crate::error::ApiError;
use crate::fact_book::Source;
use crate::facts_file::compile::{Compiled, Rights, compile};
use crate::facts_file::store::Edition;
use crate::facts_file::{Choices, FactsError, FactsFile, Mapping, Report};
use crate::index::Index;
use crate::query::error::ParameterCode;
use crate::vocab::time::UnixMs;
use crate::work;

/// A file that was read.
pub struct ReadFile {
    /// The export, if it is a known one; `canonical` or `mapped` otherwise.
    pub preset: &'static str,
    pub fingerprint: String,
    pub report: Report,
    pub sources: Vec<ReadSource>,
}

/// The new edition of a source of a file.
pub struct ReadSource {
    pub source: Arc<Source>,
    /// Rows of the edition.
    pub rows: u64,
    /// Rows of the file that are new, or replace older ones.
    pub from_file: u64,
    /// Rows of the edition whose name or label is in the index.
    pub matched: u64,
    bytes: Arc<[u8]>,
}

/// Reads a file and, unless it is only to be tried, keeps its facts. An account adds one file at a time.
///
/// # Errors
/// 400 for a file that does not fit the facts of the account; the errors of a write. The inner error is that of a
/// file that cannot be read.
pub async fn add(
    app: &App,
    caller: &Caller,
    bytes: Vec<u8>,
    choices: Choices,
    now: Now,
    is_trial: bool,
) -> Result<Result<ReadFile, FactsError>, ApiError> {
    let _turn = app.facts.enter(caller.account).await;
    let owned = app.store.user_data(caller);
    let (index, today) = (app.live.current(), app.as_of(now).today);
    let book = app.clone();
    let read = work::run_aside(move || {
        let mappings = owned.facts().mappings();
        // They were valid when they were stored.
        let mappings: Vec<Mapping> =
            mappings.filter_map(|(print, text)| format!("{print}={text}").parse().ok()).collect();
        let file = match FactsFile::read(bytes, &mappings, choices) {
            Ok(file) => file,
            Err(err) => return Ok(Err(err)),
        };
        let (preset, fingerprint) = (file.preset, file.fingerprint.to_string());
        let report = file.report.clone();
        let visible = book.facts.visible(Some(&owned));
        let before = |id: &str| {
            let own = visible.sources().iter().find(|it| it.is_own && it.name() == id);
            own.map(|source| &source.edition)
        };
        let compiled = compile(file, today, &Rights::default(), before)
            .map_err(|err| ApiError::parameter("body", err))?;
        let sources = compiled.into_iter().map(|it| ReadSource::new(it, &index));
        let sources = sources.collect::<Result<Vec<_>, ApiError>>()?;
        if !is_trial {
            let used: Vec<_> = sources.iter().map(|it| Arc::clone(&it.source)).collect();
            book.facts.join(&index, &used)?;
        }
        Ok(Ok(ReadFile { preset, fingerprint, report, sources }))
    })
    .await?;
    let read = match read {
        Ok(read) => read,
        Err(err) => return Ok(Err(err)),
    };
    if !is_trial {
        for source in &read.sources {
            let row = FactsRow {
                source: source.source.name().into(),
                added_at: UnixMs::from_instant(now.0),
                rows: source.rows,
                file_rows: read.report.rows,
                from_file: source.from_file,
                refused: read.report.refused_rows,
            };
            app.store.put_facts(caller, row, &source.bytes).await?;
        }
    }
    Ok(Ok(read))
}

/// Returns the API's error for a file that cannot be read.
pub fn unreadable(err: FactsError) -> ApiError {
    let code = match err {
        FactsError::Unmapped { .. } => ParameterCode::UnmappedColumns,
        _ => ParameterCode::InvalidValue,
    };
    ApiError::coded(code, "body", err)
}

/// Returns the stored form of a description of the columns of files with this fingerprint.
///
/// # Errors
/// 404 if the text is not a fingerprint, 400 if the description is not valid.
pub fn mapping_text(fingerprint: &str, columns: &[String]) -> Result<String, ApiError> {
    let is_print = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if fingerprint.len() != 16 || !fingerprint.bytes().all(is_print) {
        return Err(ApiError::NotFound);
    }
    let text = columns.iter().map(|column| column.trim()).collect::<Vec<_>>().join(",");
    format!("{fingerprint}={text}")
        .parse::<Mapping>()
        .map(|_| text)
        .map_err(|err| ApiError::parameter("columns", err))
}

impl ReadSource {
    fn new(compiled: Compiled, index: &Index) -> Result<ReadSource, ApiError> {
        let Compiled { bytes, rows, from_file, .. } = compiled;
        let internal = |err| ApiError::Internal(anyhow::Error::from(err));
        let bytes: Arc<[u8]> = bytes.into();
        let edition = Edition::of_bytes(Arc::clone(&bytes)).map_err(internal)?;
        let matched = index.keys_known(&edition).map_err(internal)?;
        let source = Arc::new(Source { edition, is_own: true });
        Ok(ReadSource { source, rows, from_file, matched, bytes })
    }
}
