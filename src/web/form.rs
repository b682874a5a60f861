//! Parsing of submitted forms. Values are validated by the types they are converted to.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

use axum::extract::multipart::MultipartError;
use axum::extract::{DefaultBodyLimit, FromRequest, Multipart, Request};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::edge::body::{BodyError, read_bytes_up_to};
use crate::error::PageError;
use crate::query::facts;
use crate::service::error::ApiError;
use crate::vocab::limits::{FACTS_BYTES_MAX, FORM_BYTES_MAX, LARGE_FORM_BYTES_MAX};

/// Extractor of a form (`application/x-www-form-urlencoded`) of at most `BYTES_MAX`.
pub struct Form<T, const BYTES_MAX: usize = FORM_BYTES_MAX>(pub T);

/// Extractor of a form that may contain a list of names or a note, behind a log-in.
pub type LargeForm<T> = Form<T, LARGE_FORM_BYTES_MAX>;

impl<S, T, const BYTES_MAX: usize> FromRequest<S> for Form<T, BYTES_MAX>
where
    S: Send + Sync,
    T: DeserializeOwned,
{
    type Rejection = PageError;

    async fn from_request(request: Request, _: &S) -> Result<Form<T, BYTES_MAX>, PageError> {
        let (parts, body) = request.into_parts();
        let kind = parts.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if !kind.is_some_and(|kind| kind.starts_with("application/x-www-form-urlencoded")) {
            return Err(ApiError::parameter("form", "must be sent as a form").into());
        }
        let body_bytes = read_bytes_up_to(body, BYTES_MAX).await?;
        serde_urlencoded::from_bytes(&body_bytes)
            .map(Form)
            .map_err(|err| ApiError::parameter("form", err).into())
    }
}

/// Extractor of a form with a file of facts (`multipart/form-data`), which is the field `file`.
pub struct FileForm {
    pub file: Vec<u8>,
    pub fields: Fields,
}

impl<S: Send + Sync> FromRequest<S> for FileForm {
    type Rejection = PageError;

    async fn from_request(mut request: Request, _: &S) -> Result<FileForm, PageError> {
        DefaultBodyLimit::max(FACTS_BYTES_MAX as usize + FORM_BYTES_MAX).apply(&mut request);
        let mut form = Multipart::from_request(request, &())
            .await
            .map_err(|_| ApiError::parameter("form", "must be sent as a form with a file"))?;
        let (mut file, mut fields) = (Vec::new(), Fields::default());
        while let Some(mut field) = form.next_field().await.map_err(broken)? {
            let name = field.name().unwrap_or_default().to_owned();
            if name == "file" {
                while let Some(chunk) = field.chunk().await.map_err(broken)? {
                    file.extend_from_slice(&chunk);
                }
            } else {
                fields.push(&name, field.text().await.map_err(broken)?);
            }
        }
        Ok(FileForm { file, fields })
    }
}

/// Returns the error of a body that is truncated, too large, or not a form.
fn broken(err: MultipartError) -> ApiError {
    if err.status() == StatusCode::PAYLOAD_TOO_LARGE {
        return ApiError::BodyTooLarge { bytes_max: FACTS_BYTES_MAX as usize };
    }
    let mut cause: Option<&dyn Error> = Some(&err);
    while let Some(err) = cause {
        if let Some(err) = err.downcast_ref::<BodyError>() {
            return ApiError::from(*err);
        }
        cause = err.source();
    }
    ApiError::parameter("form", "is truncated, or not a form with a file")
}

/// All fields of a form in order, for forms with repeated names. `Debug` omits the values, which may be
/// private.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Fields(Vec<(String, String)>);

impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

impl Fields {
    /// Parses a query string. The parameter of a single fact becomes an item of the condition on facts.
    pub fn from_query(query: Option<&str>) -> Fields {
        let pairs = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        let field = |(name, value): (Cow<'_, str>, Cow<'_, str>)| match facts::item(&name, &value) {
            Some(item) => (facts::FACT.to_owned(), item),
            None => (name.into_owned(), value.into_owned()),
        };
        Fields(pairs.map(field).collect())
    }

    /// Adds a field.
    pub fn push(&mut self, name: &str, value: impl Into<String>) {
        self.0.push((name.to_owned(), value.into()));
    }

    /// Keeps the fields whose name satisfies `passes`.
    pub fn retain(&mut self, passes: impl Fn(&str) -> bool) {
        self.0.retain(|(name, _)| passes(name));
    }

    /// Replaces each value with the result of a function that gets its name and value.
    pub fn map(mut self, tidy: impl Fn(&str, &str) -> String) -> Fields {
        self.0.iter_mut().for_each(|(name, value)| *value = tidy(name, value));
        self
    }

    /// First value of a field, or an empty string.
    pub fn text(&self, name: &str) -> &str {
        self.all(name).next().unwrap_or_default()
    }

    /// Values of a field that are not empty.
    pub fn filled(&self, name: &str) -> Vec<&str> {
        self.all(name).filter(|value| !value.is_empty()).collect()
    }

    /// All values of a field.
    pub fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(sent, _)| sent == name).map(|(_, value)| value.as_str())
    }

    /// Names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Hash of all names and values in order.
    pub fn digest(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        for text in self.0.iter().flat_map(|(name, value)| [name, value]) {
            hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        }
        hasher.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_keep_their_order() {
        let fields: Fields =
            serde_urlencoded::from_str("stage=a&name=%3Cb%3E&stage=c").expect("a form");
        assert_eq!(fields.all("stage").collect::<Vec<_>>(), ["a", "c"]);
        assert_eq!((fields.text("name"), fields.text("other")), ("<b>", ""));
        assert_eq!(fields, Fields::from_query(Some("stage=a&name=%3Cb%3E&stage=c")));
        assert_ne!(fields.digest(), Fields::from_query(Some("stage=ac&name=%3Cb%3E")).digest());
    }
}
