//! Clients that generators make from the document. Each pages through 1,000 drops of a live server by
//! cursor, and reads two errors: 400 and 429. The programs in `generators/` print what they read.
//!
//! The client for C# is generated only: its packages (Polly, Newtonsoft.Json) come from NuGet alone.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::common::{Server, Site, TODAY, tools};

const REASON_MAX: usize = 2_000;
/// Names that a client reads. As many more have a suffix that it does not ask for.
const ROWS: usize = 1_000;
/// Allowance of an account: five pages, and a request that is refused because of its cursor.
const SETTINGS: &str = "[plans.api]\nrequests_per_day = 6\n";

/// The commands that the scripts below share.
const COMMON: &str = r#"
three_zero() { python "$EXAMPLES/openapi_3_0.py" "$@" < openapi.json > openapi-3.0.json; }
# Generates a client into `client`.
generate() {
    three_zero
    openapi-generator-cli generate -i openapi-3.0.json -o client "$@"
}
# Java and C# have no type for a text or a list of texts.
ANY="AlertFilter_contains=Object,AlertFilterBody_contains=Object"
# Builds and runs a program with the client in `client`.
rust() {
    mkdir -p package/src
    cp "$PROGRAMS/$1.rs" package/src/main.rs
    cat > package/Cargo.toml <<END
[package]
name = "$1"
version = "0.1.0"
edition = "2024"
[dependencies]
openapi = { path = "$PWD/client", default-features = false }
reqwest = { version = "0.13", default-features = false }
serde_json = "1"
tokio = { version = "1", features = ["rt", "macros"] }
END
    "$CARGO" run --quiet --manifest-path package/Cargo.toml
}
"#;

const OPENAPI_PYTHON_CLIENT: &str = r#"
openapi-python-client generate --path openapi.json --meta none --output-path openapi_client
PYTHONPATH=. "$TOOLS/bin/python" "$PROGRAMS/openapi_python_client.py"
"#;

const OPENAPI_FETCH: &str = r#"
openapi-typescript openapi.json --output dropdex.d.ts
cp "$PROGRAMS/openapi_fetch.mts" .
tsc --module nodenext --target es2022 --strict openapi_fetch.mts
node openapi_fetch.mjs
"#;

const PYTHON: &str = r#"
generate -g python
PYTHONPATH=client "$FULL/bin/python" "$PROGRAMS/openapi_generator.py"
"#;

const TYPESCRIPT: &str = r#"
generate -g typescript-fetch
cp "$PROGRAMS/typescript_fetch.mts" .
tsc --module nodenext --target es2022 --strict typescript_fetch.mts
node typescript_fetch.mjs
"#;

/// The client needs one package, which Debian has for builds without modules.
const GO: &str = r#"
generate -g go -p enumClassPrefix=true
mkdir -p go/src/openapi go/src/paged
cp client/*.go go/src/openapi
cp "$PROGRAMS/main.go" go/src/paged
export GO111MODULE=off GOPATH="$PWD/go:/usr/share/gocode"
go build -o program paged
./program
"#;

/// The generator's own archive has the Jackson that the client needs.
const JAVA: &str = r#"
generate -g java --library native -p openApiNullable=false,useSingleRequestParameter=true \
    --parameter-name-mappings wait=waitSeconds --schema-mappings "$ANY"
archive=$("$FULL/bin/python" -c 'import openapi_generator_cli as it; print(it.__path__[0])')
archives="$archive/openapi-generator.jar:/usr/share/java/geronimo-annotation-1.3-spec.jar"
find client/src/main -name '*.java' > sources
javac -nowarn -d classes -cp "$archives" @sources "$PROGRAMS/Client.java"
java -cp "classes:$archives" Client
"#;

const CSHARP: &str = r#"
generate -g csharp --library httpclient --schema-mappings "$ANY"
cat client/src/Org.OpenAPITools/Api/NamesApi.cs
"#;

const RUST: &str = r#"
generate -g rust
rust openapi_generator
"#;

/// It has one type for the refusals of an operation, and one media type for a body.
const PROGENITOR: &str = r#"
three_zero getReady getReadyIngest getReadyReads addFacts
cargo-progenitor progenitor -i openapi-3.0.json -o client -n openapi -v 0.1.0 --interface builder
rust progenitor
"#;

/// A server, its document in a file, and a folder for generated code.
struct Desk {
    site: Site,
    server: Server,
}

impl Desk {
    fn new() -> Desk {
        let name = |at: usize| format!("solar{at}.{}", ["com", "net", "org", "info"][at % 4]);
        let site = Site::with_names((0..2 * ROWS).map(name), "2026-03-14");
        let settings = site.settings(SETTINGS);
        let server = site.serve_with(&["--today", TODAY, "--config", &settings]);
        site.write("openapi.json", &server.client().get("/api/openapi.json").body);
        symlink(tools::root().join("node_modules"), site.lists().join("node_modules"))
            .expect("a link");
        Desk { site, server }
    }

    /// Runs a shell script with the key of an account, and returns what it prints.
    fn run(&self, script: &str, key: &str) -> String {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let (tools, full) = (tools::root(), tools::full("."));
        let progenitor = here.join("target/full-tools-progenitor");
        let path = std::env::var("PATH").unwrap_or_default();
        let path = [&tools, &full, &progenitor]
            .map(|folder| folder.join("bin"))
            .into_iter()
            .chain([tools.join("node_modules/.bin")])
            .chain(std::env::split_paths(&path));
        let output = Command::new("sh")
            .args(["-euc", &format!("{COMMON}{script}")])
            .current_dir(self.site.lists())
            .env("PATH", std::env::join_paths(path).expect("paths"))
            .env("TOOLS", &tools)
            .env("FULL", &full)
            .env("EXAMPLES", here.join("data/examples"))
            .env("PROGRAMS", here.join("tests/it/generators"))
            .env("CARGO", env!("CARGO"))
            // The folder is kept between runs, because most of it is the dependencies of clients.
            .env("CARGO_TARGET_DIR", here.join("target/rust-client"))
            .env("DROPDEX_URL", format!("http://{}", self.server.address()))
            .env("DROPDEX_KEY", key)
            .output()
            .expect("a shell");
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        let told = String::from_utf8_lossy(&output.stderr);
        let start = |text: &str| text.chars().take(REASON_MAX).collect::<String>();
        assert!(output.status.success(), "{script}\n{}\n{}", start(&out), start(&told));
        out
    }
}

/// Generates a client and runs its program, which prints the names and errors that it read.
fn pages(script: &str) {
    let desk = Desk::new();
    let [key, other] =
        ["owner@example.com", "other@example.com"].map(|it| desk.site.account(it, "api"));
    let mut client = desk.server.client().with_key(&other);
    let drops = client.get(&format!("/api/v1/drops?tld=com,org&limit={ROWS}")).json();
    let drops = drops["drops"].as_array().expect("a list");
    let names: Vec<&Value> = drops.iter().map(|drop| &drop["name"]).collect();
    assert_eq!(names.len(), ROWS);

    let printed = desk.run(script, &key);
    let last = printed.lines().last().unwrap_or_default();
    let got: Value = serde_json::from_str(last).unwrap_or_else(|err| panic!("{err}: {last}"));
    assert_eq!(got["names"], json!(names));
    let [refused, limited] = [&got["errors"][0], &got["errors"][1]];
    assert_eq!((&refused["status"], &refused["code"]), (&json!(400), &json!("invalid_cursor")));
    assert_eq!(refused["parameter"], "cursor", "{refused}");
    assert!(refused["error"].as_str().is_some_and(|it| it.starts_with("cursor: ")), "{refused}");
    assert_eq!((&limited["status"], &limited["code"]), (&json!(429), &json!("rate_limited")));
    assert_eq!(limited["limit"], 6, "{limited}");
    // Unix milliseconds need more than 32 bits.
    assert!(limited["resetAt"].as_u64().is_some_and(|at| at > 1 << 40), "{limited}");
}

/// One test for each generator.
macro_rules! clients {
    ($($name:ident: $script:expr;)*) => {$(
        #[test]
        #[ignore = "generates and builds a client; in the full run"]
        fn $name() {
            pages($script);
        }
    )*};
}

clients! {
    openapi_python_client_pages_and_reads_errors: OPENAPI_PYTHON_CLIENT;
    openapi_typescript_pages_and_reads_errors: OPENAPI_FETCH;
    openapi_generator_for_python_pages_and_reads_errors: PYTHON;
    openapi_generator_for_typescript_pages_and_reads_errors: TYPESCRIPT;
    openapi_generator_for_go_pages_and_reads_errors: GO;
    openapi_generator_for_java_pages_and_reads_errors: JAVA;
    openapi_generator_for_rust_pages_and_reads_errors: RUST;
    progenitor_pages_and_reads_errors: PROGENITOR;
}

#[test]
#[ignore = "starts a Java program; in the full run"]
fn openapi_generator_for_csharp_generates_a_client() {
    assert!(Desk::new().run(CSHARP, "").contains("Drops ListDrops("));
}
