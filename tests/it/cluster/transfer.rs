//! Transfers of files through the object store of real servers, over a link of known bandwidth, which
//! is cut.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use dropdex::cluster::settings::SharedLogSettings;
use dropdex::nodes::jetstream::JetStream;
use dropdex::nodes::store::jetstream::Bucket;
use dropdex::nodes::store::list::{FileList, RelativePath};
use dropdex::nodes::store::transfer::{Downloaded, Hashed, Transfer, is_like};

use crate::common::nats::Nats;
use crate::common::proxy::Proxy;
use crate::common::runs;

/// Bandwidth of the link, equal to that of gigabit Ethernet.
const BYTES_PER_SECOND: u32 = 118 << 20;

fn bucket(servers: Vec<String>, node: &str) -> Bucket {
    Bucket::new(JetStream::new(SharedLogSettings {
        servers,
        stream: "dropdex".to_owned(),
        replicas: 3,
        credentials: None,
        ca_file: None,
        node: node.to_owned(),
    }))
}

/// Creates files of random bytes with a total of `mib` MiB.
fn files(folder: &Path, mib: usize) -> BTreeMap<RelativePath, PathBuf> {
    const FILE_MIB: usize = 512;
    let write = |(number, mib): (usize, usize)| {
        let path = folder.join(format!("file-{number}"));
        let mut bytes = blake3::Hasher::new().update(&number.to_le_bytes()).finalize_xof();
        let mut file = File::create(&path).expect("made");
        let mut piece = vec![0; 1 << 20];
        for _ in 0..mib {
            bytes.read_exact(&mut piece).and_then(|()| file.write_all(&piece)).expect("written");
        }
        (RelativePath::parse(&format!("index/file-{number}")).expect("a path"), path)
    };
    let sizes = (0..mib).step_by(FILE_MIB).map(|at| FILE_MIB.min(mib - at));
    sizes.enumerate().map(write).collect()
}

/// Returns the number of bytes of a folder's files that are on disk.
fn bytes_in(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files.map(|file| file.metadata().map_or(0, |facts| facts.blocks() * 512)).sum()
}

async fn download(
    transfer: &Transfer<Bucket>,
    list: &FileList,
    to: &Path,
) -> Result<Downloaded, dropdex::nodes::store::transfer::TransferError> {
    transfer.download(list, |path| Some(to.join(path.as_str()))).await
}

#[test]
fn files_cross_a_link_that_is_cut() -> io::Result<()> {
    let mib = runs::figure(40, 10 << 10);
    let nats = Nats::start(3);
    let (from, to) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let links: Vec<Proxy> = (0..3).map(|server| Proxy::to(nats.address(server))).collect();
    links.iter().for_each(|link| link.limit(BYTES_PER_SECOND));
    let sent = files(from.path(), mib);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let begun = Instant::now();
    let near = Transfer::new(bucket(nats.urls(), "near"), None);
    let (_, list) =
        runtime.block_on(near.upload(&sent, &[], &mut Hashed::default())).expect("sent");
    runs::say(&format!("{mib} MiB published in {:.1?}", begun.elapsed()));

    // There is one link, as for a node: the client stays with the server that it found first.
    let far = || vec![format!("nats://{}", links[0].address())];
    let begun = Instant::now();
    let first = Transfer::new(bucket(far(), "far"), None);
    // The process dies in the middle of the transfer, and the link with it.
    let (half, folder) = (list.bytes() / 2, to.path().join("index"));
    let interrupted = runtime.block_on(async {
        tokio::select! {
            done = download(&first, &list, to.path()) => Some(done),
            () = until_it_has(&folder, half) => None,
        }
    });
    assert!(interrupted.is_none(), "it was done before: {interrupted:?}");
    drop(first);
    let before = begun.elapsed();
    links[0].cut();
    std::thread::sleep(Duration::from_millis(500));
    links[0].heal();
    let begun = Instant::now();
    let second = Transfer::new(bucket(far(), "far"), None);
    let done = runtime.block_on(download(&second, &list, to.path())).expect("fetched");
    let took = before + begun.elapsed();
    let share = list.bytes() as f64 / took.as_secs_f64() / f64::from(BYTES_PER_SECOND);
    runs::say(&format!(
        "{mib} MiB fetched in {took:.1?}, {:.0} % of the link, {} MiB of it after the interruption",
        share * 100.0,
        done.fetched >> 20
    ));
    assert!(done.kept > 0, "{done:?}");
    for (path, parts) in &list.files {
        assert!(is_like(&to.path().join(path.as_str()), parts)?, "{path}");
    }
    Ok(())
}

/// Waits until the files in a folder have this many bytes.
async fn until_it_has(folder: &Path, bytes: u64) {
    while bytes_in(folder) < bytes {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
