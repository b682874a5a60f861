//! Files that people write: settings, passwords, certificates and tables, from any editor.

use std::fs;
use std::io;
use std::path::Path;

use encoding_rs::Encoding;

/// Reads a file. Text with a byte order mark, which Windows programs write, is converted to UTF-8
/// without one.
///
/// # Errors
/// The file cannot be read, or its text does not match its byte order mark.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    without_mark(fs::read(path)?)
}

fn without_mark(bytes: Vec<u8>) -> io::Result<Vec<u8>> {
    let Some((encoding, mark)) = Encoding::for_bom(&bytes) else { return Ok(bytes) };
    let (text, is_malformed) = encoding.decode_without_bom_handling(&bytes[mark..]);
    if is_malformed {
        let why = format!("the file is not {}, as its byte order mark says", encoding.name());
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    Ok(text.into_owned().into_bytes())
}

/// Reads a file as text.
///
/// # Errors
/// As [`read`], or the file is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    text(fs::read(path)?)
}

/// Returns the bytes of a file as text.
///
/// # Errors
/// The text does not match its byte order mark, or is not UTF-8.
pub fn text(bytes: Vec<u8>) -> io::Result<String> {
    let wrong = |_| io::Error::new(io::ErrorKind::InvalidData, "the file is not UTF-8 text");
    String::from_utf8(without_mark(bytes)?).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_order_marks_are_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("secret");
        let read = |bytes: &[u8]| {
            fs::write(&path, bytes).expect("written");
            read_text(&path).map_err(|err| err.kind())
        };
        assert_eq!(read("pä\r\n".as_bytes()).as_deref(), Ok("pä\r\n"));
        assert_eq!(read("\u{feff}pä\r\n".as_bytes()).as_deref(), Ok("pä\r\n"));
        assert_eq!(read(b"\xff\xfep\0\xe4\0\n\0").as_deref(), Ok("pä\n"));
        assert_eq!(read(b"\xfe\xff\0p\0\xe4").as_deref(), Ok("pä"));
        assert_eq!(read(b"\xef\xbb\xbf").as_deref(), Ok(""));
        for bad in [&b"p\xe4"[..], b"\xef\xbb\xbfp\xe4", b"\xff\xfep"] {
            assert_eq!(read(bad), Err(io::ErrorKind::InvalidData), "{bad:?}");
        }
        assert_eq!(
            read_text(&folder.path().join("none")).map_err(|err| err.kind()),
            Err(io::ErrorKind::NotFound)
        );
    }
}
