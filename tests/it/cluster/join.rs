//! Nodes that join a cluster with a backup in the file store, and clusters that are restarted from
//! one.

use serde_json::Value;

use super::nodes::{EMAIL, Node, add_claim, claim, key, ready, three};
use super::{SOON, files};
use crate::common::ledger::Shown;
use crate::common::nats::Nats;
use crate::common::s3::S3Service;
use crate::common::{Site, wait};

/// Checks a cluster that started with existing data, which a new node cannot get from the log
/// alone.
fn a_new_node_joins(nats: &Nats, more: &str) {
    let site = Site::with_a_name_of_each_kind();
    site.ok(&["account", "add", EMAIL, "--plan", "api"]);
    let node = |site, number| Node::of(site, &nats.urls(), number, more);
    let old = node(site, 0);
    old.ok(&["cluster", "init"]);
    let server = old.serve();
    wait::until(SOON, "it is there", || ready(&server)["checks"]["log"] == "ok");
    let key = old.ok(&["account", "key", EMAIL]).trim().to_owned();
    let mut client = server.client_with(&key);
    add_claim(&mut client, "solar.com");

    let new = node(Site::new(), 1);
    new.run(&["cluster", "join"]).assert_failed(1, &["dropdex cluster backup"]);
    let stored = old.ok(&["cluster", "backup"]);
    let stored: Value = serde_json::from_str(&stored).expect("JSON");
    add_claim(&mut client, "solar.com");
    let joined: Value = serde_json::from_str(&new.ok(&["cluster", "join"])).expect("JSON");
    assert_eq!(joined["state_digest"], stored["state_digest"]);
    assert_eq!(joined["seq"], stored["seq"]);
    let left = std::fs::read_dir(new.site.data()).expect("a folder").flatten();
    let left: Vec<_> = left.map(|it| it.file_name()).filter(|it| it != "journal").collect();
    assert!(left.is_empty(), "{left:?}");
    new.run(&["cluster", "join"]).assert_failed(1, &["there is a journal", "--replace"]);

    let joined = new.serve();
    let mut there = joined.client_with(&key);
    files::until_it_has(&mut there, "solar", 2);
    wait::until(SOON, "it reads what came later", || Shown::read(&mut there).claims.len() == 2);
    old.ok(&["cluster", "compare", "--nodes", "2"]);
}

#[test]
fn a_new_node_begins_with_the_backup_of_another() {
    a_new_node_joins(&Nats::start(3), "");
}

#[test]
fn a_new_node_begins_with_a_backup_in_a_bucket() {
    let bucket = S3Service::seaweedfs();
    a_new_node_joins(&Nats::start(3), &bucket.section("cluster.s3"));
}

#[test]
fn a_cluster_begins_again_with_a_backup() {
    let nats = Nats::start(3);
    let nodes = three(&nats);
    let mut servers = nodes.each_ref().map(Node::serve);
    let key = key(&nodes[0]);
    let mut client = servers[0].client_with(&key);
    add_claim(&mut client, "solar.com");
    let claims = Shown::read(&mut client).claims;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("kept");
    let file = file.to_str().expect("UTF-8");
    let kept: Value =
        serde_json::from_str(&nodes[0].ok(&["journal", "backup", file])).expect("JSON");
    add_claim(&mut client, "solar.de");

    let restore = ["cluster", "restore", file, "--i-accept-loss"];
    nodes[1].run(&restore[..3]).assert_failed(2, &["--i-accept-loss"]);
    nodes[1].run(&restore).assert_failed(1, &["`node-0` is running"]);
    nodes[1].run(&["cluster", "join", "--replace"]).assert_failed(1, &["a server is running"]);
    for server in servers {
        server.stop();
    }
    let restored: Value = serde_json::from_str(&nodes[1].ok(&restore)).expect("JSON");
    assert_eq!(restored["counts"], kept["counts"]);

    for node in &nodes {
        let joined = node.ok(&["cluster", "join", "--replace"]);
        let joined: Value = serde_json::from_str(&joined).expect("JSON");
        assert_eq!(joined["state_digest"], restored["state_digest"]);
        assert!(node.site.data().join("journal.before-join-1/LOCK").exists(), "it is kept");
    }
    servers = nodes.each_ref().map(Node::serve);
    let mut clients = servers.each_ref().map(|server| server.client_with(&key));
    assert_eq!(Shown::read(&mut clients[2]).claims, claims, "without later changes");
    wait::until(SOON, "writes are taken", || {
        clients[1].send("POST", "/api/v1/portfolio", &claim("solar.net")).status == 201
    });
    wait::until(SOON, "all nodes have it", || {
        clients.iter_mut().all(|client| Shown::read(client).claims.len() == 2)
    });
    nodes[0].compare();
}
