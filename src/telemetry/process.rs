//! The process, as the system knows it: `/proc/self` in, gauges out. Where there is none, nothing.

use std::fs;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use metrics::{counter, gauge};

/// Ticks a second in which Linux tells times of processes: a constant of its interface (`USER_HZ`).
const TICKS_PER_SECOND: u64 = 100;

/// When it started, by both clocks.
pub struct Started {
    at: Instant,
    unix_s: f64,
}

impl Started {
    /// Now. The wall clock is asked once, for the operator's eyes alone.
    pub fn now() -> Started {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Started { at: Instant::now(), unix_s: unix.as_secs_f64() }
    }

    /// Tells everything about the process.
    pub fn sample(&self) {
        gauge!("dropdex_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
        gauge!("dropdex_start_timestamp_seconds").set(self.unix_s);
        gauge!("dropdex_uptime_seconds").set(self.at.elapsed().as_secs_f64());
        if let Ok(status) = fs::read_to_string("/proc/self/status") {
            if let Some(kib) = number_after(&status, "VmRSS:") {
                gauge!("dropdex_resident_bytes").set((kib * 1024) as f64);
            }
            if let Some(threads) = number_after(&status, "Threads:") {
                gauge!("dropdex_threads").set(threads as f64);
            }
        }
        if let Ok(fds) = fs::read_dir("/proc/self/fd") {
            // The folder being read is one of them.
            gauge!("dropdex_open_fds").set(fds.count().saturating_sub(1) as f64);
        }
        if let Some(most) = fs::read_to_string("/proc/self/limits")
            .ok()
            .and_then(|limits| number_after(&limits, "Max open files"))
        {
            gauge!("dropdex_max_fds").set(most as f64);
        }
        if let Some(ticks) =
            fs::read_to_string("/proc/self/stat").ok().and_then(|stat| ticks(&stat))
        {
            counter!("dropdex_cpu_seconds_total").absolute(ticks / TICKS_PER_SECOND);
        }
    }
}

/// The first number on the line that begins with `name`.
fn number_after(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// The times of its own and in the system: what is fourteenth and fifteenth, counted from before the
/// name, which may hold anything (proc_pid_stat(5)).
fn ticks(stat: &str) -> Option<u64> {
    let mut after_name = stat.rsplit_once(") ")?.1.split(' ').skip(11);
    let mut next = || after_name.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_proc_are_read() {
        assert_eq!(number_after("Name:\tx\nVmRSS:\t  1234 kB\n", "VmRSS:"), Some(1234));
        let limits =
            "Limit  Soft Limit  Hard Limit  Units\nMax open files    1024   4096   files\n";
        assert_eq!(number_after(limits, "Max open files"), Some(1024));
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 2 0 0 0 30 12 0 0 20 0 1 0 9 10 11";
        assert_eq!(ticks(stat), Some(42));
        assert_eq!(ticks("nothing"), None);
    }
}
