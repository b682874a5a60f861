//! Sends mails through the operator's mail server. The guard does not apply to this server, because
//! the operator chose it.

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

use crate::settings::{Smtp, SmtpTls};
use crate::tls;
use crate::vocab::text_file;
use crate::{Failure, SendError};

/// Timeout of an SMTP command.
const COMMAND_MAX: Duration = Duration::from_secs(10);
/// Timeout of a whole mail.
const MAIL_MAX: Duration = Duration::from_secs(45);

/// SMTP client that opens a connection per mail. Cheap to clone.
#[derive(Clone)]
pub struct Mailer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
}

/// A mail.
pub struct Mail<'a> {
    /// Letters and digits for `Message-ID`, by which mailboxes recognise repeated mails.
    pub id: &'a str,
    pub to: &'a str,
    pub subject: &'a str,
    pub text: String,
    pub html: String,
    /// Unsubscribe URL; one-click when it is https (RFC 8058).
    pub unsubscribe: Option<&'a str>,
    pub at: DateTime<Utc>,
}

impl Mailer {
    /// Creates a mailer with these settings.
    ///
    /// # Errors
    /// A configured file cannot be read or is invalid.
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

    /// Connects to the mail server and logs in, without sending anything.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses the log-in.
    pub async fn test(&self) -> anyhow::Result<()> {
        let is_open = self.transport.test_connection().await?;
        anyhow::ensure!(is_open, "the server closed the connection");
        Ok(())
    }

    /// Sends a mail.
    ///
    /// # Errors
    /// The mail server did not accept it.
    pub async fn send(&self, mail: Mail<'_>) -> Result<(), SendError> {
        let message = self.message(mail)?;
        match timeout(MAIL_MAX, self.transport.send(message)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(err)) => Err(classify(&err)),
            Err(_) => {
                Err(SendError::new(Failure::Timeout, "the mail server did not respond in time"))
            }
        }
    }

    fn message(&self, mail: Mail<'_>) -> Result<Message, SendError> {
        let to: Address = mail.to.parse().map_err(|err| SendError::new(Failure::Rejected, err))?;
        let id = format!("<{}@{}>", mail.id, self.from.email.domain());
        let mut message = Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, to))
            .date(mail.at.into())
            .subject(mail.subject)
            .message_id(Some(id))
            // Prevents automatic replies (RFC 3834 §5).
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
            .map_err(|err| SendError::new(Failure::NotConfigured, err))
    }
}

/// Builds a header with a plain ASCII value, unencoded and on one line.
fn header(name: &'static str, value: &str) -> HeaderValue {
    let name = HeaderName::new_from_ascii_str(name);
    HeaderValue::dangerous_new_pre_encoded(name, value.to_owned(), value.to_owned())
}

fn tls(settings: &Smtp, host: &str) -> anyhow::Result<TlsParameters> {
    let mut parameters = TlsParameters::builder(host.to_owned());
    if let Some(path) = &settings.ca_file {
        let certificates = text_file::read(path)
            .map_err(anyhow::Error::from)
            .and_then(|pem| Certificate::from_pem(&pem).map_err(anyhow::Error::from));
        let certificates = certificates
            .with_context(|| format!("smtp.ca_file: the certificates in {}", path.display()))?;
        parameters = parameters.add_root_certificate(certificates);
    }
    parameters.build_rustls().context("smtp.host is not a valid name for a certificate")
}

/// Classifies an SMTP error. A missing mailbox is permanent; a failed login must be fixed by the
/// operator.
fn classify(err: &Error) -> SendError {
    let code = err.status().map(u16::from);
    let failure = match code {
        Some(530..=539) => Failure::NotConfigured,
        Some(500..600) => Failure::Rejected,
        Some(code) => Failure::Status(code),
        None if err.is_timeout() => Failure::Timeout,
        None if err.is_tls() || tls::cause(err).is_some() => Failure::Tls,
        None if err.is_client() => Failure::NotConfigured,
        None => Failure::Unreachable,
    };
    if failure == Failure::NotConfigured {
        tracing::error!(error = %err, "the mail server rejects mail from dropdex; check the [smtp] settings");
    }
    // The server's message may contain the recipient, so only its code is logged.
    let error = match code {
        Some(code) => {
            SendError::new(failure, format_args!("the mail server responded with {code}"))
        }
        None => SendError::new(failure, tls::told(err)),
    };
    // Apart from a failed log-in, the response to a mail is about its recipient.
    let is_down = match failure {
        Failure::Timeout | Failure::Tls | Failure::Unreachable => true,
        Failure::NotConfigured => code.is_some(),
        _ => false,
    };
    SendError { is_down, ..error }
}
