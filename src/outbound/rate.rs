//! Minimum rate of responses. A server that sends one byte a second would otherwise block its caller
//! forever.

use std::time::Duration;

use tokio::time::Instant;

/// Minimum bytes per second; servers of lists and zones send a thousand times as many.
const BYTES_PER_SECOND_MIN: u64 = 1 << 10;

/// Checks the rate of a response over each window of time.
pub struct LeastRate {
    window: Duration,
    since: Instant,
    bytes: u64,
}

/// Error for a server that sent too little in a window.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the server sent only {bytes} bytes in {} s, fewer than {BYTES_PER_SECOND_MIN} a second; try again \
     later",
    window.as_secs()
)]
pub struct TooSlow {
    bytes: u64,
    window: Duration,
}

impl LeastRate {
    /// Starts counting.
    pub fn new(window: Duration) -> LeastRate {
        LeastRate { window, since: Instant::now(), bytes: 0 }
    }

    /// Counts received bytes.
    ///
    /// # Errors
    /// A window has passed with too few bytes.
    pub fn count(&mut self, bytes: u64) -> Result<(), TooSlow> {
        self.bytes += bytes;
        if self.since.elapsed() < self.window {
            return Ok(());
        }
        let (bytes, window) = (self.bytes, self.window);
        if bytes < BYTES_PER_SECOND_MIN * window.as_secs().max(1) {
            return Err(TooSlow { bytes, window });
        }
        *self = LeastRate::new(window);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_window_with_too_few_bytes_is_an_error() {
        let window = Duration::from_secs(60);
        let mut rate = LeastRate::new(window);
        for _ in 0..3 {
            rate.count(60 << 10).expect("the window has not passed");
            tokio::time::advance(window).await;
            rate.count(0).expect("enough");
        }
        for _ in 0..59 {
            tokio::time::advance(Duration::from_secs(1)).await;
            rate.count(1).expect("the window has not passed");
        }
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(rate.count(1), Err(TooSlow { bytes: 60, window }));
    }
}
