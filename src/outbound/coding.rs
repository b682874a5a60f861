//! Content codings of responses (RFC 9110 §8.4). Some servers compress responses unrequested.
//!
//! An encoded body is received as a whole and then decoded, both within the same size limit.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use hyper::header::{CONTENT_ENCODING, HeaderMap};
use ruzstd::decoding::StreamingDecoder;

/// Value of `Accept-Encoding` in requests.
pub const ACCEPTED: &str = "gzip, deflate, zstd";
/// Maximum window of zstd as a content coding (RFC 9659).
const ZSTD_WINDOW_BYTES_MAX: u64 = 8 << 20;
/// Maximum codings of a body.
const CODINGS_MAX: usize = 3;
/// Maximum characters of an unknown coding in a message.
const NAME_CHARS_MAX: usize = 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Gzip,
    Deflate,
    Zstd,
}

/// The codings of a body, in the order in which they were applied. Empty for a plain body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Codings(Vec<Coding>);

/// Why an encoded body cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CodingError {
    #[error(
        "the server sent Content-Encoding: {0}, which dropdex neither requested nor supports; it supports {ACCEPTED}"
    )]
    Unknown(String),
    #[error(
        "the server sent Content-Encoding: {0}, but the body is not coded so or is damaged: {1}"
    )]
    Damaged(String, io::Error),
    #[error("the body has more than {0} bytes when it is decoded")]
    TooLarge(u64),
}

impl Codings {
    /// Reads `Content-Encoding`.
    ///
    /// # Errors
    /// A coding is unknown.
    pub fn of(headers: &HeaderMap) -> Result<Codings, CodingError> {
        let mut codings = Vec::new();
        for line in headers.get_all(CONTENT_ENCODING) {
            let line = String::from_utf8_lossy(line.as_bytes());
            for name in line.split(',').map(str::trim) {
                codings.push(match name.to_ascii_lowercase().as_str() {
                    "" | "identity" | "none" => continue,
                    "gzip" | "x-gzip" => Coding::Gzip,
                    "deflate" => Coding::Deflate,
                    "zstd" => Coding::Zstd,
                    _ => return Err(unknown(name)),
                });
            }
        }
        match codings.len() {
            0..=CODINGS_MAX => Ok(Codings(codings)),
            _ => Err(CodingError::Unknown(Codings(codings).names())),
        }
    }

    /// Whether the body is plain.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Decodes a body to at most `most` bytes.
    ///
    /// # Errors
    /// The body has another coding, is damaged, or is too large.
    pub fn decode(&self, body: Vec<u8>, most: usize) -> Result<Vec<u8>, CodingError> {
        // Responses without content may still declare a coding.
        if self.is_empty() || body.is_empty() {
            return Ok(body);
        }
        let mut decoded = Vec::new();
        self.copy(&body[..], &mut decoded, most as u64)?;
        Ok(decoded)
    }

    /// Decodes `body` into `into`, at most `most` bytes. Returns the number of decoded bytes.
    ///
    /// # Errors
    /// The errors of [`Codings::decode`], or `into` cannot be written.
    pub fn copy(
        &self,
        body: impl BufRead,
        into: &mut impl io::Write,
        most: u64,
    ) -> Result<u64, CodingError> {
        let damaged = |err| CodingError::Damaged(self.names(), err);
        let mut body: Box<dyn BufRead + '_> = Box::new(body);
        for coding in self.0.iter().rev() {
            body = coding.reader(body).map_err(damaged)?;
        }
        let copied = io::copy(&mut (&mut body).take(most), into).map_err(damaged)?;
        let is_longer = !body.fill_buf().map_err(damaged)?.is_empty();
        if is_longer { Err(CodingError::TooLarge(most)) } else { Ok(copied) }
    }

    fn names(&self) -> String {
        let name = |coding: &Coding| match coding {
            Coding::Gzip => "gzip",
            Coding::Deflate => "deflate",
            Coding::Zstd => "zstd",
        };
        self.0.iter().map(name).collect::<Vec<_>>().join(", ")
    }
}

fn unknown(name: &str) -> CodingError {
    let name = name.chars().filter(|c| !c.is_control()).take(NAME_CHARS_MAX).collect();
    CodingError::Unknown(name)
}

impl Coding {
    fn reader<'a>(self, mut body: Box<dyn BufRead + 'a>) -> io::Result<Box<dyn BufRead + 'a>> {
        Ok(match self {
            Coding::Gzip => Box::new(BufReader::new(MultiGzDecoder::new(body))),
            // The standard means zlib; some servers send bare deflate.
            Coding::Deflate if is_zlib(body.fill_buf()?) => {
                Box::new(BufReader::new(ZlibDecoder::new(body)))
            }
            Coding::Deflate => Box::new(BufReader::new(DeflateDecoder::new(body))),
            Coding::Zstd => {
                let frame = StreamingDecoder::new_with_max_window_size(body, ZSTD_WINDOW_BYTES_MAX);
                Box::new(BufReader::new(frame.map_err(io::Error::other)?))
            }
        })
    }
}

/// Whether these bytes are a zlib header (RFC 1950 §2.2).
fn is_zlib(start: &[u8]) -> bool {
    let [first, second, ..] = *start else { return false };
    first & 0x0f == 8 && (u16::from(first) << 8 | u16::from(second)) % 31 == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::read::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use hyper::header::HeaderValue;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    const BODY: &[u8] = b"{\"objectClassName\":\"domain\"}";

    fn packed(mut encoder: impl Read) -> Vec<u8> {
        let mut packed = Vec::new();
        encoder.read_to_end(&mut packed).expect("memory");
        packed
    }

    fn gzip(body: &[u8]) -> Vec<u8> {
        packed(GzEncoder::new(body, Compression::default()))
    }

    fn codings(lines: &[&str]) -> Result<Codings, CodingError> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(CONTENT_ENCODING, HeaderValue::from_str(line).expect("a value"));
        }
        Codings::of(&headers)
    }

    #[test]
    fn bodies_are_decoded_by_their_codings() {
        let zlib = packed(ZlibEncoder::new(BODY, Compression::default()));
        let bare = packed(DeflateEncoder::new(BODY, Compression::default()));
        let zstd = compress_to_vec(BODY, CompressionLevel::Fastest);
        for (lines, body) in [
            (&["gzip"][..], gzip(BODY)),
            (&["X-GZip"], gzip(BODY)),
            (&["gzip"], [gzip(&BODY[..9]), gzip(&BODY[9..])].concat()),
            (&["deflate"], zlib.clone()),
            (&["deflate"], bare),
            (&["zstd"], zstd),
            (&["deflate, gzip"], gzip(&zlib)),
            (&["deflate", "gzip"], gzip(&zlib)),
            (&[], BODY.to_vec()),
            (&["identity"], BODY.to_vec()),
            (&["", " none "], BODY.to_vec()),
        ] {
            let codings = codings(lines).expect("known");
            let decoded = codings.decode(body.clone(), BODY.len()).expect("it decodes");
            assert_eq!(decoded, BODY, "{lines:?}");
            if !codings.is_empty() {
                let large = codings.decode(body.clone(), BODY.len() - 1).expect_err("too large");
                assert!(matches!(large, CodingError::TooLarge(_)), "{lines:?}: {large}");
                let cut = codings.decode(body[..body.len() - 1].to_vec(), 999);
                assert!(cut.is_err() || lines == ["zstd"], "{lines:?}");
            }
        }
    }

    #[test]
    fn unknown_and_wrong_codings_are_named() {
        for line in ["br", "compress", "gzip, br", "dcb", "gzip, gzip, gzip, gzip"] {
            let told = codings(&[line]).expect_err("unknown").to_string();
            assert!(told.contains("Content-Encoding: "), "{told}");
            assert!(told.contains("br") || !line.contains("br"), "{told}");
        }
        let gzip = codings(&["gzip"]).expect("known");
        let told = gzip.decode(BODY.to_vec(), 999).expect_err("plain").to_string();
        assert!(told.contains("Content-Encoding: gzip") && told.contains("not coded"), "{told}");
        assert_eq!(gzip.decode(Vec::new(), 999).expect("no body"), b"");
    }
}
