//! Finds third-party programs that tests run. `tests/tools` installs them.

use std::path::{Path, PathBuf};

const INSTALL: &str = "run tests/tools, which installs what the tests use";

/// Returns the environment of a program whose clock is stopped at the Unix time, in seconds, in the
/// file `clock`. Deadlines and waits use the monotonic clock, which is not stopped.
pub fn faketime(clock: &Path) -> [(&'static str, String); 6] {
    [
        ("LD_PRELOAD", libfaketime().display().to_string()),
        ("FAKETIME_TIMESTAMP_FILE", clock.display().to_string()),
        ("FAKETIME_FMT", "%s".to_owned()),
        ("FAKETIME_NO_CACHE", "1".to_owned()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ("DONT_FAKE_MONOTONIC", "1".to_owned()),
    ]
}

/// Path of `knotd`, the name server.
pub fn knotd() -> PathBuf {
    program("knotd", &["/usr/sbin/knotd", "/usr/local/sbin/knotd", "/usr/bin/knotd"])
}

/// Path of `knotc`, its control program.
pub fn knotc() -> PathBuf {
    program("knotc", &["/usr/sbin/knotc", "/usr/local/sbin/knotc", "/usr/bin/knotc"])
}

/// Path of nginx, the cache.
pub fn nginx() -> PathBuf {
    program("nginx", &["/usr/sbin/nginx", "/usr/local/sbin/nginx"])
}

/// Path of Node.js.
pub fn node() -> PathBuf {
    program("node", &["/usr/bin/node", "/usr/local/bin/node"])
}

/// Path of Pebble, the certificate authority for tests.
pub fn pebble() -> PathBuf {
    program("pebble", &["/usr/bin/pebble"])
}

/// Path of the name server that comes with it.
pub fn challtestsrv() -> PathBuf {
    program("pebble-challtestsrv", &["/usr/bin/pebble-challtestsrv"])
}

/// Path of Chromium.
pub fn chromium() -> PathBuf {
    program("chromium", &["/usr/bin/chromium"])
}

/// Path of ChromeDriver.
pub fn chromedriver() -> PathBuf {
    program("chromedriver", &["/usr/bin/chromedriver", "/usr/lib/chromium/chromedriver"])
}

/// Path of `promtool`, Prometheus' rule checker.
pub fn promtool() -> PathBuf {
    program("promtool", &["/usr/bin/promtool"])
}

/// Source of axe-core, the accessibility checker.
pub fn axe() -> String {
    let path = "target/test-tools/node_modules/axe-core/axe.min.js";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}: {INSTALL}", path.display()))
}

/// The folder that `tests/tools` installs into.
pub fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/test-tools");
    assert!(root.join("installed").is_file(), "{} is missing: {INSTALL}", root.display());
    root
}

/// Path of a program that only full runs use.
pub fn full(path: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/full-tools").join(path);
    assert!(path.exists(), "{} is missing: run tests/tools full", path.display());
    path
}

/// Folder of the Python environment with DuckDB and pandas, which only full runs use.
pub fn copy_tools() -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/full-tools-copy/bin");
    assert!(path.join("python").exists(), "{} is missing: run tests/tools full", path.display());
    path
}

/// Path of Schemathesis, which generates requests from an OpenAPI document.
pub fn schemathesis() -> PathBuf {
    installed("bin/schemathesis")
}

/// Path of `nats-server`.
pub fn nats_server() -> PathBuf {
    installed("bin/nats-server")
}

/// Path of `weed`, the program of SeaweedFS.
pub fn weed() -> PathBuf {
    installed("bin/weed")
}

fn installed(path: &str) -> PathBuf {
    let path = root().join(path);
    assert!(path.is_file(), "{} is missing: {INSTALL}", path.display());
    path
}

/// Path of libfaketime.
pub fn libfaketime() -> PathBuf {
    let places = ["x86_64-linux-gnu", "aarch64-linux-gnu"];
    let path = places.iter().map(|arch| format!("/usr/lib/{arch}/faketime/libfaketimeMT.so.1"));
    let mut paths = path.map(PathBuf::from);
    paths.find(|path| path.is_file()).unwrap_or_else(|| panic!("libfaketime is missing: {INSTALL}"))
}

/// Path of Python with the packages that tests use.
pub fn python() -> PathBuf {
    root().join("bin/python")
}

fn program(name: &str, places: &[&str]) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|folder| folder.join(name));
    let mut candidates = on_path.chain(places.iter().map(PathBuf::from));
    candidates
        .find(|candidate| candidate.is_file())
        .unwrap_or_else(|| panic!("{name} is missing: {INSTALL}"))
}
