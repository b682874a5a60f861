//! Query work that can take longer than half a millisecond leaves the async threads, and may hold a core
//! for a quarter of a second at most ([`crate::vocab::budget`]). A client that goes away, whose request
//! is dropped, ends it.

use std::cell::Cell;
use std::sync::LazyLock;
use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use rustix::process::{getpriority_process, setpriority_process};
use serde::Serialize;

use crate::http::error::ApiError;
use crate::http::rows::push_number;
use crate::telemetry::current::{self, Current};
use crate::vocab::budget::{Budget, QUERY_TIME_MAX, Spent};

/// Microseconds that a query may take on an async thread.
const INLINE_US_MAX: u32 = 500;
/// How much long work gives way to the async threads, so that connections are accepted, small questions
/// answered and what is too much refused at once, however many long ones are worked on.
const NICER: i32 = 10;
/// Room for a dossier, so that it does not move while it is written.
const SMALL_BODY_BYTES: usize = 1024;

/// Runs `work`, here when it takes few microseconds (about `cost_us`), else on the blocking pool.
///
/// # Errors
/// Those of `work`, 503 when it took too long, and 500 when it panicked.
pub async fn run<T: Send + 'static>(
    cost_us: u32,
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    if cost_us <= INLINE_US_MAX {
        return work();
    }
    run_within(QUERY_TIME_MAX, work).await
}

/// Runs `work` on the blocking pool for at most `time_max` on a core. When the future of this is
/// dropped, work that waits for a thread is not begun, and work under way ends soon.
async fn run_within<T: Send + 'static>(
    time_max: Duration,
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let (budget, _waiting) = Budget::new(time_max);
    let current = current::current();
    let nice = *NICE;
    let done = move || {
        give_way(nice);
        let _entered = current.as_ref().map(Current::enter);
        budget.lend(work).inspect_err(|spent| count(*spent))
    };
    let done = tokio::task::spawn_blocking(done).await;
    done.map_err(|err| {
        if err.is_panic() {
            // It never comes to the door, which counts those on its own threads.
            metrics::counter!("dropdex_panics_total").increment(1);
        }
        ApiError::Internal(err.into())
    })??
}

/// How nice the threads of the pool are. Looked at by an async thread first: they are as nice as the
/// operator wants this process to be.
static NICE: LazyLock<i32> = LazyLock::new(|| getpriority_process(None).unwrap_or(0) + NICER);

/// Has this thread, which is one of the pool's, give way from now on.
fn give_way(nice: i32) {
    thread_local! {
        static GIVES_WAY: Cell<bool> = const { Cell::new(false) };
    }
    if !GIVES_WAY.replace(true) {
        // On Linux the "process" with no number is the thread that asks. Where it may not, work is
        // done all the same.
        let _ = setpriority_process(None, nice);
    }
}

/// Counted where the work ended: nobody hears of what a client left that has gone.
fn count(spent: Spent) {
    let name = match spent {
        Spent::Time => "dropdex_queries_too_long_total",
        Spent::Gone => "dropdex_queries_abandoned_total",
    };
    metrics::counter!(name).increment(1);
}

/// A JSON body, made where the work is done.
///
/// # Errors
/// 500 for a value that cannot be JSON, which is a bug.
pub fn json_bytes(value: &impl Serialize) -> Result<Vec<u8>, ApiError> {
    let mut bytes = Vec::with_capacity(SMALL_BODY_BYTES);
    serde_json::to_writer(&mut bytes, value).map_err(|err| ApiError::Internal(err.into()))?;
    Ok(bytes)
}

/// Appends a member to a JSON object that has one before it.
pub fn push_member(out: &mut Vec<u8>, name: &str, number: u32) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    push_number(out, number);
}

/// Status 200 with these bytes of JSON.
pub fn json_response(bytes: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(bytes));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Instant;

    use super::*;
    use crate::vocab::budget::spent;

    const LONG: Duration = Duration::from_secs(3_600);

    fn spin() -> Result<bool, ApiError> {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(10) {
            if spent() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    #[tokio::test]
    async fn what_takes_too_long_is_refused() {
        let refused = run_within(Duration::from_millis(10), spin).await;
        assert!(matches!(refused, Err(ApiError::QueryTimeout)), "{refused:?}");
    }

    #[tokio::test]
    async fn a_client_that_goes_ends_its_work() {
        let (begun, has_begun) = mpsc::channel();
        let (ended, has_ended) = mpsc::channel();
        let request = tokio::spawn(run_within(LONG, move || {
            begun.send(()).expect("somebody listens");
            ended.send(spin()?).expect("somebody listens");
            Ok(())
        }));
        tokio::task::spawn_blocking(move || has_begun.recv())
            .await
            .expect("joined")
            .expect("begun");
        request.abort();
        let early = tokio::task::spawn_blocking(move || has_ended.recv()).await.expect("joined");
        assert_eq!(early, Ok(true));
    }
}
