//! Packages: what `data/packaging/release` packs, and what packages need of the binary: the health check,
//! completions and manual pages. `tests/operator` installs and runs them.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::common::process::finish;
use crate::common::{Site, TODAY, runs, wait};

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
    // A variable takes precedence over the file, as in the image.
    let elsewhere = site.write("elsewhere.toml", "listen = \"127.0.0.1:9\"\n");
    let mut command = site.command(&["health", "--config", elsewhere.to_str().expect("UTF-8")]);
    let found = command.env("DROPDEX_LISTEN", format!("0.0.0.0:{}", address.port())).output();
    assert!(found.expect("it runs").status.success());
    let mut command = site.command(&["doctor", "--offline"]);
    let found = command.env("DROPDEX_LISTEN", "0.0.0.0:8080").output().expect("it runs");
    let found = String::from_utf8_lossy(&found.stdout).into_owned();
    assert!(found.contains("no certificate; a proxy in front must have one"), "{found}");
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

/// A file of the project.
fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|err| panic!("{}: {err}", path.display()))
}

/// Runs a program that must succeed, in a folder, and returns its standard output.
fn run(folder: &Path, program: &str, args: &[&str]) -> String {
    let mut command = Command::new(program);
    command.args(args).current_dir(folder);
    let ended = finish(command);
    assert_eq!(ended.code, Some(0), "{ended}");
    ended.stdout
}

/// Returns the blob of an image that a descriptor names, after a comparison with its digest.
fn blob(image: &Path, descriptor: &Value) -> Vec<u8> {
    let digest = descriptor["digest"].as_str().and_then(|it| it.strip_prefix("sha256:"));
    let digest = digest.expect("a digest");
    let bytes = fs::read(image.join("blobs/sha256").join(digest)).expect("the blob is there");
    assert_eq!(hex::encode(Sha256::digest(&bytes)), digest);
    assert_eq!(descriptor["size"], bytes.len());
    bytes
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("JSON")
}

#[test]
fn the_release_script_packs_an_archive_a_package_and_an_image() {
    if !Path::new("/usr/bin/dpkg-deb").exists() {
        runs::say("no dpkg-deb here: nothing was packed");
        return;
    }
    let folder = tempfile::Builder::new().prefix("dropdex-release-").tempdir();
    let (folder, root) = (folder.expect("a folder"), Path::new(env!("CARGO_MANIFEST_DIR")));
    let out = folder.path();
    let to = out.to_str().expect("UTF-8");
    let binary = env!("CARGO_BIN_EXE_dropdex");
    run(root, "data/packaging/release", &["--binary", binary, "--quick", "--revision", "7", to]);
    let version = env!("CARGO_PKG_VERSION");
    let arch = std::env::consts::ARCH;
    let summed = run(out, "sha256sum", &["--check", "SHA256SUMS"]);
    assert_eq!(summed.lines().count(), 3, "{summed}");

    let name = format!("dropdex-{version}-{arch}-linux");
    let listed = run(out, "tar", &["tf", &format!("{name}.tar.gz")]);
    for file in [
        "dropdex",
        "README.md",
        "LICENSE-MIT",
        "LICENSE-APACHE",
        "dropdex.service",
        "dropdex.toml",
        "dropdex.socket",
        "completions/dropdex.zsh",
        "man/dropdex-serve.1",
        "docs/operating.md",
        "docs/notices.md",
        "docs/licences/LICENSE-SCOWL",
        "examples/Caddyfile",
        "examples/Dockerfile",
        "examples/compose.yaml",
        "examples/grafana-dashboard.json",
        "examples/kubernetes.yaml",
        "examples/nginx.conf",
        "examples/prometheus-alerts.yml",
    ] {
        assert!(listed.lines().any(|line| line == format!("{name}/{file}")), "{file}: {listed}");
    }
    run(out, "tar", &["xf", &format!("{name}.tar.gz")]);
    links_exist(&out.join(&name));
    links_exist(&out.join(&name).join("docs"));
    let readme = fs::read_to_string(out.join(&name).join("README.md")).expect("readable");
    assert!(!readme.contains("cargo run") && readme.contains("./dropdex demo"), "{readme}");

    package(out, version);
    image(out, &format!("dropdex-{version}-{arch}-image.tar"), version);
}

/// Checks that every file to which the pages of a folder link exists.
fn links_exist(folder: &Path) {
    for entry in fs::read_dir(folder).expect("readable") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|end| end != "md") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("UTF-8");
        for link in text.split("](").skip(1) {
            let target = link.split([')', '#']).next().unwrap_or_default();
            let is_file = !target.is_empty() && !target.contains([':', ' ', '`']);
            assert!(!is_file || folder.join(target).exists(), "{}: {target}", path.display());
        }
    }
}

/// Checks the package in a folder.
fn package(out: &Path, version: &str) {
    let entries = fs::read_dir(out).expect("readable").map(|entry| entry.expect("an entry").path());
    let package = entries.into_iter().find(|path| path.extension().is_some_and(|it| it == "deb"));
    let package = package.expect("a package");
    let package = package.to_str().expect("UTF-8");
    let field = |name| run(out, "dpkg-deb", &["--field", package, name]).trim().to_owned();
    assert_eq!(field("Version"), format!("{version}-7"));
    assert!(field("Depends").contains("adduser") && !field("Description").contains('@'));
    let listed = run(out, "dpkg-deb", &["--contents", package]);
    for line in listed.lines() {
        assert!(line.contains(" root/root "), "{line}");
    }
    for file in [
        "usr/bin/dropdex",
        "usr/lib/systemd/system/dropdex.service",
        "usr/share/man/man1/dropdex.1.gz",
        "usr/share/bash-completion/completions/dropdex",
        "usr/share/doc/dropdex/copyright",
        "usr/share/doc/dropdex/operating.md",
        "usr/share/doc/dropdex/examples/Caddyfile",
        "usr/share/doc/dropdex/examples/compose.yaml",
        "usr/share/doc/dropdex/examples/grafana-dashboard.json",
        "usr/share/doc/dropdex/examples/kubernetes.yaml",
        "usr/share/doc/dropdex/examples/nginx.conf",
        "usr/share/doc/dropdex/examples/prometheus-alerts.yml",
        "etc/dropdex/dropdex.toml",
    ] {
        assert!(listed.lines().any(|line| line.ends_with(&format!(" ./{file}"))), "{file}");
    }
    run(out, "dpkg-deb", &["--raw-extract", package, "raw"]);
    links_exist(&out.join("raw/usr/share/doc/dropdex"));
    let unit = fs::read_to_string(out.join("raw/usr/lib/systemd/system/dropdex.service"));
    let unit = unit.expect("readable");
    assert!(unit.contains("ExecStart=/usr/bin/dropdex ") && !unit.contains("/usr/local"), "{unit}");
    let conffiles = fs::read_to_string(out.join("raw/DEBIAN/conffiles")).expect("readable");
    assert_eq!(conffiles, "/etc/dropdex/dropdex.toml\n");
    let raw = out.join("raw");
    run(&raw, "md5sum", &["--quiet", "--check", "DEBIAN/md5sums"]);
    for script in ["postinst", "prerm", "postrm"] {
        run(&raw, "sh", &["-n", &format!("DEBIAN/{script}")]);
    }
}

/// Checks an archive that is both an OCI layout and an archive of Docker.
fn image(out: &Path, archive: &str, version: &str) {
    let image = out.join("image");
    fs::create_dir(&image).expect("made");
    run(&image, "tar", &["xf", &format!("../{archive}")]);
    let file = |name: &str| json(&fs::read(image.join(name)).expect(name));
    assert_eq!(file("oci-layout")["imageLayoutVersion"], "1.0.0");
    let manifest = json(&blob(&image, &file("index.json")["manifests"][0]));
    let config = json(&blob(&image, &manifest["config"]));
    let settings = &config["config"];
    assert_eq!(settings["User"], "65532:65532");
    assert!(settings["Volumes"]["/var/lib/dropdex"].is_object(), "{settings}");
    assert_eq!(settings["Healthcheck"]["Test"][2], "health");
    // As in compose.yaml and Dockerfile: ten minutes.
    assert_eq!(settings["Healthcheck"]["StartPeriod"], 600_000_000_000_u64);
    assert_eq!(settings["Labels"]["org.opencontainers.image.version"], version);
    blob(&image, &manifest["layers"][0]);
    let docker = file("manifest.json");
    let path =
        |digest: &Value| digest.as_str().expect("a digest").replace("sha256:", "blobs/sha256/");
    assert_eq!(docker[0]["RepoTags"], serde_json::json!([format!("dropdex:{version}")]));
    assert_eq!(docker[0]["Config"], path(&manifest["config"]["digest"]));
    let layer = path(&manifest["layers"][0]["digest"]);
    assert_eq!(docker[0]["Layers"][0], layer);
    let listed = run(&image, "tar", &["--numeric-owner", "-tvf", &layer]);
    let line = |path: &str| listed.lines().find(|line| line.ends_with(path)).expect(path);
    assert!(line(" ./usr/bin/dropdex").starts_with("-rwxr-xr-x 0/0 "), "{listed}");
    assert!(line(" ./var/lib/dropdex/").starts_with("drwxr-xr-x 65532/65532 "), "{listed}");
    assert!(line(" ./").starts_with("drwxr-xr-x 0/0 "), "{listed}");
}

#[test]
fn packaged_settings_are_valid_also_with_every_example() {
    let site = Site::new();
    let password = site.write("password", "secret\n");
    let shown = read("data/packaging/dropdex.toml");
    let uncommented = |line: &str| {
        line.strip_prefix('#').filter(|rest| !rest.starts_with(' ')).map(str::to_owned)
    };
    let lines = shown.lines().map(|line| uncommented(line).unwrap_or_else(|| line.to_owned()));
    let all: String = lines.map(|line| line + "\n").collect();
    let password = password.to_str().expect("UTF-8");
    let all = all.replace("/etc/dropdex/smtp-password", password);
    let manifest = read("data/packaging/kubernetes.yaml");
    let (_, mapped) = manifest.split_once("dropdex.toml: |\n").expect("a settings file");
    let (mapped, _) = mapped.split_once("\n---").expect("it ends");
    for text in [&shown, &all, mapped] {
        let file = site.write("shown.toml", text);
        site.ok(&["--config", file.to_str().expect("UTF-8"), "score", "example.com"]);
    }
    assert!(all.contains("\n[smtp]\nhost"), "{all}");
}

#[test]
fn examples_name_the_image_of_this_version() {
    let image = concat!("dropdex:", env!("CARGO_PKG_VERSION"), "\n");
    for file in ["data/packaging/compose.yaml", "data/packaging/kubernetes.yaml", "README.md"] {
        assert!(read(file).contains(image), "{file}");
    }
}
