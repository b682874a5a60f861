//! Nodes that join a cluster with the backup that another one left in the store of files.

use serde_json::Value;

use super::nodes::{EMAIL, Node, claim, ready};
use super::{SOON, files};
use crate::common::ledger::Shown;
use crate::common::nats::Nats;
use crate::common::s3::S3Service;
use crate::common::{Client, Site, wait};

/// A cluster with data from before it: the log alone does not give it to a new node.
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
    let add = |client: &mut Client| {
        let added = client.send("POST", "/api/v1/portfolio", &claim("solar.com"));
        assert_eq!(added.status, 201, "{}", added.text());
    };
    add(&mut client);

    let new = node(Site::new(), 1);
    new.run(&["cluster", "join"]).assert_failed(1, &["dropdex cluster backup"]);
    let stored = old.ok(&["cluster", "backup"]);
    let stored: Value = serde_json::from_str(&stored).expect("JSON");
    add(&mut client);
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
    a_new_node_joins(&Nats::start(3), &bucket.section());
}
