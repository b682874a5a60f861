//! The configurations of load balancers in `data/docs/network.md`, and of proxies in `data/packaging`, run
//! by the real programs in front of nodes that refuse writes and serve reads.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use crate::common::nginx::{Nginx, free_address};
use crate::common::receiver::{Receiver, Reply};
use crate::common::runs::say;
use crate::common::{Client, wait};

/// Deadline for starts and for the first checks of nodes.
const SOON: Duration = Duration::from_secs(60);
const ROUNDS: usize = 30;

/// Returns the documented configuration of a program, completed with these nodes and this address.
fn documented(language: &str, nodes: [SocketAddr; 3], changes: &[(&str, &str)]) -> String {
    let page = read("data/docs/network.md");
    let (_, file) = page.split_once(&format!("```{language}\n")).expect(language);
    let (file, _) = file.split_once("\n```").expect("it ends");
    let file = replaced(file.to_owned() + "\n", changes);
    (1..).zip(nodes).fold(file, |file, (number, node)| {
        replaced(file, &[(&format!("10.0.0.{number}:8080"), &node.to_string())])
    })
}

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|err| panic!("{}: {err}", path.display()))
}

/// Replaces what each pair names first, which must occur.
fn replaced(file: String, changes: &[(&str, &str)]) -> String {
    changes.iter().fold(file, |file, (documented, tested)| {
        assert!(file.contains(documented), "{documented} in\n{file}");
        file.replace(documented, tested)
    })
}

/// Finds a program that `tests/tools` installs. Machines that were set up earlier may lack the
/// program.
fn installed(name: &str) -> Option<PathBuf> {
    let folders = ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"];
    let found =
        folders.map(|folder| Path::new(folder).join(name)).into_iter().find(|it| it.exists());
    if found.is_none() {
        say(&format!("no {name} here: its file was not run; tests/tools installs it"));
    }
    found
}

/// Two nodes that refuse writes, and one that is down.
struct Nodes([Receiver; 2], SocketAddr);

impl Nodes {
    fn new() -> Nodes {
        let node = || {
            Receiver::http(|_, seen| match (seen.method.as_str(), seen.target.as_str()) {
                (_, "/api/ready") => Reply::status(503),
                ("GET" | "HEAD", _) => Reply::Answer(200, Vec::new(), b"[]".to_vec()),
                _ => Reply::Answer(503, vec![("Retry-After", "5".to_owned())], Vec::new()),
            })
        };
        Nodes([node(), node()], free_address())
    }

    fn addresses(&self) -> [SocketAddr; 3] {
        [self.0[0].address(), self.0[1].address(), self.1]
    }

    /// Sends alternating writes and reads through a balancer.
    fn serve_reads_through(&self, balancer: SocketAddr, what: &str) {
        let mut client = Client::new(balancer);
        wait::until_ok(SOON, || {
            let status = client.get("/api/v1/tlds").status;
            if status == 200 { Ok(()) } else { Err(format!("{what}: {status}")) }
        });
        for round in 0..ROUNDS {
            let write = client.send("POST", "/api/v1/watchlist", &json!({}));
            assert_eq!(write.status, 503, "{what}, write {round}");
            let read = client.get("/api/v1/drops");
            assert_eq!(read.status, 200, "{what}, read {round}: {}", read.text());
        }
        let seen = self.0.iter().flat_map(Receiver::seen);
        let writes = seen.filter(|seen| seen.method == "POST").count();
        assert!(writes <= ROUNDS, "{what}: {writes} writes reached a node");
        let mut seen = self.0.iter().flat_map(Receiver::seen);
        let read = seen.find(|seen| seen.target == "/api/v1/drops").expect("a read");
        assert!(read.header("x-forwarded-for").contains("127.0.0.1"), "{what}");
    }
}

/// A running program, with its settings file in a temporary folder. Dropping the value stops the
/// program.
struct Balancer {
    _folder: TempDir,
    child: Child,
}

impl Balancer {
    fn start(program: &Path, args: &[&str], file: &str, address: SocketAddr) -> Balancer {
        let folder = tempfile::Builder::new().prefix("dropdex-balancer-").tempdir();
        let folder = folder.expect("a temporary folder can be made");
        let path = folder.path().join("Balancerfile");
        fs::write(&path, file).expect("written");
        let mut child = Command::new(program)
            .args(args)
            .arg(&path)
            .env("HOME", folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it can be run");
        wait::until_ok(SOON, || {
            let ended = child.try_wait().expect("the child can be polled");
            assert!(ended.is_none(), "{} ended: {ended:?}\n{file}", program.display());
            TcpStream::connect(address)
        });
        Balancer { _folder: folder, child }
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts nginx with the file that `completed` returns for a `listen` directive and the changes that
/// remove the certificate.
fn nginx(completed: impl Fn(&[(&str, &str)]) -> String) -> Nginx {
    Nginx::start(|address| {
        let listen = format!("listen {address};");
        let file = completed(&[
            ("listen 443 ssl;", &listen),
            ("ssl_certificate /etc/nginx/drops.pem;", ""),
            ("ssl_certificate_key /etc/nginx/drops.key;", ""),
        ]);
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("{kind}_temp_path {kind};"))
            .join(" ");
        format!(
            "daemon off; master_process off; pid pid;\nevents {{}}\nhttp {{\naccess_log off; {temporary}\n{file}}}\n"
        )
    })
}

#[test]
fn nginx_keeps_reads_alive_while_writes_are_refused() {
    let nodes = Nodes::new();
    let balancer = nginx(|changes| documented("nginx", nodes.addresses(), changes));
    nodes.serve_reads_through(balancer.address(), "nginx");
}

#[test]
fn the_packaged_file_of_nginx_keeps_reads_alive_while_writes_are_refused() {
    let nodes = Nodes::new();
    let node = nodes.addresses()[0].to_string();
    let proxy = nginx(|changes: &[(&str, &str)]| {
        let file = replaced(read("data/packaging/nginx.conf"), &[("127.0.0.1:8080", &node)]);
        replaced(file, changes)
    });
    nodes.serve_reads_through(proxy.address(), "nginx in front of one server");
}

#[test]
fn haproxy_keeps_reads_alive_while_writes_are_refused() {
    let Some(haproxy) = installed("haproxy") else { return };
    let (nodes, address) = (Nodes::new(), free_address());
    let bind = format!("bind {address}");
    let documented_bind = "bind :443 ssl crt /etc/haproxy/drops.pem alpn h2,http/1.1";
    let file = documented("haproxy", nodes.addresses(), &[(documented_bind, &bind)]);
    let _haproxy = Balancer::start(&haproxy, &["-db", "-f"], &file, address);
    nodes.serve_reads_through(address, "HAProxy");
}

/// Starts Caddy at an address, with a file for that address.
fn caddy(completed: impl Fn(&[(&str, &str)]) -> String, address: SocketAddr) -> Option<Balancer> {
    let program = installed("caddy")?;
    let site = format!("http://{address} {{");
    let file = completed(&[("drops.example.com {", &site)]);
    let file = format!("{{\n    admin off\n}}\n{file}");
    let args = ["run", "--adapter", "caddyfile", "--config"];
    Some(Balancer::start(&program, &args, &file, address))
}

#[test]
fn caddy_keeps_reads_alive_while_writes_are_refused() {
    let (nodes, address) = (Nodes::new(), free_address());
    let file = |changes: &[(&str, &str)]| documented("caddyfile", nodes.addresses(), changes);
    let Some(_caddy) = caddy(file, address) else { return };
    nodes.serve_reads_through(address, "Caddy");
}

#[test]
fn the_packaged_file_of_caddy_keeps_reads_alive_while_writes_are_refused() {
    let (nodes, address) = (Nodes::new(), free_address());
    let node = nodes.addresses()[0].to_string();
    let file = |changes: &[(&str, &str)]| {
        replaced(replaced(read("data/packaging/Caddyfile"), &[("127.0.0.1:8080", &node)]), changes)
    };
    let Some(_caddy) = caddy(file, address) else { return };
    nodes.serve_reads_through(address, "Caddy in front of one server");
}
