//! A real name server on loopback: Knot DNS, authoritative for one zone that the test can rewrite while
//! it is served.

use std::fs;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use super::{tools, wait};

/// The zone; its names exist nowhere else.
pub const ZONE: &str = "zone.dropdex-tests.com";
/// The key of [`Knot::start_transferable`].
pub const KEY: &str = "transfers.dropdex-tests.com.";
/// Deadline of the first response.
const START_MAX: Duration = Duration::from_secs(60);

/// A name server with a zone. Dropping it stops it.
pub struct Knot {
    folder: TempDir,
    child: Child,
    address: SocketAddr,
    /// Zone name, with the final dot.
    zone: String,
    serial: u32,
}

impl Knot {
    /// Starts a server for these records (`name TTL type data`, names relative to [`ZONE`]).
    pub fn start(records: &str) -> Knot {
        Knot::start_zone(&format!("{ZONE}."), records)
    }

    /// Starts a server for another zone, named with its final dot; `.` covers all names.
    pub fn start_zone(zone: &str, records: &str) -> Knot {
        Knot::start_with(zone, records, "")
    }

    /// Starts a server that transfers its zone to anybody, or only to clients with the key [`KEY`] and
    /// this secret (base64, HMAC-SHA-512).
    pub fn start_transferable(zone: &str, records: &str, secret: Option<&str>) -> Knot {
        let key = secret.map(|secret| {
            format!("key:\n  - id: {KEY}\n    algorithm: hmac-sha512\n    secret: {secret}\n")
        });
        let by = if secret.is_some() { format!("key: {KEY}") } else { "address: 127.0.0.1".into() };
        let acl = format!("acl:\n  - id: transfers\n    {by}\n    action: [transfer, query]\n");
        Knot::start_with(zone, records, &(key.unwrap_or_default() + &acl))
    }

    fn start_with(zone: &str, records: &str, access: &str) -> Knot {
        let knotd = tools::knotd();
        let folder = tempfile::Builder::new().prefix("dropdex-knot-").tempdir();
        let folder = folder.expect("a temporary folder can be created");
        let address = free_port();
        write_zone(folder.path(), zone, records, 1);
        fs::write(folder.path().join("knot.conf"), config(folder.path(), zone, address, access))
            .expect("settings can be written");
        let child = Command::new(knotd)
            .arg("-c")
            .arg(folder.path().join("knot.conf"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(folder.path().join("log")).expect("a log can be written"))
            .spawn()
            .expect("knotd can be run");
        let zone = zone.to_owned();
        let mut knot = Knot { folder, child, address, zone, serial: 1 };
        knot.wait_until_it_serves();
        knot
    }

    /// Address of the server, over UDP and TCP.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Replaces all records, and returns once they are served.
    pub fn replace(&mut self, records: &str) {
        self.serial += 1;
        write_zone(self.folder.path(), &self.zone, records, self.serial);
        let reloaded = self.control(&["-b", "zone-reload", &self.zone]);
        assert!(reloaded, "knotc zone-reload failed\n{}", self.log());
    }

    fn wait_until_it_serves(&mut self) {
        wait::until_ok(START_MAX, || {
            let ended = self.child.try_wait().expect("the child can be polled");
            assert!(ended.is_none(), "knotd ended: {ended:?}\n{}", self.log());
            let serves = self.control(&["zone-read", &self.zone, "@", "SOA"]);
            if serves { Ok(()) } else { Err(format!("knotd does not serve\n{}", self.log())) }
        });
    }

    /// Runs a `knotc` command and returns whether it succeeded.
    fn control(&self, arguments: &[&str]) -> bool {
        let output = Command::new(tools::knotc())
            .arg("-s")
            .arg(self.folder.path().join("knot.sock"))
            .args(arguments)
            .stdin(Stdio::null())
            .output();
        output.expect("knotc can be run").status.success()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Knot {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Finds a port on loopback that is free for UDP and TCP.
fn free_port() -> SocketAddr {
    for _ in 0..100 {
        let tcp = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
        let address = tcp.local_addr().expect("a bound socket has an address");
        if UdpSocket::bind(address).is_ok() {
            return address;
        }
    }
    panic!("no port is free for UDP and TCP");
}

fn config(folder: &Path, zone: &str, address: SocketAddr, access: &str) -> String {
    let folder = folder.display();
    let acl = if access.is_empty() { "" } else { "    acl: transfers\n" };
    format!(
        "server:\n  rundir: \"{folder}\"\n  listen: {}@{}\n  udp-workers: 1\n  tcp-workers: 1\n  \
         background-workers: 1\n  tcp-io-timeout: 60000\n  tcp-idle-timeout: 60\n\
         log:\n  - target: stderr\n    any: info\n\
         control:\n  listen: \"{folder}/knot.sock\"\n\
         database:\n  storage: \"{folder}/db\"\n\
         {access}zone:\n  - domain: {zone}\n    file: \"{folder}/zone\"\n    zonefile-sync: -1\n    \
         zonefile-load: whole\n    journal-content: none\n{acl}",
        address.ip(),
        address.port()
    )
}

fn write_zone(folder: &Path, zone: &str, records: &str, serial: u32) {
    let text = format!(
        "$ORIGIN {zone}\n$TTL 0\n@ SOA ns hostmaster {serial} 3600 600 86400 0\n@ NS ns\n\
         ns A 192.0.2.53\n{records}\n"
    );
    fs::write(folder.join("zone"), text).expect("a zone can be written");
}
