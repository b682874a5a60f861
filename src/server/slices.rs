//! Short time slices on Linux. Under load, threads that handle connections share cores with threads
//! that compute queries. With the kernel's default slices of a few milliseconds, a connection thread
//! that wakes up waits for the end of another thread's slice, even if it has little to do. Since Linux
//! 6.12, a thread with short slices runs at once.

use rustix::process::getpriority_process;

/// Time slice in nanoseconds: the shortest that Linux accepts.
const SLICE_NS: u64 = 100_000;

/// Requests short slices for the calling thread and for the threads that it starts from now on. If the
/// kernel does not support or permit them, only tail latency under load suffers.
#[expect(unsafe_code, reason = "a system call that no library wraps")]
pub fn shorten() {
    let attributes = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: libc::SCHED_OTHER as u32,
        sched_flags: 0,
        sched_nice: getpriority_process(None).unwrap_or(0),
        sched_priority: 0,
        sched_runtime: SLICE_NS,
        sched_deadline: 0,
        sched_period: 0,
    };
    let (this_thread, no_flags) = (0, 0);
    // SAFETY: the kernel reads `size` bytes of a value that lives until the call returns.
    unsafe { libc::syscall(libc::SYS_sched_setattr, this_thread, &raw const attributes, no_flags) };
}
