//! The section `[tls]`: a certificate that an authority issues.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde::Deserialize;

use crate::server::settings::{AcmeSettings, TlsFiles};
use crate::vocab::net::AllowList;
use crate::vocab::url::BaseUrl;

const FOLDER: &str = "acme";
/// Names of directories, for `directory`.
const DIRECTORIES: [(&str, &str); 2] = [
    ("letsencrypt", "https://acme-v02.api.letsencrypt.org/directory"),
    ("letsencrypt-staging", "https://acme-staging-v02.api.letsencrypt.org/directory"),
];

/// The section in the file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TlsFile {
    /// Whether an authority issues the certificate. Accepts its terms.
    acme: bool,
    hosts: Option<Vec<String>>,
    contact: Option<String>,
    directory: Option<String>,
    allow: AllowList,
    ca_file: Option<PathBuf>,
}

impl TlsFile {
    /// The settings of a server at `public_url`, which keeps the certificate in `data`.
    ///
    /// # Errors
    /// A value is missing or invalid.
    pub(super) fn settings(
        self,
        public_url: Option<&BaseUrl>,
        data: &Path,
    ) -> anyhow::Result<Option<AcmeSettings>> {
        if !self.acme {
            return Ok(None);
        }
        let public = || {
            let url = url::Url::parse(public_url?.as_str()).ok()?;
            Some(vec![url.domain()?.to_owned()])
        };
        let hosts = self.hosts.or_else(public).context(
            "tls.hosts: is missing; name the hosts of the certificate, such as [\"drops.example.com\"], or set public_url",
        )?;
        ensure!(!hosts.is_empty(), "tls.hosts: must name at least one host");
        for host in &hosts {
            let is_name = matches!(url::Host::parse(host), Ok(url::Host::Domain(_)));
            ensure!(
                is_name
                    && host.contains('.')
                    && !host.contains('*')
                    && *host == host.to_ascii_lowercase(),
                "tls.hosts: `{host}` is not a host name such as drops.example.com"
            );
        }
        if let Some(contact) = &self.contact {
            let is_address = contact.contains('@') && !contact.contains([' ', ':', ',']);
            ensure!(is_address, "tls.contact: `{contact}` is not an e-mail address");
        }
        let directory = self.directory.unwrap_or_else(|| DIRECTORIES[0].0.to_owned());
        let known = DIRECTORIES.iter().find(|(name, _)| *name == directory);
        let directory = known.map_or(directory.as_str(), |(_, url)| url).to_owned();
        ensure!(
            directory.starts_with("https://") && url::Url::parse(&directory).is_ok(),
            "tls.directory: `{directory}` is not letsencrypt, letsencrypt-staging or an https address"
        );
        let folder = data.join(FOLDER);
        Ok(Some(AcmeSettings {
            hosts,
            contact: self.contact,
            directory,
            allow: self.allow,
            ca_file: self.ca_file,
            files: TlsFiles {
                certificate: folder.join("certificate.pem"),
                key: folder.join("key.pem"),
            },
        }))
    }
}
