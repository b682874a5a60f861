//! Short time slices on Linux. Under load, a thread that handles a connection wakes up beside threads
//! that compute queries. With the kernel's slices of some milliseconds it waits for one of them to end,
//! however little it has to do; with short ones it runs at once, since Linux 6.12.

use rustix::process::getpriority_process;

/// Slice of all threads that the calling one starts later, in nanoseconds: the shortest that Linux takes.
const SLICE_NS: u64 = 100_000;

/// Asks for short slices for the calling thread and for those that it starts from now on. A kernel that
/// has none, or forbids it, changes nothing but the tail of response times under load.
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
