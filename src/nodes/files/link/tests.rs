use super::*;
use crate::index::generation::build::{BuildSettings, Keep};
use crate::index::generation::open;
use crate::intake::request::{Ingest, Lists, Request, Task};
use crate::intake::run;
use crate::vocab::clock::Clock;
use crate::vocab::day::Day;
use crate::zones;

fn today() -> Day {
    "2026-11-26".parse().expect("a day")
}

fn site(folder: &Path) -> Site {
    fs::create_dir_all(folder).expect("a folder");
    Site {
        data: folder.join("data"),
        index: folder.join("index"),
        build: BuildSettings::default(),
        compact_above: 0,
        worker: Default::default(),
        clock: Clock::pinned_to(today()),
        zone_names: zones::Keep::default(),
        tables: Vec::new(),
    }
}

fn ingest(site: &Site, name: &str, names: &str) {
    let file = site.data.with_file_name(name);
    fs::write(&file, names).expect("written");
    let ingest = Ingest {
        lists: Lists::Files { files: vec![file], format: None },
        drop_date: Some(today()),
        observed_at: None,
        origin: None,
        zone: None,
        rebuild: true,
    };
    let outcome = run::run(&Request { site: site.clone(), task: Task::Ingest(ingest) }, &());
    assert!(outcome.error().is_none(), "{:?}", outcome.error());
}

/// Copies linked files to the download folders.
fn send(files: &Linked, to: &Site) {
    let (data, index) = incoming(to);
    for (path, from) in &files.files {
        let folder = if path.starts_with("index/") { &index } else { &data };
        let target = folder.join(path);
        fs::create_dir_all(target.parent().expect("a folder")).expect("made");
        fs::copy(from, target).expect("copied");
    }
}

fn sources(site: &Site) -> Vec<String> {
    let corpus = Corpus::open(&site.data).expect("opens");
    corpus.metas().expect("metas").into_iter().map(|meta| meta.source).collect()
}

fn names(site: &Site) -> u32 {
    open::open_current(&site.index).expect("opens").index.manifest().names
}

#[test]
fn installed_files_replace_those_of_a_node() {
    let folder = tempfile::tempdir().expect("a folder");
    let (one, other) = (site(&folder.path().join("one")), site(&folder.path().join("other")));
    ingest(&one, "first.txt", "alpha.com\nbeta.com\n");
    ingest(&other, "own.txt", "gamma.com\n");
    fs::create_dir_all(other.data.join(CHANGES)).expect("made");
    fs::write(other.data.join("changes/7.seg"), "theirs").expect("written");
    fs::create_dir_all(one.data.join(CHANGES)).expect("made");
    fs::write(one.data.join("changes/3.seg"), "ours").expect("written");

    let linked = link(&one).expect("linked");
    assert!(linked.files.contains_key("changes/3.seg"), "{:?}", linked.files);
    assert!(linked.files.keys().all(|path| !path.contains("LOCK")), "{:?}", linked.files);
    // Writes after the link are not sent.
    ingest(&one, "second.txt", "delta.com\n");
    send(&linked, &other);
    let set_aside = install(&other).expect("installed");
    assert_eq!(
        (set_aside.as_slice(), sources(&other).as_slice()),
        (&["own.txt".to_owned()][..], &["first.txt".to_owned()][..])
    );
    assert!(other.data.join("set-aside/batch-0000000001.ddb.0").exists());
    assert!(
        !other.data.join("changes/7.seg").exists() && other.data.join("changes/3.seg").exists()
    );
    // Both nodes have a generation 1; this node keeps its own until it adopts the other's.
    build::adopt(&other.index, linked.generation, Keep::default()).expect("adopted");
    assert_eq!(names(&other), 2);

    // A node continues from the installed files. Lists that another file contains are not set aside.
    let linked = link(&one).expect("linked");
    send(&linked, &other);
    assert_eq!(install(&other).expect("installed"), Vec::<String>::new());
    build::adopt(&other.index, linked.generation, Keep::default()).expect("adopted");
    assert_eq!((sources(&other), names(&other)), (sources(&one), 3));
    ingest(&other, "third.txt", "epsilon.com\n");
    assert_eq!((sources(&other).len(), names(&other)), (3, 4));
}

#[test]
fn facts_and_sales_are_those_of_the_leader() {
    let folder = tempfile::tempdir().expect("a folder");
    let (one, other) = (site(&folder.path().join("one")), site(&folder.path().join("other")));
    ingest(&one, "first.txt", "alpha.com\n");
    let put = |site: &Site, path: &str, text: &str| {
        let path = site.data.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    };
    for path in ["facts/acme.ddf", "facts/exits/com-3.csv", "facts/.zone/draft", "sales/own.csv"] {
        put(&one, path, "ours");
        put(&other, path, "theirs");
    }
    put(&other, "facts/gone.ddf", "theirs");
    put(&other, "sales/gone.csv", "theirs");
    let before = loose_files(&one).expect("listed");
    let paths: Vec<_> = before.iter().map(|(path, ..)| path.clone()).collect();
    let shared = ["facts/acme.ddf", "facts/exits/com-3.csv", "sales/own.csv"];
    assert_eq!(paths, shared.map(|path| one.data.join(path)));

    let linked = link(&one).expect("linked");
    send(&linked, &other);
    install(&other).expect("installed");
    let read = |path: &str| fs::read_to_string(other.data.join(path)).ok();
    for path in shared {
        assert_eq!(read(path).as_deref(), Some("ours"), "{path}");
    }
    assert_eq!(read("facts/.zone/draft").as_deref(), Some("theirs"), "drafts are of one node");
    assert_eq!((read("facts/gone.ddf"), read("sales/gone.csv")), (None, None));

    // A new, a changed and a removed file are noticed, and the last one vanishes elsewhere too.
    put(&one, "sales/own.csv", "longer than before");
    let changed = loose_files(&one).expect("listed");
    assert_ne!(before, changed);
    fs::remove_file(one.data.join("sales/own.csv")).expect("removed");
    assert_ne!(changed, loose_files(&one).expect("listed"));
    let linked = link(&one).expect("linked");
    send(&linked, &other);
    install(&other).expect("installed");
    assert_eq!(read("sales/own.csv"), None);
}

#[test]
fn only_known_paths_have_a_place() {
    let site = site(tempfile::tempdir().expect("a folder").path());
    assert_eq!(place(&site, "corpus/a.ddb").expect("a place"), site.data.join("corpus/a.ddb"));
    assert_eq!(place(&site, "index/gen-1/x").expect("a place"), site.index.join("gen-1/x"));
    for path in ["journal/1.seg", "x", ""] {
        let refused = place(&site, path).expect_err("no place").to_string();
        assert!(refused.contains("newer dropdex"), "{refused}");
    }
}
