//! Opens a file as text: unpacks it within bounds and converts it to UTF-8.
//!
//! The container format is recognised by its first bytes, never by the file name.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use encoding_rs::{Encoding, UTF_16BE, UTF_16LE};
use encoding_rs_io::DecodeReaderBytesBuilder;
use flate2::bufread::GzDecoder;
use flate2::read::DeflateDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use zip::{CompressionMethod, ZipArchive};

use super::error::FeedProblem;

/// Number of leading bytes by which the format of a text is recognised.
pub(super) const HEAD_BYTES: usize = 64 << 10;
/// Number of unpacked bytes that are allowed at any ratio, for headers and small repetitive lists.
const FREE_BYTES: u64 = 64 << 20;
/// Maximum unpacked bytes per packed byte beyond [`FREE_BYTES`]. Real lists have ratios of 3 to 15.
const RATIO_MAX: u64 = 100;
/// Maximum unpacked bytes: larger than any zone file, smaller than a disk.
const UNPACKED_BYTES_MAX: u64 = 64 << 30;
/// Maximum window of a zstd frame: the default limit of the zstd tool.
const ZSTD_WINDOW_BYTES_MAX: u64 = 128 << 20;
/// Number of leading bytes by which UTF-16 without a byte-order mark is recognised.
const UTF16_BYTES: usize = 64;
const READ_BYTES: usize = 128 << 10;

pub(super) type Input = Box<dyn Read + Send>;

/// The text of a list before its format is recognised.
pub(super) struct ListText {
    /// The whole text including the head, without a byte-order mark.
    pub(super) input: Input,
    /// The first [`HEAD_BYTES`] of the text, or the whole text if it is shorter.
    pub(super) head: Vec<u8>,
    /// Name of the file inside a zip archive.
    pub(super) inner_name: Option<String>,
    /// Raw bytes of the file consumed so far.
    pub(super) bytes_read: Arc<AtomicU64>,
}

/// Opens a file and unpacks its head.
pub(super) fn open(path: &Path) -> Result<ListText, FeedProblem> {
    let mut file = File::open(path).map_err(FeedProblem::Read)?;
    let bytes_read = Arc::new(AtomicU64::new(0));
    let container = Container::detect(&mut file)?;
    let (unpacked, inner_name) = container.unpack(file, &bytes_read)?;
    let (start, unpacked) = peek(unpacked, UTF16_BYTES)?;
    let decoded = DecodeReaderBytesBuilder::new()
        .encoding(utf16(&start))
        .utf8_passthru(true)
        .strip_bom(true)
        .build(unpacked);
    let (head, input) = peek(Box::new(decoded), HEAD_BYTES)?;
    if head.contains(&0) {
        return Err(FeedProblem::Binary);
    }
    Ok(ListText { input, head, inner_name, bytes_read })
}

/// Opens a file and unpacks it, without a conversion.
pub(super) fn open_unpacked(path: &Path) -> Result<Input, FeedProblem> {
    let mut file = File::open(path).map_err(FeedProblem::Read)?;
    let container = Container::detect(&mut file)?;
    Ok(container.unpack(file, &Arc::default())?.0)
}

/// Whether the file is plain text without a final line break, which an unfinished write may leave.
/// Truncated packed files and JSON are detected when read.
///
/// # Errors
/// The file cannot be read.
pub fn ends_within_a_line(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    let len = file.metadata()?.len();
    if len == 0 || !matches!(Container::detect(&mut file), Ok(Container::Plain)) {
        return Ok(false);
    }
    let mut start = Vec::new();
    (&mut file).take(UTF16_BYTES as u64).read_to_end(&mut start)?;
    let has_mark = start.starts_with(&[0xff, 0xfe]) || start.starts_with(&[0xfe, 0xff]);
    let is_binary = start.contains(&0) && !has_mark && utf16(&start).is_none();
    let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&start);
    let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
    if is_binary || matches!(first, Some(b'{' | b'[')) {
        return Ok(false);
    }
    let mut end = Vec::new();
    file.seek(SeekFrom::Start(len.saturating_sub(2)))?;
    file.read_to_end(&mut end)?;
    // In UTF-16, one of the two bytes of a line break is 0.
    let end = end.strip_suffix(&[0]).unwrap_or(&end);
    Ok(!end.ends_with(b"\n") && !end.ends_with(b"\r"))
}

/// Returns the first `bytes` of an input, and the complete input.
fn peek(mut input: Input, bytes: usize) -> Result<(Vec<u8>, Input), FeedProblem> {
    let mut head = Vec::new();
    (&mut input).take(bytes as u64).read_to_end(&mut head)?;
    let whole = Cursor::new(head.clone()).chain(input);
    Ok((head, Box::new(whole)))
}

/// Recognises UTF-16 without a byte-order mark if the text starts with ASCII, so that every second
/// byte is 0.
fn utf16(start: &[u8]) -> Option<&'static Encoding> {
    let (units, _) = start.as_chunks::<2>();
    let is_ascii = |low: u8, high: u8| low != 0 && low.is_ascii() && high == 0;
    let all = |fits: fn(&[u8; 2]) -> (u8, u8)| {
        units.len() >= 4 && units.iter().map(fits).all(|(low, high)| is_ascii(low, high))
    };
    if all(|&[first, second]| (first, second)) {
        return Some(UTF_16LE);
    }
    all(|&[first, second]| (second, first)).then_some(UTF_16BE)
}

#[derive(Clone, Copy)]
enum Container {
    Plain,
    Gzip,
    Zstd,
    Zip,
}

impl Container {
    /// Recognises the container by its first bytes and rewinds the file.
    fn detect(file: &mut File) -> Result<Container, FeedProblem> {
        let mut magic = Vec::new();
        file.take(8).read_to_end(&mut magic).map_err(FeedProblem::Read)?;
        file.rewind().map_err(FeedProblem::Read)?;
        match magic[..] {
            [0x1f, 0x8b, ..] => Ok(Container::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Ok(Container::Zstd),
            // A skippable frame, with which parallel compressors start (RFC 8878 §3.1.2).
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Ok(Container::Zstd),
            [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Ok(Container::Zip),
            [b'B', b'Z', b'h', b'1'..=b'9', b'1', b'A', ..] => Err(FeedProblem::Container("bzip2")),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Err(FeedProblem::Container("xz")),
            [b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c, ..] => Err(FeedProblem::Container("7-Zip")),
            // The container of Excel's files until 2007.
            [0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1] => {
                Err(FeedProblem::Spreadsheet("Excel, .xls"))
            }
            _ => Ok(Container::Plain),
        }
    }

    fn word(self) -> &'static str {
        match self {
            Container::Plain => "plain",
            Container::Gzip => "gzip",
            Container::Zstd => "zstd",
            Container::Zip => "zip",
        }
    }

    /// Returns the unpacked bytes, and the name of the file in a zip archive.
    fn unpack(
        self,
        file: File,
        bytes_read: &Arc<AtomicU64>,
    ) -> Result<(Input, Option<String>), FeedProblem> {
        let (decoder, inner_name): (Input, _) = match self {
            Container::Plain => (Box::new(CountingReader::new(file, bytes_read)), None),
            Container::Gzip => {
                (Box::new(GzipMembers::new(buffered(CountingReader::new(file, bytes_read)))), None)
            }
            Container::Zstd => {
                (Box::new(ZstdFrames::new(buffered(CountingReader::new(file, bytes_read)))), None)
            }
            Container::Zip => {
                let (decoder, name) = zip_member(file, bytes_read)?;
                (decoder, Some(name))
            }
        };
        let bounded =
            Bounded { decoder, container: self, packed: Arc::clone(bytes_read), unpacked: 0 };
        Ok((Box::new(bounded), inner_name))
    }
}

fn buffered<R: Read>(input: R) -> BufReader<R> {
    BufReader::with_capacity(READ_BYTES, input)
}

/// Counts the raw bytes read from the file, and repeats interrupted reads.
struct CountingReader<R> {
    input: R,
    bytes_read: Arc<AtomicU64>,
}

impl<R> CountingReader<R> {
    fn new(input: R, bytes_read: &Arc<AtomicU64>) -> CountingReader<R> {
        CountingReader { input, bytes_read: Arc::clone(bytes_read) }
    }
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = loop {
            match self.input.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        self.bytes_read.fetch_add(got as u64, Ordering::Relaxed);
        Ok(got)
    }
}

/// Stops decompression bombs, and adds the container's name to errors of the decoder.
struct Bounded {
    decoder: Input,
    container: Container,
    packed: Arc<AtomicU64>,
    unpacked: u64,
}

impl Bounded {
    fn allowed(&self, packed: u64) -> u64 {
        match self.container {
            Container::Plain => u64::MAX,
            _ => (FREE_BYTES + RATIO_MAX * packed).min(UNPACKED_BYTES_MAX),
        }
    }
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.decoder.read(buffer).map_err(|source| match self.container {
            Container::Plain => source,
            container => FeedProblem::Unpack { container: container.word(), source }.into(),
        })?;
        self.unpacked += got as u64;
        let packed = self.packed.load(Ordering::Relaxed);
        if self.unpacked > self.allowed(packed) {
            return Err(FeedProblem::Bomb { packed, unpacked: self.unpacked }.into());
        }
        Ok(got)
    }
}

/// Skips zero bytes, with which tapes and some transfers pad a file. Returns whether the file ends
/// there.
fn is_padding(input: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let held = input.fill_buf()?;
        let zeros = held.iter().take_while(|&&byte| byte == 0).count();
        if zeros == 0 {
            return Ok(held.is_empty());
        }
        input.consume(zeros);
    }
}

/// Reads all members of a gzip file (RFC 1952 §2.2). Zero bytes may follow the last member, but no
/// other bytes, because a damaged member would look the same.
struct GzipMembers<R> {
    /// The current member; `None` at the end.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> GzipMembers<R> {
    fn new(input: R) -> GzipMembers<R> {
        GzipMembers { member: Some(GzDecoder::new(input)) }
    }
}

impl<R: BufRead> Read for GzipMembers<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let got = member.read(buffer)?;
            if got > 0 || buffer.is_empty() {
                return Ok(got);
            }
            let mut input = self.member.take().expect("there is one").into_inner();
            if !is_padding(&mut input)? {
                self.member = Some(GzDecoder::new(input));
            }
        }
        Ok(0)
    }
}

/// Reads all frames of a zstd file and verifies their checksums.
struct ZstdFrames<R> {
    input: BufReader<R>,
    decoder: FrameDecoder,
    in_frame: bool,
}

impl<R: Read> ZstdFrames<R> {
    fn new(input: BufReader<R>) -> ZstdFrames<R> {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(ZSTD_WINDOW_BYTES_MAX);
        ZstdFrames { input, decoder, in_frame: false }
    }

    /// Reads the next frame's header; returns false at the end of the file.
    fn start_frame(&mut self) -> io::Result<bool> {
        while !is_padding(&mut self.input)? {
            match self.decoder.reset(&mut self.input) {
                Ok(()) => {
                    self.in_frame = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => self.skip(u64::from(length))?,
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        Ok(false)
    }

    fn skip(&mut self, length: u64) -> io::Result<()> {
        let skipped = io::copy(&mut (&mut self.input).take(length), &mut io::sink())?;
        if skipped < length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }

    fn finish_frame(&mut self) -> io::Result<()> {
        self.in_frame = false;
        let stored = self.decoder.get_checksum_from_data();
        if stored.is_some() && stored != self.decoder.get_calculated_checksum() {
            let why = "the checksum of a frame differs";
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        Ok(())
    }
}

impl<R: Read> Read for ZstdFrames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.in_frame && !self.start_frame()? {
                return Ok(0);
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                self.decoder
                    .decode_blocks(&mut self.input, BlockDecodingStrategy::UptoBlocks(1))
                    .map_err(io::Error::other)?;
            }
            if self.decoder.can_collect() > 0 {
                return self.decoder.read(buffer);
            }
            self.finish_frame()?;
        }
    }
}

/// Opens the only file of a zip archive and returns its name.
///
/// The `zip` crate only locates the data, because its readers borrow the archive and the reader here
/// must own it.
fn zip_member(mut file: File, bytes_read: &Arc<AtomicU64>) -> Result<(Input, String), FeedProblem> {
    let member = ZipMember::find(&file).map_err(|error| match error {
        ZipRefusal::Files(files) => FeedProblem::ZipFiles { files },
        ZipRefusal::Spreadsheet(kind) => FeedProblem::Spreadsheet(kind),
        ZipRefusal::Why(why) => FeedProblem::Zip(why),
    })?;
    file.seek(SeekFrom::Start(member.start)).map_err(FeedProblem::Read)?;
    let packed = buffered(CountingReader::new(file, bytes_read)).take(member.packed_bytes);
    let decoder: Input = match member.method {
        CompressionMethod::Stored => Box::new(packed),
        _ => Box::new(DeflateDecoder::new(packed)),
    };
    let checked = CrcReader { decoder, crc: crc32fast::Hasher::new(), expected: member.crc };
    Ok((Box::new(checked), member.name))
}

struct ZipMember {
    name: String,
    start: u64,
    packed_bytes: u64,
    crc: u32,
    method: CompressionMethod,
}

enum ZipRefusal {
    Files(usize),
    Spreadsheet(&'static str),
    Why(String),
}

impl From<zip::result::ZipError> for ZipRefusal {
    fn from(error: zip::result::ZipError) -> ZipRefusal {
        ZipRefusal::Why(error.to_string())
    }
}

impl ZipMember {
    fn find(file: &File) -> Result<ZipMember, ZipRefusal> {
        let mut archive = ZipArchive::new(BufReader::new(file))?;
        if let Some(kind) = spreadsheet(&archive) {
            return Err(ZipRefusal::Spreadsheet(kind));
        }
        let filtered = |is_wanted: fn(&str) -> bool| -> Vec<usize> {
            let wanted = |&at: &usize| archive.name_for_index(at).is_some_and(is_wanted);
            (0..archive.len()).filter(wanted).collect()
        };
        let mut files = filtered(|name| !name.ends_with('/') && !is_hidden(name));
        if files.is_empty() {
            files = filtered(|name| !name.ends_with('/'));
        }
        let [only] = files[..] else { return Err(ZipRefusal::Files(files.len())) };
        let member = archive.by_index_raw(only)?;
        if member.encrypted() {
            return Err(ZipRefusal::Why("it is encrypted".into()));
        }
        let method = member.compression();
        if !matches!(method, CompressionMethod::Stored | CompressionMethod::Deflated) {
            return Err(ZipRefusal::Why(format!("it is packed with {method}")));
        }
        let start = member.data_start();
        Ok(ZipMember {
            name: member.name().to_owned(),
            start: start.ok_or_else(|| ZipRefusal::Why("its data was not found".into()))?,
            packed_bytes: member.compressed_size(),
            crc: member.crc32(),
            method,
        })
    }
}

/// Returns the kind of a spreadsheet, which is a zip archive of XML files.
fn spreadsheet<R: Read + Seek>(archive: &ZipArchive<R>) -> Option<&'static str> {
    let has = |start: &str| archive.file_names().any(|name| name.starts_with(start));
    if has("[Content_Types].xml") && has("xl/") {
        return Some("Excel, .xlsx");
    }
    (has("mimetype") && has("content.xml")).then_some("OpenDocument, .ods")
}

/// Returns true for files added by operating systems: metadata folders, thumbnails, and anything
/// hidden.
fn is_hidden(name: &str) -> bool {
    const ADDED: [&str; 3] = ["__MACOSX", "Thumbs.db", "desktop.ini"];
    name.split(['/', '\\']).any(|part| {
        part.starts_with('.') && !matches!(part, "." | "..")
            || ADDED.iter().any(|added| part.eq_ignore_ascii_case(added))
    })
}

/// Verifies the CRC-32 from the archive at the end of the data.
struct CrcReader {
    decoder: Input,
    crc: crc32fast::Hasher,
    expected: u32,
}

impl Read for CrcReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.decoder.read(buffer)?;
        self.crc.update(&buffer[..got]);
        if got > 0 || buffer.is_empty() {
            return Ok(got);
        }
        let found = self.crc.clone().finalize();
        if found != self.expected {
            let why = format!("CRC-32 is {found:08x}, {:08x} expected", self.expected);
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_end_within_a_line_are_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("list");
        let utf16 =
            |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
        for (bytes, is_cut) in [
            (b"a.com\nb.co".to_vec(), true),
            (b"a.com\nb.com\n".to_vec(), false),
            (b"a.com\r\nb.com\r".to_vec(), false),
            (b"a".to_vec(), true),
            (b"".to_vec(), false),
            (b"\xef\xbb\xbf {\"data\": []}".to_vec(), false),
            (b"[\"a.com\"".to_vec(), false),
            (b"\x1f\x8b\x08\x00".to_vec(), false),
            (b"\x00\x01 no list".to_vec(), false),
            (utf16("a.com\nb.com\n"), false),
            (utf16("a.com\nb.co"), true),
            (utf16("\u{feff}a.com\nb.co"), true),
        ] {
            std::fs::write(&path, &bytes).expect("written");
            assert_eq!(ends_within_a_line(&path).expect("read"), is_cut, "{bytes:?}");
        }
    }
}
