//! Metrics of the process, from `/proc/self`. On systems without `/proc`, they are absent.
//!
//! The `metrics-process` crate exports the same values as `process_resident_memory_bytes` and so on.
//! Our names are older, and the shipped alerts and dashboard use them.

use std::fs;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use metrics::{counter, gauge};
use rustix::process::{Resource, getrlimit};

/// Unit of CPU times in `/proc` (`USER_HZ`), a constant of Linux.
const TICKS_PER_SECOND: u64 = 100;

/// The start of the process, by the wall clock and the monotonic clock.
pub struct Started {
    at: Instant,
    unix_s: f64,
}

impl Started {
    /// Returns the current time. Reads the wall clock, because the value is only for operators.
    pub fn now() -> Started {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Started { at: Instant::now(), unix_s: unix.as_secs_f64() }
    }

    /// Sets the metrics of the process.
    pub fn sample(&self) {
        gauge!("dropdex_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
        gauge!("dropdex_start_timestamp_seconds").set(self.unix_s);
        gauge!("dropdex_uptime_seconds").set(self.at.elapsed().as_secs_f64());
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        if let Some(kib) = number_after(&status, "VmRSS:") {
            gauge!("dropdex_resident_bytes").set((kib * 1024) as f64);
        }
        if let Some(threads) = number_after(&status, "Threads:") {
            gauge!("dropdex_threads").set(threads as f64);
        }
        if let Ok(fds) = fs::read_dir("/proc/self/fd") {
            // The count itself opens one descriptor.
            gauge!("dropdex_open_fds").set(fds.count().saturating_sub(1) as f64);
        }
        if let Some(limit) = getrlimit(Resource::Nofile).current {
            gauge!("dropdex_max_fds").set(limit as f64);
        }
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        if let Some(ticks) = cpu_ticks(&stat) {
            counter!("dropdex_cpu_seconds_total").absolute(ticks / TICKS_PER_SECOND);
        }
    }
}

/// The first number on the line that begins with `name`.
fn number_after(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// User plus system time: fields 14 and 15 (proc_pid_stat(5)). The fields are located from the end
/// of field 2, the name, because it may contain spaces.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(") ")?.1.split(' ').skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_files_are_parsed() {
        assert_eq!(number_after("Name:\tx\nVmRSS:\t  1234 kB\n", "VmRSS:"), Some(1234));
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 2 0 0 0 30 12 0 0 20 0 1 0 9 10 11";
        assert_eq!(cpu_ticks(stat), Some(42));
        assert_eq!(cpu_ticks("nothing"), None);
    }
}
