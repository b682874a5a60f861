//! Process-wide settings that are made once at startup, for this process and its children.

use crate::vocab::new_file;

/// Keeps other users out of the files that are made, and turns a write beyond the limit on the size of
/// files (`ulimit -f`) into an error, as on a full disk: the signal would end a server at once.
#[expect(unsafe_code, reason = "a system call that no library wraps")]
pub fn prepare() {
    new_file::restrict_modes();
    // SAFETY: no other thread runs yet, and ignoring a signal runs no code.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}
