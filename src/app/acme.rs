//! Obtains and renews the certificate of the server from a certificate authority with ACME (RFC 8555). The
//! authority connects to the server itself (TLS-ALPN-01, RFC 8737), so no other port is needed.

use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use axum::body::Bytes;
use axum::http::Request as HttpRequest;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};
use http_body_util::BodyExt;
use instant_acme::{
    Account, AccountCredentials, AuthorizationStatus, BodyWrapper, BytesResponse, ChallengeType,
    Error, ExternalAccountKey, HttpClient, Identifier, NewAccount, NewOrder, OrderStatus,
    RetryPolicy,
};
use tokio::time::sleep;

use crate::outbound::guard::Guard;
use crate::outbound::http::Client;
use crate::server::settings::{AcmeSettings, ExternalAccount};
use crate::server::tls::Tls;
use crate::vocab::clock::Clock;
use crate::vocab::{new_file, whole_file};

/// Longest pause before the next check whether the certificate is due.
const CHECK_MAX: TimeDelta = TimeDelta::hours(1);
const CHECK_MIN: TimeDelta = TimeDelta::seconds(1);
/// Pauses after failures; the last one repeats. Authorities limit failed orders to a few an hour.
const PAUSES_SECONDS: [u64; 4] = [60, 900, 3600, 6 * 3600];
/// A certificate is renewed when this share of its lifetime is left, as Let's Encrypt advises.
const LEFT_SHARE: i32 = 3;
/// Largest response of an authority; a chain has a few kilobytes.
const RESPONSE_MAX: usize = 1 << 20;
/// Maximum time of an order's validation.
const VALIDATION_MAX: Duration = Duration::from_secs(120);
const ACCOUNT: &str = "account.json";
const EXTERNAL_REQUIRED: &str = "urn:ietf:params:acme:error:externalAccountRequired";

/// Label values of the outcome of an order.
const OK: &str = "ok";
const FAILED: &str = "failed";

fn orders_total(outcome: &'static str) -> metrics::Counter {
    metrics::counter!("dropdex_certificate_orders_total", "outcome" => outcome)
}

/// Registers the counters at 0, so that `rate()` sees the first increment.
pub fn register_counters() {
    [OK, FAILED].into_iter().for_each(|outcome| orders_total(outcome).increment(0));
}

/// The worker that keeps the certificate.
pub struct Acme {
    settings: AcmeSettings,
    client: Client,
    tls: Tls,
    clock: Clock,
}

impl Acme {
    /// Creates the worker for the certificate of `tls`.
    ///
    /// # Errors
    /// The file of certificates to trust cannot be read.
    pub fn new(
        settings: &AcmeSettings,
        guard: Guard,
        tls: Tls,
        clock: Clock,
    ) -> anyhow::Result<Acme> {
        let client = Client::new(guard, settings.ca_file.as_deref()).context("tls.ca_file")?;
        Ok(Acme { settings: settings.clone(), client, tls, clock })
    }

    /// Obtains the certificate and renews it. Never returns.
    pub async fn run(self) {
        let mut failures = 0;
        loop {
            if let Some(pause) = self.due_in(self.clock.now()) {
                let pause = pause.clamp(CHECK_MIN, CHECK_MAX);
                sleep(pause.to_std().unwrap_or_default()).await;
                continue;
            }
            let hosts = self.settings.hosts.join(", ");
            let outcome = self.order().await;
            orders_total(if outcome.is_ok() { OK } else { FAILED }).increment(1);
            let Err(err) = outcome else {
                tracing::info!(hosts, "a new certificate is in use");
                failures = 0;
                continue;
            };
            let pause = PAUSES_SECONDS[failures.min(PAUSES_SECONDS.len() - 1)];
            failures += 1;
            tracing::error!(
                hosts,
                error = format!("{err:#}"),
                next_try_seconds = pause,
                "no certificate was issued; each host must lead to port 443 of this server from the internet"
            );
            sleep(Duration::from_secs(pause)).await;
        }
    }

    /// Time until the certificate is due; `None` if it is due now.
    fn due_in(&self, now: DateTime<Utc>) -> Option<TimeDelta> {
        let (begins, ends) = self.tls.validity(&self.settings.hosts)?;
        let time = |seconds| DateTime::from_timestamp(seconds, 0).unwrap_or_default();
        let left = (time(ends) - time(begins)) / LEFT_SHARE;
        Some(time(ends) - left - now).filter(|left| *left > TimeDelta::zero())
    }

    /// Orders a certificate and puts it into use.
    async fn order(&self) -> anyhow::Result<()> {
        let folder = self.settings.files.certificate.parent().unwrap_or(Path::new("."));
        new_file::create_folder(folder)
            .with_context(|| format!("cannot use the folder {}", folder.display()))?;
        let account = self.account(&folder.join(ACCOUNT)).await.context("the account")?;
        let hosts: Vec<_> = self.settings.hosts.iter().cloned().map(Identifier::Dns).collect();
        let mut order = account.new_order(&NewOrder::new(&hosts)).await.context("the order")?;
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization?;
            match authorization.status {
                AuthorizationStatus::Valid => continue,
                AuthorizationStatus::Pending => {}
                status => bail!("an authorization is {status:?}"),
            }
            let challenge = authorization.challenge(ChallengeType::TlsAlpn01);
            let mut challenge = challenge.context("the authority does not offer tls-alpn-01")?;
            let host = challenge.identifier().to_string();
            let digest = challenge.key_authorization().digest().as_ref().to_vec();
            self.tls.answer_challenge(&host, &digest)?;
            challenge.set_ready().await?;
        }
        let patience = RetryPolicy::default().timeout(VALIDATION_MAX);
        let status = order.poll_ready(&patience).await;
        self.tls.end_challenges();
        let status = status.context("the validation")?;
        ensure!(status == OrderStatus::Ready, "the order is {status:?} after its validation");
        let key = order.finalize().await.context("the certificate request")?;
        let chain = order.poll_certificate(&patience).await.context("the certificate")?;
        let files = &self.settings.files;
        whole_file::replace(&files.key, key.as_bytes())?;
        whole_file::replace(&files.certificate, chain.as_bytes())?;
        self.tls.reload()
    }

    /// Opens the account at the authority, or creates one. Another directory gets an account of its own.
    async fn account(&self, path: &Path) -> anyhow::Result<Account> {
        let directory = &self.settings.directory;
        let builder = || Account::builder_with_http(Box::new(Http(self.client.clone())));
        let kept = std::fs::read(path).ok();
        let kept = kept.and_then(|bytes| {
            let (of, credentials) =
                serde_json::from_slice::<(String, AccountCredentials)>(&bytes).ok()?;
            (of == *directory).then_some(credentials)
        });
        if let Some(credentials) = kept {
            return Ok(builder().from_credentials(credentials).await?);
        }
        let contact = self.settings.contact.as_ref().map(|address| format!("mailto:{address}"));
        let contact: Vec<&str> = contact.as_deref().into_iter().collect();
        let new = NewAccount {
            contact: &contact,
            terms_of_service_agreed: true,
            only_return_existing: false,
        };
        let external = self.settings.external.as_ref().map(external_key).transpose()?;
        let created = builder().create(&new, directory.clone(), external.as_ref()).await;
        let (account, credentials) = match created {
            Err(Error::Api(problem)) if problem.r#type.as_deref() == Some(EXTERNAL_REQUIRED) => {
                bail!(
                    "the authority asks for an external account: set tls.eab_key_id and tls.eab_hmac_key to the key from its web page"
                )
            }
            created => created?,
        };
        whole_file::replace(path, &serde_json::to_vec(&(directory, credentials))?)?;
        Ok(account)
    }
}

fn external_key(account: &ExternalAccount) -> anyhow::Result<ExternalAccountKey> {
    let text = account.key.read().context("tls.eab_hmac_key_file")?;
    let key = URL_SAFE_NO_PAD.decode(text.reveal().trim_end_matches('='));
    let key = key.ok().filter(|key| !key.is_empty());
    let key = key.context("tls.eab_hmac_key is not base64url, as authorities print it")?;
    Ok(ExternalAccountKey::new(account.id.clone(), &key))
}

/// Requests to the authority, through the guard of outbound calls.
struct Http(Client);

type Answered = Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>>;

impl HttpClient for Http {
    fn request(&self, request: HttpRequest<BodyWrapper<Bytes>>) -> Answered {
        let client = self.0.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.map_err(|err| Error::Other(Box::new(err)))?.to_bytes();
            let request = HttpRequest::from_parts(parts, body);
            let response = client.exchange(request, RESPONSE_MAX).await;
            let (parts, body) = response.map_err(|err| Error::Other(Box::new(err)))?.into_parts();
            Ok(BytesResponse { parts, body: Box::new(body) })
        })
    }
}
