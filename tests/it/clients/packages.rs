//! The packages in `data/clients`: packed, installed in an empty environment, and used by the same
//! program in Python and in TypeScript.

use std::fs::{self, File};
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use dropdex::vocab::clock::Clock;
use dropdex::vocab::day::Day;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{root, shell};
use crate::common::proxy::Proxy;
use crate::common::receiver::{Receiver, Reply};
use crate::common::{Client, Server, Site, tools, wait};

/// Deadline of every wait; conditions are normally met long before.
const WAIT_MAX: Duration = Duration::from_secs(120);
/// Names that drop tomorrow.
const TOMORROW: usize = 1_000;
/// All names of the pipeline, so that its files take several reads.
const NAMES: usize = 20_000;
/// One export allows one download, however often it is interrupted; the program writes more than
/// `writes_per_minute` names.
const SETTINGS: &str = "[export_files]\nenabled = true\n\
    [plans.api]\nrequests_per_day = 100000\nexports_per_day = 1\nwrites_per_minute = 15\n";
const FILES: &str = "/api/export/files?limit=100";

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Language {
    Python,
    TypeScript,
}

/// A folder with an installed package, and programs that use it.
pub(super) struct Installed {
    pub(super) folder: PathBuf,
    language: Language,
}

impl Installed {
    /// Packs a client, and installs the packed file in an empty environment, without a network.
    pub(super) fn new(language: Language, site: &Site) -> Installed {
        let folder = site.lists().join("client");
        fs::create_dir(&folder).expect("created");
        let script = match language {
            Language::Python => {
                "cp -R \"$CLIENTS/python\" package\n\
                 pip wheel --quiet --no-index --no-build-isolation --no-deps ./package\n\
                 python -m venv --without-pip env\n\
                 pip --python env/bin/python install --quiet --no-index ./dropdex-*.whl"
            }
            Language::TypeScript => {
                "mkdir package && cd \"$CLIENTS/typescript\"\n\
                 cp -R README.md package.json tsconfig.json src \"$OLDPWD/package\" && cd \"$OLDPWD\"\n\
                 ln -s \"$MODULES\" package/node_modules\n\
                 (cd package && npm pack --silent --offline --pack-destination ..)\n\
                 npm install --silent --offline --prefix . ./dropdex-*.tgz"
            }
        };
        shell(&folder, script, &[]);
        Installed { folder, language }
    }

    /// Adds a program, which for TypeScript is compiled with strict checks.
    pub(super) fn add(&self, source: &Path) {
        let name = source.file_name().expect("a file");
        fs::copy(source, self.folder.join(name)).expect("copied");
        if self.language == Language::TypeScript {
            let compile = "\"$MODULES/.bin/tsc\" --strict --skipLibCheck --module nodenext --target es2022 \
                           --types node --typeRoots \"$MODULES/@types\" \"$SOURCE\"";
            shell(&self.folder, compile, &[("SOURCE", &name.to_string_lossy())]);
        }
    }

    /// The program in this folder that tests use, with arguments.
    fn command(&self, args: &[&str], server: SocketAddr, key: &str) -> Command {
        let mut command = match self.language {
            Language::Python => Command::new(self.folder.join("env/bin/python")),
            Language::TypeScript => Command::new(tools::node()),
        };
        command.arg(self.language.program().replace(".mts", ".mjs")).args(args);
        command.current_dir(&self.folder).env("DROPDEX_URL", format!("http://{server}"));
        command.env("DROPDEX_KEY", key);
        command
    }
}

impl Language {
    /// Name of the program that tests use.
    fn program(self) -> &'static str {
        match self {
            Language::Python => "client.py",
            Language::TypeScript => "client.mts",
        }
    }
}

/// Returns what a program prints.
fn printed(mut command: Command, input: &str) -> Value {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it can be run");
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(input.as_bytes()).expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{error}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|err| panic!("{err}: {error}"))
}

/// A program that runs beside the test, and is killed with it. Its output is in a file.
pub(super) struct Running {
    child: Child,
    output: PathBuf,
}

impl Running {
    pub(super) fn start(mut command: Command, output: PathBuf) -> Running {
        let file = File::create(&output).expect("created");
        let errors = file.try_clone().expect("cloned");
        let child = command.stdin(Stdio::null()).stdout(file).stderr(errors).spawn();
        Running { child: child.expect("it can be run"), output }
    }

    pub(super) fn printed(&self) -> String {
        fs::read_to_string(&self.output).expect("UTF-8")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn today() -> Day {
    Clock::system().today()
}

/// An installation with files, limits and a receiver of webhooks.
struct World {
    site: Site,
    settings: String,
    key: String,
    receiver: Receiver,
    lists: u32,
}

impl World {
    fn new() -> World {
        let site = Site::new();
        let release = |at: usize| today().plus(if at < TOMORROW { 1 } else { 2 });
        let row = |at| format!("name{at:05}.com,{},{}\n", today().plus(-30), release(at));
        let rows: String = (0..NAMES).map(row).collect();
        let list = site.write("list.csv", format!("domain,drop_date,release_date\n{rows}"));
        site.ingest(&list, &format!("{}T00:00:00Z", today()));
        let key = site.account("owner@example.com", "api");
        let receiver = Receiver::https(&["127.0.0.1"], |_, _| Reply::status(200));
        let ca_file = site.write("ca.pem", receiver.certificate());
        let allowed = receiver.address();
        let webhooks = format!("[webhooks]\nallow = [\"{allowed}\"]\nca_file = {ca_file:?}\n");
        let settings = site.settings(&format!("{SETTINGS}{webhooks}"));
        World { site, settings, key, receiver, lists: 0 }
    }

    /// Ingests a list of five new names.
    fn ingest(&mut self) {
        self.lists += 1;
        let (list, today) = (self.lists, today());
        let rows: String = (0..5).map(|at| format!("new{at}x{list}.com,{today}\n")).collect();
        let path = format!("list{list}.csv");
        let path = self.site.write(&path, format!("domain,drop_date\n{rows}"));
        self.site.ingest(&path, &format!("{today}T00:00:{list:02}Z"));
    }
}

#[test]
fn the_packed_python_client_pages_retries_follows_and_downloads() {
    does_everything(Language::Python);
}

#[test]
fn the_packed_typescript_client_pages_retries_follows_and_downloads() {
    does_everything(Language::TypeScript);
}

fn does_everything(language: Language) {
    let world = World::new();
    let installed = Installed::new(language, &world.site);
    installed.add(&root().join("tests/it/clients").join(language.program()));
    let server = world.site.serve_with(&["--config", &world.settings]);
    verifies_a_delivered_webhook(&world, &server, &installed);
    reads_rows_once_and_waits_for_limits(&world, &server, &installed);
    continues_a_download(&world, &server, &installed);
    follows_changes_over_a_restart(world, server, &installed);
}

fn verifies_a_delivered_webhook(world: &World, server: &Server, installed: &Installed) {
    let mut api = server.client_with(&world.key);
    let name = json!({"domainName": "name00000.com"});
    assert_eq!(api.send("POST", "/api/v1/watchlist", &name).status, 201);
    let channel = json!({"type": "webhook", "url": world.receiver.url("/hook")});
    let settings = json!({"kinds": ["available"], "channels": [channel]});
    let (status, saved) = api.send("PUT", "/api/v1/watchlist/alerts", &settings).answer();
    assert_eq!(status, 200, "{saved}");
    let secret = saved["secrets"][0]["secret"].as_str().expect("a secret");
    assert_eq!(api.send("POST", "/api/v1/watchlist/alerts/test", &json!({})).status, 202);
    let genuine = world.receiver.wait_for(1).remove(0);
    let mut forgeries = genuine.forgeries();
    let digits = "9".repeat(5_000);
    forgeries.push(("a time of 5,000 digits", genuine.with_header("webhook-timestamp", &digits)));
    forgeries.push(("half a signature", genuine.with_header("webhook-signature", "v1,A")));
    let messages: Vec<Value> = std::iter::once(&genuine)
        .chain(forgeries.iter().map(|(_, forged)| forged))
        .map(|seen| {
            let headers: Map<_, _> =
                seen.headers.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
            json!({"headers": headers, "body": seen.text()})
        })
        .collect();
    let verify = |secret: &str| -> Vec<String> {
        let command = installed.command(&["verify", secret], server.address(), &world.key);
        let results = printed(command, &json!(messages).to_string());
        serde_json::from_value(results).expect("an array of texts")
    };
    let results = verify(secret);
    assert_eq!((results.len(), results[0].as_str()), (1 + forgeries.len(), "watchlist.test"));
    for ((what, _), result) in forgeries.iter().zip(&results[1..]) {
        assert!(result.starts_with("refused: "), "{what}: {result}");
    }
    let other = verify("whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
    assert!(other.iter().all(|result| result.starts_with("refused: ")), "{other:?}");
}

fn reads_rows_once_and_waits_for_limits(world: &World, server: &Server, installed: &Installed) {
    let mut api = server.client_with(&world.key);
    let got = printed(installed.command(&["calls"], server.address(), &world.key), "");
    let target = "/api/v1/drops?release_from=tomorrow&release_to=tomorrow&limit=1000";
    let page = api.get(target).json();
    let rows = page["drops"].as_array().expect("rows").iter();
    let names: Vec<&Value> = rows.map(|row| &row["name"]).collect();
    assert_eq!((names.len(), &got["names"]), (TOMORROW, &json!(names)));
    let refused = api.get("/api/v1/drops?min_dqs=101").json();
    let error = json!([400, refused["code"], refused["parameter"], refused["error"]]);
    assert_eq!(got["error"], error);
    let page = api.get("/api/v1/watchlist?limit=100").json();
    let rows = page["watchlist"].as_array().expect("rows").iter();
    let watched: Vec<&Value> = rows.map(|row| &row["domain"]).collect();
    assert_eq!((watched.len(), &got["watched"]), (16, &json!(watched)), "each is written once");
    // Writes beyond those of a minute were refused at first, with a `Retry-After` of a second or more.
    let waits = got["waits"].as_array().expect("an array");
    let are_long = waits.iter().all(|wait| wait.as_f64().is_some_and(|seconds| seconds >= 1.0));
    assert!(!waits.is_empty() && are_long, "{waits:?}");
}

/// Path of the unfinished file in a folder, if it has a byte.
fn unfinished(folder: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    let mut paths = entries.map(|entry| entry.path());
    paths.find(|path| {
        let is_part = path.extension().is_some_and(|extension| extension == "part");
        is_part && fs::metadata(path).is_ok_and(|about| about.len() > 0)
    })
}

fn continues_a_download(world: &World, server: &Server, installed: &Installed) {
    let mut api = server.client_with(&world.key);
    let find = |api: &mut Client| {
        let page = api.get(FILES).json();
        let files = page["files"].as_array().expect("rows");
        files.iter().find(|file| file["format"] == "parquet").cloned()
    };
    let file = wait::until_ok(WAIT_MAX, || find(&mut api).ok_or("no file yet"));
    // Slow enough that a test can interrupt a download.
    let proxy = Proxy::to(server.address());
    proxy.limit(64_000);
    let folder = &installed.folder;
    let download = || installed.command(&["download"], proxy.address(), &world.key);
    let begin = || {
        let running = Running::start(download(), folder.join("download.txt"));
        wait::until(WAIT_MAX, "a part of the file", || unfinished(folder).is_some());
        running
    };
    let path = folder.join(file["name"].as_str().expect("a name"));
    let is_whole = || {
        let bytes = fs::read(&path).unwrap_or_default();
        json!(hex::encode(Sha256::digest(bytes))) == file["sha256"]
    };
    // The connection breaks.
    let running = begin();
    proxy.cut();
    assert!(!path.exists(), "it was interrupted");
    proxy.heal();
    wait::until(WAIT_MAX, "the file", is_whole);
    assert!(unfinished(folder).is_none(), "{}", running.printed());
    drop(running);
    fs::remove_file(&path).expect("removed");
    // The program is killed, and continues in another process: a changed byte is still there.
    drop(begin());
    let part = unfinished(folder).expect("a part");
    let mut bytes = fs::read(&part).expect("there");
    bytes[0] ^= 1;
    fs::write(&part, bytes).expect("written");
    assert_eq!(printed(download(), ""), "damaged");
    assert!(unfinished(folder).is_none() && !path.exists());
    assert_eq!(printed(download(), ""), file["name"]);
    assert!(is_whole());
    let account = api.get("/api/v1/account").json();
    assert_eq!(account["exports"]["used"], 1, "parts of a file count once");
}

fn follows_changes_over_a_restart(mut world: World, server: Server, installed: &Installed) {
    let address = server.address();
    let follow = installed.command(&["follow"], address, &world.key);
    let running = Running::start(follow, installed.folder.join("changes.txt"));
    let until_all = |server: &Server, key: &str, count: usize| {
        let mut api = server.client_with(key);
        wait::until_ok(WAIT_MAX, || {
            let page = api.get("/api/v1/changes?limit=1000").json();
            let rows = page["data"].as_array().expect("rows").iter();
            let all: String = rows.map(|row| format!("{}\n", row["seq"])).collect();
            let got = running.printed();
            let are_all = all.lines().count() >= count && all == got;
            if are_all { Ok(()) } else { Err(format!("{all}--- but printed:\n{got}")) }
        });
    };
    world.ingest();
    until_all(&server, &world.key, 5);
    server.stop();
    world.ingest();
    let server = world.site.serve_on(address, &["--config", &world.settings]);
    until_all(&server, &world.key, 10);
    world.ingest();
    until_all(&server, &world.key, 15);
    // Without a farewell, and with changes that come before the client is back.
    server.kill();
    world.ingest();
    let server = world.site.serve_on(address, &["--config", &world.settings]);
    until_all(&server, &world.key, 20);
}

/// The fenced blocks of a document in one language.
fn fenced(document: &str, language: &str) -> String {
    let begin = format!("```{language}\n");
    let blocks = document.split(begin.as_str()).skip(1);
    blocks.map(|block| block.split("```").next().unwrap_or_default()).collect()
}

#[test]
fn the_python_package_its_readme_and_programs_pass_strict_type_checks() {
    let site = Site::new();
    let python = root().join("data/clients/python");
    let readme = fs::read_to_string(python.join("README.md")).expect("there");
    let blocks = site.write("readme.py", fenced(&readme, "python"));
    let program = root().join("tests/it/clients/client.py");
    let script = "mypy --strict --cache-dir=/dev/null --python-version 3.10 \
                  \"$MYPYPATH/dropdex\" \"$BLOCKS\" \"$PROGRAM\"";
    let source = python.join("src");
    let text = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    let environment =
        [("MYPYPATH", text(&source)), ("BLOCKS", text(&blocks)), ("PROGRAM", text(&program))];
    let environment = environment.each_ref().map(|(name, value)| (*name, value.as_str()));
    shell(&site.lists(), script, &environment);
}

#[test]
fn the_readme_of_the_typescript_package_passes_strict_type_checks() {
    let site = Site::new();
    let installed = Installed::new(Language::TypeScript, &site);
    let readme = root().join("data/clients/typescript/README.md");
    let readme = fs::read_to_string(readme).expect("there");
    installed.add(&site.write("readme.mts", fenced(&readme, "ts")));
}

#[test]
fn the_generated_types_are_those_of_the_document() {
    let site = Site::new();
    let folders = ["python/src/dropdex", "typescript/src"];
    for folder in folders {
        fs::create_dir_all(site.lists().join(folder)).expect("created");
    }
    shell(&site.lists(), "\"$CLIENTS/renew\" .", &[]);
    for file in ["python/src/dropdex/models.py", "typescript/src/schema.ts"] {
        let read = |folder: PathBuf| fs::read_to_string(folder.join(file)).expect("there");
        let are_same = read(site.lists()) == read(root().join("data/clients"));
        assert!(are_same, "{file} is outdated: run data/clients/renew");
    }
}
