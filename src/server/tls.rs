//! TLS with a certificate and key from two files, which are reloaded when they change.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Context;
use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio_rustls::TlsAcceptor;

use crate::server::settings::TlsFiles;
use crate::vocab::text_file;

/// Interval between two checks of the files.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// ALPN protocols in order of preference.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// The current certificate, and the files it came from.
#[derive(Clone)]
pub struct Tls {
    files: TlsFiles,
    current: Arc<Current>,
    acceptor: TlsAcceptor,
}

#[derive(Debug)]
struct Current(ArcSwap<CertifiedKey>);

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

/// Modification time and length of both files.
type Stamp = [Option<(SystemTime, u64)>; 2];

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// A file is unreadable or invalid, or the key does not belong to the certificate.
    pub fn open(files: &TlsFiles) -> anyhow::Result<Tls> {
        let provider = Arc::new(ring::default_provider());
        let key = read(files, &provider)?;
        let current = Arc::new(Current(ArcSwap::from_pointee(key)));
        let resolver: Arc<dyn ResolvesServerCert> = Arc::clone(&current) as _;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .context("TLS")?
            .with_no_client_auth()
            .with_cert_resolver(resolver);
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        Ok(Tls { files: files.clone(), current, acceptor })
    }

    pub(super) fn acceptor(&self) -> &TlsAcceptor {
        &self.acceptor
    }

    /// The expiry of the certificate in use, in Unix seconds; `None` if it cannot be parsed.
    pub fn expires(&self) -> Option<i64> {
        let key = self.current.0.load();
        let (_, certificate) =
            x509_parser::parse_x509_certificate(key.end_entity_cert().ok()?).ok()?;
        Some(certificate.validity().not_after.timestamp())
    }

    /// Reloads the files whenever they change. Never returns.
    pub async fn watch_files(self) {
        let (mut loaded, mut seen) = (self.stamp(), self.stamp());
        let mut checks = tokio::time::interval(CHECK_INTERVAL);
        loop {
            checks.tick().await;
            let stamp = self.stamp();
            // The two files are not replaced atomically, so this waits until both stop changing.
            if stamp != loaded && stamp == seen {
                self.reload();
                loaded = stamp;
            }
            seen = stamp;
        }
    }

    /// Reads the files again. If the new files are invalid, logs an error and keeps the old
    /// certificate.
    pub fn reload(&self) {
        match read(&self.files, &ring::default_provider()) {
            Ok(key) => {
                self.current.0.store(Arc::new(key));
                tracing::info!("certificate reloaded");
            }
            Err(err) => {
                let error = format!("{err:#}");
                tracing::error!(error, "invalid certificate; the old one stays in use");
            }
        }
    }

    fn stamp(&self) -> Stamp {
        let stamp = |path: &Path| {
            let metadata = std::fs::metadata(path).ok()?;
            Some((metadata.modified().ok()?, metadata.len()))
        };
        [stamp(&self.files.certificate), stamp(&self.files.key)]
    }
}

fn read(files: &TlsFiles, provider: &CryptoProvider) -> anyhow::Result<CertifiedKey> {
    let TlsFiles { certificate, key } = files;
    let chain = text_file::read(certificate)
        .map_err(anyhow::Error::from)
        .and_then(|pem| Ok(CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>()?))
        .with_context(|| format!("server.tls_certificate: {}", certificate.display()))?;
    anyhow::ensure!(
        !chain.is_empty(),
        "server.tls_certificate: {} contains no PEM certificate",
        certificate.display()
    );
    let private = text_file::read(key)
        .map_err(anyhow::Error::from)
        .and_then(|pem| Ok(PrivateKeyDer::from_pem_slice(&pem)?))
        .with_context(|| format!("server.tls_key: {}", key.display()))?;
    CertifiedKey::from_der(chain, private, provider).with_context(|| {
        format!("server.tls_key: {} is not the key of {}", key.display(), certificate.display())
    })
}
