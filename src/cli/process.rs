//! Process-wide settings that are applied once at startup, for this process and its children.

use crate::vocab::new_file;

/// Makes new files inaccessible to other users, and turns writes beyond the file-size limit (`ulimit
/// -f`) into errors like those of a full disk. Otherwise a signal would kill the server.
#[expect(unsafe_code, reason = "a system call that no library wraps")]
pub fn prepare() {
    new_file::restrict_modes();
    // SAFETY: no other thread runs yet, and ignoring a signal runs no code.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}
