//! TLS with a certificate and key from two files, which are reloaded when they change. Without files, a
//! certificate authority is awaited, and a self-signed certificate serves meanwhile.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use anyhow::Context;
use arc_swap::ArcSwap;
use rcgen::{CertificateParams, CustomExtension, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio_rustls::TlsAcceptor;
use x509_parser::extensions::GeneralName;

use crate::server::settings::{TlsFiles, TlsSource};
use crate::vocab::text_file;

/// Interval between two checks of the files.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// ALPN protocols in order of preference. The last one is for challenges of a certificate authority (RFC 8737).
const PROTOCOLS: [&[u8]; 3] = [b"h2", b"http/1.1", CHALLENGE];
pub(super) const CHALLENGE: &[u8] = b"acme-tls/1";

/// The current certificate, and the files it came from.
#[derive(Clone)]
pub struct Tls {
    files: TlsFiles,
    current: Arc<Current>,
    acceptor: TlsAcceptor,
}

#[derive(Debug)]
struct Current {
    key: ArcSwap<CertifiedKey>,
    /// Certificates that answer the challenges of an authority, by host.
    challenges: Mutex<HashMap<String, Arc<CertifiedKey>>>,
}

impl Current {
    fn challenges(&self) -> MutexGuard<'_, HashMap<String, Arc<CertifiedKey>>> {
        self.challenges.lock().expect("no code panics holding this lock")
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let mut protocols = hello.alpn().into_iter().flatten();
        if protocols.any(|protocol| protocol == CHALLENGE) {
            return self.challenges().get(hello.server_name()?).cloned();
        }
        Some(self.key.load_full())
    }
}

/// Modification time and length of both files.
type Stamp = [Option<(SystemTime, u64)>; 2];

impl Tls {
    /// Reads the files. If an authority issues the certificate and there is none yet, creates one that clients
    /// do not trust.
    ///
    /// # Errors
    /// A file is unreadable or invalid, or the key does not belong to the certificate.
    pub fn open(source: &TlsSource) -> anyhow::Result<Tls> {
        let (provider, files) = (Arc::new(ring::default_provider()), source.files());
        let key = match (read(files, &provider), source) {
            (Err(_), TlsSource::Acme(acme)) => self_signed(&acme.hosts, Vec::new(), &provider)?,
            (read, _) => read?,
        };
        let key = ArcSwap::from_pointee(key);
        let current = Arc::new(Current { key, challenges: Mutex::default() });
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
        let key = self.current.key.load();
        let (_, certificate) =
            x509_parser::parse_x509_certificate(key.end_entity_cert().ok()?).ok()?;
        Some(certificate.validity().not_after.timestamp())
    }

    /// The first and last second of the certificate in use, in Unix time. `None` if it is not of an authority,
    /// or lacks one of the hosts.
    pub fn validity(&self, hosts: &[String]) -> Option<(i64, i64)> {
        let key = self.current.key.load();
        let (_, certificate) =
            x509_parser::parse_x509_certificate(key.end_entity_cert().ok()?).ok()?;
        let names = certificate.subject_alternative_name().ok()??;
        let named = |host: &str| {
            let mut names = names.value.general_names.iter();
            names.any(|name| matches!(name, GeneralName::DNSName(name) if *name == host))
        };
        let is_issued = certificate.issuer() != certificate.subject();
        let validity = certificate.validity();
        (is_issued && hosts.iter().all(|host| named(host)))
            .then(|| (validity.not_before.timestamp(), validity.not_after.timestamp()))
    }

    /// Answers a challenge for a host with this digest.
    ///
    /// # Errors
    /// No certificate can be made for the host.
    pub fn answer_challenge(&self, host: &str, digest: &[u8]) -> anyhow::Result<()> {
        let identifier = vec![CustomExtension::new_acme_identifier(digest)];
        let key = self_signed(&[host.to_owned()], identifier, &ring::default_provider())?;
        self.current.challenges().insert(host.to_owned(), Arc::new(key));
        Ok(())
    }

    /// Stops answering challenges.
    pub fn end_challenges(&self) {
        self.current.challenges().clear();
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
                self.reload_or_keep();
                loaded = stamp;
            }
            seen = stamp;
        }
    }

    /// Reads the files again.
    ///
    /// # Errors
    /// The new files are invalid. The old certificate stays in use.
    pub fn reload(&self) -> anyhow::Result<()> {
        let key = read(&self.files, &ring::default_provider())?;
        self.current.key.store(Arc::new(key));
        tracing::info!("certificate reloaded");
        Ok(())
    }

    /// Reads the files again. If the new files are invalid, logs an error and keeps the old
    /// certificate.
    pub fn reload_or_keep(&self) {
        if let Err(err) = self.reload() {
            let error = format!("{err:#}");
            tracing::error!(error, "invalid certificate; the old one stays in use");
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

/// Makes a certificate that is not signed by an authority.
fn self_signed(
    hosts: &[String],
    extensions: Vec<CustomExtension>,
    provider: &CryptoProvider,
) -> anyhow::Result<CertifiedKey> {
    let mut params = CertificateParams::new(hosts)?;
    params.custom_extensions = extensions;
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    let private = PrivateKeyDer::try_from(key.serialize_der()).map_err(anyhow::Error::msg)?;
    // `from_der` would refuse the critical extension of a challenge.
    let private = provider.key_provider.load_private_key(private)?;
    Ok(CertifiedKey::new(vec![certificate.into()], private))
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
