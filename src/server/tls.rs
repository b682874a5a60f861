//! TLS: a certificate and its key from two files, and from the same files when they have changed.

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

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// In the order that they are preferred.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// The certificate that connections are served with, and where it is from.
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

/// When the two files were written last, and how long they are.
type Stamp = [Option<(SystemTime, u64)>; 2];

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// Which of them cannot be used, and why.
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

    /// Uses the files anew whenever they have changed, for as long as it is polled. Those that cannot be
    /// used are told of, and what there was stays in use.
    pub async fn keep_fresh(self) {
        let (mut used, mut seen) = (self.stamp(), self.stamp());
        let mut looks = tokio::time::interval(LOOK_EVERY);
        loop {
            looks.tick().await;
            let stamp = self.stamp();
            // Two files are not replaced at once: they are read when both have come to rest.
            if stamp != used && stamp == seen {
                self.reload();
                used = stamp;
            }
            seen = stamp;
        }
    }

    /// Reads the files again.
    pub fn reload(&self) {
        match read(&self.files, &ring::default_provider()) {
            Ok(key) => {
                self.current.0.store(Arc::new(key));
                tracing::info!("the certificate was read again");
            }
            Err(err) => {
                let error = format!("{err:#}");
                tracing::error!(
                    error,
                    "the new certificate cannot be used; the old one stays in use"
                );
            }
        }
    }

    fn stamp(&self) -> Stamp {
        let of = |path: &Path| {
            let about = std::fs::metadata(path).ok()?;
            Some((about.modified().ok()?, about.len()))
        };
        [of(&self.files.certificate), of(&self.files.key)]
    }
}

fn read(files: &TlsFiles, provider: &CryptoProvider) -> anyhow::Result<CertifiedKey> {
    let TlsFiles { certificate, key } = files;
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .with_context(|| format!("server.tls_certificate: {}", certificate.display()))?;
    anyhow::ensure!(
        !chain.is_empty(),
        "server.tls_certificate: {} holds no certificate in PEM",
        certificate.display()
    );
    let private = PrivateKeyDer::from_pem_file(key)
        .with_context(|| format!("server.tls_key: {}", key.display()))?;
    // Fails where the two do not belong together.
    CertifiedKey::from_der(chain, private, provider).with_context(|| {
        format!("server.tls_key: {} is no key for {}", key.display(), certificate.display())
    })
}
