//! Certificates by ACME: Pebble, the test server of Let's Encrypt, validates the server by TLS-ALPN-01 and issues.

use std::collections::HashMap;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use tempfile::TempDir;

use crate::common::nats::free_addresses;
use crate::common::{Server, Site, tools, wait};

const HOST: &str = "drops.test";
/// Deadline of an order, which takes seconds.
const ISSUED_MAX: Duration = Duration::from_secs(60);
/// Lifetime of certificates that are renewed while a test waits.
const SHORT_SECONDS: u32 = 15;
const LONG_SECONDS: u32 = 100_000;

/// A certificate authority and a name server that leads all hosts to this machine.
struct Authority {
    folder: TempDir,
    directory: SocketAddr,
    management: SocketAddr,
    children: Vec<Child>,
}

impl Authority {
    /// Starts an authority that validates hosts at this port, and issues certificates for this time.
    fn start(port: u16, seconds: u32) -> Authority {
        Authority::with_customers(port, seconds, &[])
    }

    /// As [`Authority::start`]; if there are customers (key and MAC key), only they get an account.
    fn with_customers(port: u16, seconds: u32, customers: &[(&str, &str)]) -> Authority {
        let folder = tempfile::tempdir().expect("a folder");
        let addresses = free_addresses(4);
        let [directory, management, dns, names] = addresses.try_into().expect("four");
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).expect("a certificate");
        let path = |name: &str| folder.path().join(name);
        fs::write(path("ca.pem"), cert.pem()).expect("written");
        fs::write(path("key.pem"), signing_key.serialize_pem()).expect("written");
        let settings = serde_json::json!({"pebble": {
            "listenAddress": directory, "managementListenAddress": management,
            "certificate": path("ca.pem"), "privateKey": path("key.pem"),
            "httpPort": 1, "tlsPort": port, "certificateValidityPeriod": seconds,
            "externalAccountBindingRequired": !customers.is_empty(),
            "externalAccountMACKeys": customers.iter().copied().collect::<HashMap<_, _>>(),
        }});
        fs::write(path("pebble.json"), settings.to_string()).expect("written");
        let run = |program: PathBuf, args: &[&str]| {
            let name = program.file_name().expect("a name").display().to_string();
            let log = fs::File::create(path(&format!("{name}.log"))).expect("a log");
            let both = log.try_clone().expect("a log");
            let mut command = Command::new(program);
            command.args(args).env("PEBBLE_VA_NOSLEEP", "1").stdin(Stdio::null());
            command.stdout(log).stderr(both).spawn().expect("it can be run")
        };
        let dns = dns.to_string();
        let children = vec![
            run(
                tools::challtestsrv(),
                &[
                    "-dns01",
                    &dns,
                    "-http01",
                    "",
                    "-https01",
                    "",
                    "-tlsalpn01",
                    "",
                    "-defaultIPv6",
                    "",
                    "-management",
                    &names.to_string(),
                ],
            ),
            run(
                tools::pebble(),
                &["-config", path("pebble.json").to_str().expect("UTF-8"), "-dnsserver", &dns],
            ),
        ];
        let authority = Authority { folder, directory, management, children };
        wait::until_ok(ISSUED_MAX, || authority.root());
        // If no name server responds, an order fails, and the next one begins a minute later.
        wait::until_ok(ISSUED_MAX, || TcpStream::connect(&dns).map_err(|err| err.to_string()));
        authority
    }

    /// The root certificate, in PEM.
    fn root(&self) -> Result<String, String> {
        let url = format!("https://{}/roots/0", self.management);
        let root = Command::new("curl").args(["-fsSk", &url]).output().expect("curl runs");
        let text = String::from_utf8_lossy(&root.stdout).into_owned();
        root.status.success().then_some(text).ok_or_else(|| self.log())
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("pebble.log")).unwrap_or_default()
    }

    fn settings(&self) -> String {
        let Authority { directory, folder, .. } = self;
        format!(
            "[tls]\nacme = true\nhosts = [\"{HOST}\"]\ncontact = \"ops@example.com\"\n\
             directory = \"https://{directory}/dir\"\nallow = [\"{directory}\"]\nca_file = {:?}\n\
             [metrics]\nlisten = \"127.0.0.1:0\"\n",
            folder.path().join("ca.pem")
        )
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Requests the health of the server by its host, trusting only the root of the authority.
fn verified(server: &Server, root: &str) -> Result<(), String> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("root.pem");
    fs::write(&file, root).expect("written");
    let address = server.address();
    let resolve = format!("{HOST}:{}:{}", address.port(), address.ip());
    let url = format!("https://{HOST}:{}/api/health", address.port());
    let asked = Command::new("curl")
        .args(["-fsS", "--cacert", file.to_str().expect("UTF-8"), "--resolve", &resolve, &url])
        .output()
        .expect("curl runs");
    let said = String::from_utf8_lossy(&asked.stderr).into_owned();
    asked.status.success().then_some(()).ok_or(said)
}

fn certificate(site: &Site) -> Option<String> {
    fs::read_to_string(site.data().join("acme/certificate.pem")).ok()
}

#[test]
fn an_authority_issues_the_certificate_and_a_restart_keeps_it() {
    let address = free_addresses(1)[0];
    let authority = Authority::start(address.port(), LONG_SECONDS);
    let root = authority.root().expect("a root");
    let site = Site::with_a_name_of_each_kind();
    let settings = site.settings(&authority.settings());
    let serve = || site.serve_on(address, &["--config", &settings]);
    let server = serve();
    wait::until_ok(ISSUED_MAX, || verified(&server, &root).map_err(|err| err + &authority.log()));
    let first = certificate(&site).expect("it is kept");
    let key = fs::metadata(site.data().join("acme/key.pem")).expect("it is kept");
    assert_eq!(key.mode() & 0o777, 0o600, "only its owner reads it");
    let text = server.metrics().get("/metrics").text().to_owned();
    assert!(text.contains("dropdex_certificate_orders_total{outcome=\"ok\"} 1"), "{text}");
    let doctor = ["--config", &settings, "doctor", "--offline"];
    let found = site.run(&doctor).stdout;
    assert!(found.contains("tls          the certificate ends on"), "{found}");
    drop(server);
    let orders = authority.log().matches("/order-plz").count();
    let server = serve();
    verified(&server, &root).expect("the kept certificate serves at once");
    assert_eq!(
        (certificate(&site), authority.log().matches("/order-plz").count()),
        (Some(first), orders)
    );
}

#[test]
fn an_authority_that_asks_for_a_customer_key_gets_it() {
    const KEY: &str = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";
    let address = free_addresses(1)[0];
    let authority = Authority::with_customers(address.port(), LONG_SECONDS, &[("me", KEY)]);
    let site = Site::with_a_name_of_each_kind();
    let with = |lines: &str| authority.settings().replace("[tls]\n", &format!("[tls]\n{lines}"));
    for (lines, problem) in [
        ("", "set tls.eab_key_id and tls.eab_hmac_key"),
        ("eab_key_id = \"me\"\neab_hmac_key = \"?\"\n", "tls.eab_hmac_key is not base64url"),
        ("eab_key_id = \"you\"\neab_hmac_key = \"AAAA\"\n", "the account"),
    ] {
        let server = site.serve_on(address, &["--config", &site.settings(&with(lines))]);
        wait::until(ISSUED_MAX, "the order fails", || {
            server.metrics().get("/metrics").text().contains("orders_total{outcome=\"failed\"} 1")
        });
        let log = server.stop();
        assert!(log.contains(problem), "{lines}: {log}");
    }
    let file = site.write("key", format!("{KEY}\n"));
    let given = with(&format!("eab_key_id = \"me\"\neab_hmac_key_file = {file:?}\n"));
    let _server = site.serve_on(address, &["--config", &site.settings(&given)]);
    wait::until(ISSUED_MAX, "a certificate", || certificate(&site).is_some());
}

#[test]
fn certificates_are_renewed_before_they_end() {
    let address = free_addresses(1)[0];
    let authority = Authority::start(address.port(), SHORT_SECONDS);
    let site = Site::with_a_name_of_each_kind();
    let settings = site.settings(&authority.settings());
    let _server = site.serve_on(address, &["--config", &settings]);
    let mut seen = Vec::new();
    wait::until_ok(ISSUED_MAX, || {
        seen.extend(certificate(&site).filter(|it| !seen.contains(it)));
        if seen.len() > 1 { Ok(()) } else { Err(authority.log()) }
    });
}

#[test]
fn a_server_without_a_certificate_serves_and_says_why() {
    // No server listens at the port that the authority connects to.
    let [address, other] = free_addresses(2).try_into().expect("two");
    let authority = Authority::start(other.port(), LONG_SECONDS);
    let site = Site::with_a_name_of_each_kind();
    let settings = site.settings(&authority.settings());
    let server = site.serve_on(address, &["--config", &settings]);
    wait::until(ISSUED_MAX, "the order fails", || {
        let text = server.metrics().get("/metrics").text().to_owned();
        text.contains("dropdex_certificate_orders_total{outcome=\"failed\"} 1")
    });
    assert!(verified(&server, &authority.root().expect("a root")).is_err());
    let log = server.stop();
    for words in ["the validation", "tls-alpn-01", "must lead to port 443", HOST] {
        assert!(log.contains(words), "{words}: {log}");
    }
    assert_eq!(certificate(&site), None);
}
