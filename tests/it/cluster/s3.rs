//! Files of a cluster in a bucket of a service that speaks the protocol of Amazon S3.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use dropdex::nodes::store::list::{ObjectKey, RelativePath};
use dropdex::nodes::store::objects::Objects as _;
use dropdex::nodes::store::s3::S3;
use dropdex::nodes::store::transfer::{Hashed, Transfer, is_like};

use super::files::{FETCHED_SOON, ingest, one_with_lists, until_it_has};
use super::nodes::{key, until_leader};
use crate::common::nats::Nats;
use crate::common::s3::{S3Service, SECRET};
use crate::common::{runs, wait};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().expect("a runtime")
}

#[test]
fn nodes_share_files_in_a_bucket() {
    let (nats, mut bucket) = (Nats::start(3), S3Service::seaweedfs());
    let nodes = one_with_lists(&nats, &bucket.section("cluster.s3"));
    let first = nodes[0].serve();
    until_leader(&nodes, 0, |it| it == 0);
    let servers = [first, nodes[1].serve(), nodes[2].serve()];
    let key = key(&nodes[0]);
    for server in &servers {
        until_it_has(&mut server.client_with(&key), "solar", 2);
    }
    ingest(&nodes[0], "fresh-one.com");
    for server in &servers {
        until_it_has(&mut server.client_with(&key), "fresh", 1);
    }
    let streams = nats.store_dir(0).join("jetstream/$G/streams");
    let streams = fs::read_dir(&streams).expect("streams").map(|it| it.expect("one").file_name());
    assert_eq!(streams.collect::<Vec<_>>(), ["dropdex"], "no files beside the log");
    // Without the bucket, all nodes continue to work, and new publications wait for it.
    bucket.kill();
    ingest(&nodes[0], "fresh-two.com");
    wait::until(FETCHED_SOON, "it says why", || servers[0].log().contains("object store"));
    for server in &servers {
        until_it_has(&mut server.client_with(&key), "fresh", 1);
    }
    bucket.start_again();
    for server in &servers {
        until_it_has(&mut server.client_with(&key), "fresh", 2);
    }
    nodes[0].compare();
}

/// Writes files of several parts; the files of different writers differ only in the last part.
fn files(folder: &Path, writer: usize) -> BTreeMap<RelativePath, PathBuf> {
    let write = |name: &str, bytes: Vec<u8>| {
        let path = folder.join(format!("{writer}-{name}"));
        fs::write(&path, bytes).expect("written");
        (RelativePath::parse(name).expect("a path"), path)
    };
    let large = (0..20 << 20).map(|at: u32| (at >> 3) as u8).collect();
    BTreeMap::from([write("large", large), write("own", vec![writer as u8; 1_000])])
}

/// Several writers upload at once, in part the same bytes, while one of them removes unused parts.
/// Each writer reads back the files that it wrote.
fn writers_do_not_disturb_each_other(service: &S3Service, writers: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let written: Vec<_> = thread::scope(|scope| {
        let write = |writer| {
            let client = service.client(SECRET);
            let sent = files(folder.path(), writer);
            scope.spawn(move || {
                let (transfer, mut hashed) = (Transfer::new(client, None), Hashed::default());
                let sent = transfer.upload(&sent, &[], &mut hashed);
                runtime().block_on(sent).expect("stored")
            })
        };
        let writing: Vec<_> = (0..writers).map(write).collect();
        let young = Transfer::new(service.client(SECRET), None);
        let removed = runtime().block_on(young.keep_only(&[], Duration::from_secs(3_600)));
        assert_eq!(removed.expect("listed"), 0, "all are recent");
        writing.into_iter().map(|it| it.join().expect("no panic")).collect()
    });
    let transfer = Transfer::new(service.client(SECRET), None);
    let fetch = |writer: usize| {
        let (key, list) = &written[writer];
        let to = folder.path().join(format!("to-{writer}"));
        runtime().block_on(async {
            assert_eq!(&transfer.list(*key).await.expect("read"), list);
            transfer.download(list, |path| Some(to.join(path.as_str()))).await.expect("fetched");
        });
        for (path, parts) in &list.files {
            assert!(is_like(&to.join(path.as_str()), parts).expect("read"), "{path}");
        }
        fs::remove_dir_all(&to).expect("removed");
    };
    (0..writers).for_each(fetch);
    // All publications except the last are deleted, with the files that only they refer to.
    let last = written.last().expect("a writer").0;
    let removed = runtime().block_on(transfer.keep_only(&[last], Duration::ZERO)).expect("removed");
    assert_eq!(removed, (writers - 1) * 2);
    fetch(writers - 1);
    let gone = runtime().block_on(transfer.list(written[0].0)).expect_err("removed");
    assert!(gone.to_string().contains("is not in the store"), "{gone}");
}

#[test]
fn writers_share_a_bucket() {
    writers_do_not_disturb_each_other(&S3Service::seaweedfs(), 2);
    if runs::full() {
        writers_do_not_disturb_each_other(&S3Service::moto(), 16);
    }
}

#[test]
fn a_refused_key_is_reported() {
    let service = S3Service::seaweedfs();
    let put = |client: S3| {
        let bytes = b"content";
        runtime().block_on(client.put(ObjectKey::of(bytes), bytes.as_slice().into()))
    };
    put(service.client(SECRET)).expect("stored");
    let refused = put(service.client("another")).expect_err("refused").to_string();
    assert!(refused.contains("SignatureDoesNotMatch"), "{refused}");
}
