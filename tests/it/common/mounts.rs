//! Small file systems: a tmpfs in a mount namespace that ends with the test. The test restarts itself
//! through `unshare`, as root or in a user namespace, and fails if the machine allows neither.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::runs::say;

/// Environment variable that is set in the process that may mount.
const INSIDE: &str = "DROPDEX_TEST_MOUNTS";

/// Whether this is the process that may mount.
pub fn may_mount() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// Runs this test again, by the name with its module, in a process that may mount.
pub fn run_where_mounting_works(test: &str) {
    let ways: [&[&str]; 2] = [&["-m"], &["-U", "-r", "-m"]];
    let works = |way: &&&[&str]| {
        let probe = Command::new("unshare")
            .args(**way)
            .args(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", "/mnt"])
            .output();
        probe.is_ok_and(|output| output.status.success())
    };
    let way = ways.iter().find(works).expect(
        "this test needs a small file system of its own: run it as root, or where `unshare -Urm \
         mount -t tmpfs tmpfs /mnt` works (in a container: with CAP_SYS_ADMIN)",
    );
    let this = std::env::current_exe().expect("a test knows its own program");
    let output = Command::new("unshare")
        .args(*way)
        .arg(this)
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .stderr(Stdio::inherit())
        .output()
        .expect("unshare was found a moment ago");
    let said = String::from_utf8_lossy(&output.stdout);
    say(&said);
    assert!(output.status.success(), "inside `unshare {}`: {}", way.join(" "), output.status);
    // A run with a filter that matches no test would also pass.
    assert!(said.contains("1 passed"), "`{test}` is not a test");
}

/// Creates a folder and mounts a file system of `bytes` there.
pub fn tmpfs(folder: &Path, bytes: u64) {
    fs::create_dir(folder).expect("a folder can be made");
    let size = format!("size={bytes}");
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
        .arg(folder)
        .output()
        .expect("mount is installed");
    assert!(mounted.status.success(), "{}", String::from_utf8_lossy(&mounted.stderr));
}
