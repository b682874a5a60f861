//! TLS in the server.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::raw::{assert_in_time, connect, rest, wait_until, wait_until_reaped};
use super::{TODAY, serve};
use crate::common::{Server, Site};

const NAME: &str = "drops.example";

/// Writes a new certificate and key to the two files, and returns the certificate.
fn renew(site: &Site) -> CertificateDer<'static> {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed([NAME.to_owned()]).expect("a certificate can be made");
    site.write("cert.pem", cert.pem());
    site.write("key.pem", signing_key.serialize_pem());
    cert.der().clone()
}

fn settings(site: &Site) -> String {
    // Long enough for every handshake that should succeed.
    settings_with(site, 20)
}

fn settings_with(site: &Site, handshake_s: u32) -> String {
    let path = |name: &str| site.lists().join(name).to_str().expect("UTF-8").to_owned();
    format!(
        "tls_certificate = \"{}\"\ntls_key = \"{}\"\nhandshake_seconds = {handshake_s}\nfirst_byte_seconds = 1\n",
        path("cert.pem"),
        path("key.pem")
    )
}

type Secured = StreamOwned<ClientConnection, TcpStream>;

/// Connects as a client that trusts only `certificate`.
fn secured(server: &Server, certificate: &CertificateDer<'static>, protocol: &[u8]) -> Secured {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).expect("a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    let name = ServerName::try_from(NAME).expect("a name");
    let connection = ClientConnection::new(Arc::new(config), name).expect("a client");
    StreamOwned::new(connection, connect(server))
}

/// Returns the response to a request, or an error.
fn ask(stream: &mut Secured) -> std::io::Result<String> {
    stream.write_all(b"GET /api/health HTTP/1.1\r\nHost: drops.example\r\n\r\n")?;
    let mut bytes = [0; 4096];
    let length = stream.read(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes[..length]).into_owned())
}

fn is_served(server: &Server, certificate: &CertificateDer<'static>) -> bool {
    ask(&mut secured(server, certificate, b"http/1.1"))
        .is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
}

#[test]
fn a_renewed_certificate_is_loaded() {
    let site = Site::with_names(std::iter::once("good.com".to_owned()), TODAY);
    let first = renew(&site);
    let server = serve(&site, &settings(&site));
    let said = server.stdout();
    assert!(said.starts_with("listening on https://"), "{said}");
    let mut held = secured(&server, &first, b"http/1.1");
    let answer = ask(&mut held).expect("an answer");
    assert!(answer.contains("strict-transport-security: max-age=63072000"), "{answer}");
    assert_eq!(held.conn.alpn_protocol(), Some(&b"http/1.1"[..]));

    let second = renew(&site);
    wait_until("renewed", || is_served(&server, &second));
    assert!(!is_served(&server, &first));
    assert!(
        ask(&mut held).is_ok_and(|answer| answer.starts_with("HTTP/1.1 200")),
        "the connection continues"
    );

    site.write("cert.pem", "nonsense");
    server.logged("the old one stays in use");
    assert!(is_served(&server, &second));
    // The key of another certificate.
    let third = renew(&site);
    std::fs::copy(site.lists().join("cert.pem"), site.lists().join("keep.pem")).expect("copied");
    renew(&site);
    std::fs::copy(site.lists().join("keep.pem"), site.lists().join("cert.pem")).expect("copied");
    server.logged("is not the key of");
    assert!(is_served(&server, &second) || is_served(&server, &third));
    let last = renew(&site);
    server.signal("HUP");
    wait_until("renewed again", || is_served(&server, &last));
    server.stop();
}

#[test]
fn http2_is_used_if_both_sides_support_it() {
    let site = Site::with_names(std::iter::once("good.com".to_owned()), TODAY);
    let certificate = renew(&site);
    let server = serve(&site, &settings(&site));
    let mut stream = secured(&server, &certificate, b"h2");
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").expect("it listens");
    let mut frame = [0; 9];
    stream.read_exact(&mut frame).expect("its settings");
    assert_eq!(frame[3], 4, "{frame:?}");
    assert_eq!(stream.conn.alpn_protocol(), Some(&b"h2"[..]));
}

#[test]
fn a_stalled_handshake_is_closed() {
    let site = Site::with_names(std::iter::once("good.com".to_owned()), TODAY);
    let certificate = renew(&site);
    let server = serve(&site, &settings_with(&site, 1));
    for start in [&b""[..], b"\x16\x03\x01\x02\x00"] {
        let began = Instant::now();
        let mut stream = connect(&server);
        stream.write_all(start).expect("it listens");
        rest(&mut stream);
        assert_in_time(began, Duration::from_secs(1));
    }
    // A client that completed the handshake and sends nothing.
    let mut stream = secured(&server, &certificate, b"http/1.1");
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock).expect("a handshake");
    }
    let _ = stream.read(&mut [0; 16]);
    wait_until_reaped(&server, &[("handshake", 2), ("first_byte", 1)]);
    // A client without TLS gets no response.
    let mut stream = connect(&server);
    stream.write_all(b"GET /api/health HTTP/1.1\r\nHost: a\r\n\r\n").expect("it listens");
    assert!(!rest(&mut stream).starts_with(b"HTTP/"));
}

#[test]
fn unusable_files_are_named_at_startup() {
    let site = Site::with_names(std::iter::once("good.com".to_owned()), TODAY);
    let fails = |words: &[&str]| {
        let settings = site.settings(&format!("[server]\n{}", settings(&site)));
        let args = ["serve", "--listen", "127.0.0.1:0", "--config", &settings];
        site.run(&args).assert_failed(10, words);
    };
    fails(&["server.tls_certificate", "cert.pem"]);
    renew(&site);
    site.write("key.pem", "");
    fails(&["server.tls_key", "key.pem"]);
    site.write("cert.pem", "");
    fails(&["server.tls_certificate"]);
}

#[test]
fn the_health_command_accepts_the_certificate_of_a_public_name() {
    let site = Site::with_names(std::iter::once("good.com".to_owned()), TODAY);
    renew(&site);
    let server = serve(&site, &settings(&site));
    let (address, settings) = (server.address().to_string(), site.lists().join("settings.toml"));
    let args = ["health", "--listen", &address, "--config", settings.to_str().expect("UTF-8")];
    assert_eq!(site.ok(&args), format!("healthy: https://{address}/api/health\n"));
    // Without the settings, the command does not know of TLS.
    site.run(&["health", "--listen", &address]).assert_failed(1, &["no healthy server", "http://"]);
}
