//! What packages need of the binary: the health check, completions and manual pages.

use std::fs;
use std::net::TcpListener;
use std::time::Duration;

use crate::common::{Site, TODAY, wait};

const SOON: Duration = Duration::from_secs(60);

#[test]
fn health_finds_the_server_of_the_settings() {
    let site = Site::with_a_name_of_each_kind();
    let server = site.serve_with(&["--today", TODAY, "--drain-delay", "60"]);
    let address = server.address();
    let settings = site.settings(&format!("listen = \"0.0.0.0:{}\"\n", address.port()));
    let health = ["health", "--config", &settings];
    let ready = ["health", "--config", &settings, "--ready"];
    assert_eq!(site.ok(&health), format!("healthy: http://{address}/api/health\n"));
    assert_eq!(site.ok(&ready), format!("ready: http://{address}/api/ready\n"));
    server.signal("TERM");
    wait::until(SOON, "the drain", || site.run(&ready).code == Some(1));
    site.run(&ready).assert_failed(1, &["/api/ready returned 503", "environment is draining"]);
    site.ok(&health);
    server.kill();
    site.run(&health).assert_failed(1, &["no healthy server", &address.to_string(), "refused"]);
}

#[test]
fn health_does_not_wait_for_a_server_that_hangs() {
    let site = Site::new();
    let hangs = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = hangs.local_addr().expect("an address").to_string();
    let ended = site.run(&["health", "--listen", &address, "--timeout", "1"]);
    ended.assert_failed(1, &["no healthy server", "no response within 1 s"]);
    let ended = site.run(&["health", "--listen", "127.0.0.1:0"]);
    ended.assert_failed(1, &["takes a free port", "--listen"]);
}

#[test]
fn completions_and_manual_pages_need_no_valid_settings() {
    let site = Site::new();
    let broken = site.settings("unknown = 1\n");
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = site.ok(&["--config", &broken, "completions", shell]);
        assert!(script.contains("sources") && script.contains("set-plan"), "{shell}: {script}");
    }
    let folder = site.lists().join("man");
    fs::create_dir(&folder).expect("made");
    site.ok(&["--config", &broken, "man", folder.to_str().expect("UTF-8")]);
    let page = |name: &str| fs::read_to_string(folder.join(name)).expect(name);
    assert!(page("dropdex.1").contains("dropdex\\-sources(1)"));
    assert!(page("dropdex-account-add.1").contains("\\-\\-plan"));
    assert!(!folder.join("dropdex-man.1").exists(), "hidden commands have no page");
}
