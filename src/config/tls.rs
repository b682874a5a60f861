//! The section `[tls]`: a certificate that an authority issues.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use serde::Deserialize;

use super::outbound::secret;
use crate::server::settings::{AcmeSettings, ExternalAccount, TlsFiles};
use crate::vocab::net::AllowList;
use crate::vocab::secret::Secret;
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
    eab_key_id: Option<String>,
    eab_hmac_key: Option<Secret>,
    eab_hmac_key_file: Option<PathBuf>,
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
        let key = secret(None, self.eab_hmac_key, self.eab_hmac_key_file, "tls.eab_hmac_key")?;
        let external = match (self.eab_key_id, key) {
            (Some(id), Some(key)) => Some(ExternalAccount { id, key }),
            (None, None) => None,
            (Some(_), None) => bail!(
                "tls.eab_hmac_key is missing; set it or eab_hmac_key_file to the key that the authority gave you with tls.eab_key_id"
            ),
            (None, Some(_)) => bail!("tls.eab_hmac_key needs tls.eab_key_id"),
        };
        let folder = data.join(FOLDER);
        Ok(Some(AcmeSettings {
            hosts,
            contact: self.contact,
            directory,
            allow: self.allow,
            ca_file: self.ca_file,
            external,
            files: TlsFiles {
                certificate: folder.join("certificate.pem"),
                key: folder.join("key.pem"),
            },
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Given};
    use crate::server::settings::TlsSource;

    fn load(lines: &str) -> anyhow::Result<AcmeSettings> {
        let text = format!("[tls]\nacme = true\n{lines}");
        let config = Config::load_text(&text, Given::default())?;
        let Some(TlsSource::Acme(settings)) = config.server.tls else { bail!("no authority") };
        Ok(settings)
    }

    #[test]
    fn wrong_values_are_named() {
        let hosts = "hosts = [\"drops.example.com\"]\n";
        for (lines, problem) in [
            ("", "tls.hosts: is missing"),
            ("hosts = []", "tls.hosts: must name at least one"),
            ("hosts = [\"*.example.com\"]", "`*.example.com` is not a host name"),
            ("hosts = [\"Drops.example.com\"]", "`Drops.example.com` is not a host name"),
            ("hosts = [\"192.0.2.1\"]", "`192.0.2.1` is not a host name"),
            ("hosts = [\"localhost\"]", "`localhost` is not a host name"),
            (&format!("{hosts}contact = \"mailto:a@example.com\""), "is not an e-mail address"),
            (&format!("{hosts}directory = \"zerossl\""), "tls.directory: `zerossl` is not"),
            (&format!("{hosts}directory = \"http://ca.test/dir\""), "or an https address"),
            (&format!("{hosts}eab_key_id = \"a\""), "tls.eab_hmac_key is missing"),
            (&format!("{hosts}eab_hmac_key = \"a\""), "needs tls.eab_key_id"),
            (
                &format!(
                    "{hosts}eab_key_id = \"a\"\neab_hmac_key = \"a\"\neab_hmac_key_file = \"f\""
                ),
                "tls.eab_hmac_key or tls.eab_hmac_key_file, not both",
            ),
        ] {
            let error = format!("{:#}", load(lines).expect_err(lines));
            assert!(error.contains(problem), "{lines}: {error}");
        }
        let settings = load(hosts).expect("valid");
        assert_eq!(settings.directory, DIRECTORIES[0].1);
        assert_eq!(settings.external, None);
    }
}
