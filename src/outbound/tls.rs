//! Remedies for failed TLS connections.

use std::error::Error;
use std::io;

use rustls::CertificateError;

/// Finds the TLS error among the causes of an error.
pub fn cause<'a>(err: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let mut next = Some(err);
    while let Some(err) = next {
        // The `source` of an I/O error does not return the error that it wraps.
        let inner = err.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let inner = inner.and_then(|inner| inner.downcast_ref());
        if let Some(found) = err.downcast_ref().or(inner) {
            return Some(found);
        }
        next = err.source();
    }
    None
}

/// Describes the error so that the operator of the server can act on it.
pub fn told(err: &(dyn Error + 'static)) -> String {
    let hint = match cause(err) {
        Some(rustls::Error::InvalidCertificate(why)) => hint(why),
        _ => None,
    };
    hint.map_or_else(|| err.to_string(), |hint| format!("{err}: {hint}"))
}

fn hint(why: &CertificateError) -> Option<&'static str> {
    match why {
        // The type belongs to another crate, and rustls does not export it.
        CertificateError::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            Some(
                "the server uses the certificate of an authority (CA:TRUE) as its own; make it with CA:FALSE, such as by \
             `openssl req -x509 -addext basicConstraints=critical,CA:FALSE`, and name that in ca_file",
            )
        }
        CertificateError::UnknownIssuer => Some("name the certificate of its authority in ca_file"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
    use rustls::RootCertStore;
    use rustls::client::WebPkiServerVerifier;
    use rustls::client::danger::ServerCertVerifier;
    use rustls::pki_types::{ServerName, UnixTime};

    /// Returns the error for a server with such a certificate. If `is_known`, the certificate is in
    /// `ca_file`.
    fn refused(is_ca: IsCa, is_known: bool) -> String {
        let mut params = CertificateParams::new(["a.example".to_owned()]).expect("a name");
        params.is_ca = is_ca;
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate");
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        if is_known {
            roots.add(certificate.der().clone()).expect("a root");
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
        let name = ServerName::try_from("a.example").expect("a name");
        let now = UnixTime::now();
        let verified =
            verifier.expect("roots").verify_server_cert(certificate.der(), &[], &name, &[], now);
        verified.map_or_else(|err| told(&io::Error::other(err)), |_| "accepted".to_owned())
    }

    #[test]
    fn certificates_that_are_refused_say_what_to_do() {
        let authority = || IsCa::Ca(BasicConstraints::Unconstrained);
        assert!(refused(authority(), true).contains("make it with CA:FALSE"));
        assert!(refused(IsCa::ExplicitNoCa, false).contains("in ca_file"));
        assert_eq!(refused(IsCa::ExplicitNoCa, true), "accepted");
        assert_eq!(told(&io::Error::other("reset")), "reset");
    }
}
