//! Debian's nginx, as a cache or a load balancer.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use super::{tools, wait};

/// Deadline of the start.
const SOON: Duration = Duration::from_secs(60);

/// A running nginx. Dropping it stops it.
pub struct Nginx {
    folder: TempDir,
    child: Child,
    address: SocketAddr,
}

impl Nginx {
    /// Starts nginx with the settings for this address.
    pub fn start(settings: impl FnOnce(SocketAddr) -> String) -> Nginx {
        let folder = tempfile::Builder::new().prefix("dropdex-nginx-").tempdir();
        let folder = folder.expect("a temporary folder can be made");
        let address = free_address();
        let file = folder.path().join("nginx.conf");
        fs::write(&file, settings(address)).expect("settings can be written");
        let child = Command::new(tools::nginx())
            .arg("-p")
            .arg(folder.path())
            .arg("-e")
            .arg("log")
            .arg("-c")
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("nginx can be run");
        let mut nginx = Nginx { folder, child, address };
        nginx.wait_until_it_serves();
        nginx
    }

    fn wait_until_it_serves(&mut self) {
        wait::until_ok(SOON, || {
            let log = self.log();
            let ended = self.child.try_wait().expect("the child can be polled");
            assert!(ended.is_none(), "nginx ended: {ended:?}\n{log}");
            TcpStream::connect(self.address).map_err(|err| format!("{err}\n{log}"))
        });
    }

    /// Returns its log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns an address without a listener.
pub fn free_address() -> SocketAddr {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    free.expect("loopback has free ports")
}
