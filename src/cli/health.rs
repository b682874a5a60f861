//! `dropdex health`: queries the server of this installation. Needs no shell and no other program, so
//! containers can use it as their health check.

use std::io::{Write, stdout};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use axum::http::header::HOST;
use axum::http::{Request, StatusCode};
use clap::Args;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::config::{Config, ListenAddress};

/// Many times the largest response of `/api/ready`.
const BODY_MAX: usize = 64 * 1024;

/// Ask the server of these settings whether it runs
///
/// Prints one line. Exits with 0 if the server responds, and with 1 if it does not, or with `--ready` if
/// it is not ready.
#[derive(Args, Debug)]
pub struct HealthArgs {
    /// Address and port of the server [default: `listen` of the settings]
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<ListenAddress>,
    /// Ask `/api/ready`: whether the server can take reads and writes
    #[arg(long)]
    ready: bool,
    /// Seconds to wait for the response
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
}

/// Prints the state of the server.
///
/// # Errors
/// The server does not respond in time, or is not ready.
pub fn run(args: &HealthArgs, config: &Config) -> anyhow::Result<()> {
    let address = config.listen.from_here();
    ensure!(
        !address.ends_with(":0"),
        "the server takes a free port (`listen` is {address}), which this command cannot know; give its address \
         (--listen)"
    );
    let scheme = if config.server.tls.is_some() { "https" } else { "http" };
    let path = if args.ready { "/api/ready" } else { "/api/health" };
    let url = format!("{scheme}://{address}{path}");
    let timeout = Duration::from_secs(args.timeout);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let asked = runtime.context("cannot start")?.block_on(async {
        let call = call(&address, path, config.server.tls.is_some());
        tokio::time::timeout(timeout, call).await.unwrap_or_else(|_| {
            bail!("no response within {} s", args.timeout);
        })
    });
    let (status, body) = asked.with_context(|| format!("no healthy server at {url}"))?;
    ensure!(status == StatusCode::OK, "{url} returned {status}: {}", problems(&body));
    writeln!(stdout().lock(), "{}: {url}", if args.ready { "ready" } else { "healthy" })?;
    Ok(())
}

async fn call(address: &str, path: &str, tls: bool) -> anyhow::Result<(StatusCode, Bytes)> {
    let stream = TcpStream::connect(address).await.context("cannot connect")?;
    let request = Request::get(path).header(HOST, address).body(Empty::new())?;
    if tls {
        let name = ServerName::from(stream.peer_addr()?.ip());
        let stream = connector()?.connect(name, stream).await.context("TLS handshake failed")?;
        exchange(stream, request).await
    } else {
        exchange(stream, request).await
    }
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<Empty<Bytes>>,
) -> anyhow::Result<(StatusCode, Bytes)> {
    let (mut requests, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // A failed connection also fails the request.
    tokio::spawn(connection);
    let response = requests.send_request(request).await?;
    let status = response.status();
    let body = Limited::new(response.into_body(), BODY_MAX).collect().await;
    Ok((status, body.map_err(anyhow::Error::from_boxed)?.to_bytes()))
}

/// Returns the checks of `/api/ready` that failed.
fn problems(body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let checks = body["checks"].as_object().into_iter().flatten();
    let failed = checks.filter(|(_, state)| *state != "ok");
    failed
        .map(|(check, state)| format!("{check} is {}", state.as_str().unwrap_or("unknown")))
        .collect::<Vec<_>>()
        .join(", ")
}

fn connector() -> anyhow::Result<TlsConnector> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Arc::new(AnyCertificate(Arc::clone(&provider)));
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Accepts the certificate of any server. The certificate is for the public name, and this connects to
/// an address of the same machine, sends no secret, and reads only a status.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
