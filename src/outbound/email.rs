//! Mails through the operator's own mail server: a mail in, taken by that server or a [`SendError`]
//! out. The server is the operator's choice, so the guard has no say here.

use std::time::Duration;

use anyhow::Context;
use chrono::{DateTime, Utc};
use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, Tls, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::transport::smtp::{AsyncSmtpTransport, Error};
use lettre::{Address, AsyncTransport, Message, Tokio1Executor};
use tokio::time::timeout;

use crate::outbound::settings::{Smtp, SmtpTls};
use crate::outbound::{Failure, SendError};

/// One command of the mail server is waited for this long.
const COMMAND_MAX: Duration = Duration::from_secs(10);
/// A mail in all.
const MAIL_MAX: Duration = Duration::from_secs(45);

/// Hands mails to the mail server, each over a connection of its own. Cheap to clone.
#[derive(Clone)]
pub struct Mailer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
}

/// A mail.
pub struct Mail<'a> {
    /// Letters and digits; the same id makes the same `Message-ID`, by which a mailbox tells
    /// repetitions.
    pub id: &'a str,
    pub to: &'a str,
    pub subject: &'a str,
    pub text: String,
    pub html: String,
    /// The address that takes the receiver off, in one click when it is https (RFC 8058).
    pub unsubscribe: Option<&'a str>,
    /// Its date.
    pub at: DateTime<Utc>,
}

impl Mailer {
    /// A mailer of these settings.
    ///
    /// # Errors
    /// A file of them cannot be read, or does not hold what it should.
    pub fn new(settings: &Smtp) -> anyhow::Result<Mailer> {
        let host = settings.host.trim_start_matches('[').trim_end_matches(']');
        let tls = || tls(settings, host);
        let builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(host)
            .port(settings.port)
            .timeout(Some(COMMAND_MAX))
            .hello_name(ClientId::Domain(settings.from.email.domain().to_owned()))
            .tls(match settings.tls {
                SmtpTls::StartTls => Tls::Required(tls()?),
                SmtpTls::Tls => Tls::Wrapper(tls()?),
                SmtpTls::None => Tls::None,
            });
        let builder = match &settings.login {
            Some((user, password)) => {
                let password = password.read().context("smtp.password_file cannot be read")?;
                let password = password.reveal().to_owned();
                builder.credentials(Credentials::new(user.clone(), password))
            }
            None => builder,
        };
        Ok(Mailer { transport: builder.build(), from: settings.from.clone() })
    }

    /// Hands a mail over.
    ///
    /// # Errors
    /// The mail server did not take it.
    pub async fn send(&self, mail: Mail<'_>) -> Result<(), SendError> {
        let message = self.message(mail)?;
        match timeout(MAIL_MAX, self.transport.send(message)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(err)) => Err(judge(&err)),
            Err(_) => Err(SendError::of(Failure::Timeout, "the mail server is too slow")),
        }
    }

    fn message(&self, mail: Mail<'_>) -> Result<Message, SendError> {
        let to: Address = mail.to.parse().map_err(|err| SendError::of(Failure::Rejected, err))?;
        let id = format!("<{}@{}>", mail.id, self.from.email.domain());
        let mut message = Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, to))
            .date(mail.at.into())
            .subject(mail.subject)
            .message_id(Some(id))
            // RFC 3834 §5: nobody's holiday note answers it.
            .raw_header(header("Auto-Submitted", "auto-generated"));
        if let Some(address) = mail.unsubscribe {
            message = message.raw_header(header("List-Unsubscribe", &format!("<{address}>")));
            if address.starts_with("https:") {
                let one_click = header("List-Unsubscribe-Post", "List-Unsubscribe=One-Click");
                message = message.raw_header(one_click);
            }
        }
        message
            .multipart(MultiPart::alternative_plain_html(mail.text, mail.html))
            .map_err(|err| SendError::of(Failure::NotConfigured, err))
    }
}

/// A header whose value is plain ASCII of ours: as it is, in one line.
fn header(name: &'static str, value: &str) -> HeaderValue {
    let name = HeaderName::new_from_ascii_str(name);
    HeaderValue::dangerous_new_pre_encoded(name, value.to_owned(), value.to_owned())
}

fn tls(settings: &Smtp, host: &str) -> anyhow::Result<TlsParameters> {
    let mut parameters = TlsParameters::builder(host.to_owned());
    if let Some(path) = &settings.ca_file {
        let certificates = std::fs::read(path)
            .map_err(anyhow::Error::from)
            .and_then(|pem| Certificate::from_pem(&pem).map_err(anyhow::Error::from));
        let certificates = certificates
            .with_context(|| format!("smtp.ca_file: the certificates in {}", path.display()))?;
        parameters = parameters.add_root_certificate(certificates);
    }
    parameters.build_rustls().context("smtp.host is no name for a certificate")
}

/// Whether TLS failed beneath a failure of the connection.
fn is_of_rustls(err: &Error) -> bool {
    let mut below = std::error::Error::source(err);
    while let Some(err) = below {
        let inner = err.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        if err.is::<rustls::Error>() || inner.is_some_and(|inner| inner.is::<rustls::Error>()) {
            return true;
        }
        below = err.source();
    }
    false
}

/// What a failure means. A mailbox that is not there will not come by itself; that the mail server
/// does not let us in is the operator's to mend.
fn judge(err: &Error) -> SendError {
    let code = err.status().map(u16::from);
    let failure = match code {
        Some(530..=539) => Failure::NotConfigured,
        Some(500..600) => Failure::Rejected,
        Some(code) => Failure::Status(code),
        None if err.is_timeout() => Failure::Timeout,
        None if err.is_tls() || is_of_rustls(err) => Failure::Tls,
        None if err.is_client() => Failure::NotConfigured,
        None => Failure::Unreachable,
    };
    if failure == Failure::NotConfigured {
        tracing::error!(error = %err, "the mail server does not take our mail; see [smtp]");
    }
    // The server's own words may name the receiver; its code says enough.
    match code {
        Some(code) => SendError::of(failure, format_args!("the mail server answered {code}")),
        None => SendError::of(failure, err),
    }
}
