//! Clients that openapi-generator generates from the document. The generator generates clients for six
//! languages; those for Python and Rust decode a live server's responses: a name, and the errors 400,
//! 401 and 429.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::common::{Server, Site, TODAY, tools};

const REASON_MAX: usize = 2_000;
/// Allowance of the account, which is so small that a client soon gets 429.
const SETTINGS: &str = "[plans.api]\nrequests_per_day = 5\n";

/// A server, its document in a file, and a folder for generated code.
struct Desk {
    site: Site,
    server: Server,
    key: String,
}

impl Desk {
    fn new() -> Desk {
        let site = Site::with_a_name_of_each_kind();
        let key = site.account("owner@example.com", "api");
        let settings = site.settings(SETTINGS);
        let server = site.serve_with(&["--today", TODAY, "--config", &settings]);
        let document = server.client().get("/api/openapi.json");
        site.write("openapi.json", &document.body);
        Desk { site, server, key }
    }

    /// Generates a client, and returns its folder.
    fn generate(&self, language: &str) -> PathBuf {
        let folder = self.site.lists().join(language);
        let mut command = Command::new(tools::full("bin/openapi-generator-cli"));
        command.args(["generate", "-i", "openapi.json", "-g", language, "-o"]).arg(&folder);
        run(command.current_dir(self.site.lists()));
        folder
    }

    /// Runs a program that uses a client and prints the result for each status.
    fn check(&self, command: &mut Command) {
        command.env("DROPDEX_URL", format!("http://{}", self.server.address()));
        let printed = run(command.env("DROPDEX_KEY", &self.key));
        let got: Value = serde_json::from_str(&printed).expect("JSON");
        assert_eq!(got["200"]["domain"], "solar.com", "{got}");
        assert!(got["200"]["latestDrop"]["dqs"].is_u64(), "{got}");
        for (status, start) in [("400", "name: "), ("401", ""), ("429", "")] {
            let error = got[status]["error"].as_str().unwrap_or_default();
            assert!(error.len() > 5 && error.starts_with(start), "{status}: {got}");
        }
        assert_eq!(got["429"]["limit"], 5, "{got}");
        // Unix milliseconds need more than 32 bits.
        assert!(got["429"]["resetAt"].as_u64().is_some_and(|at| at > 1 << 40), "{got}");
    }
}

/// Runs a program that must succeed, and returns its output.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|err| panic!("{command:?}: {err}"));
    let text = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        text.chars().take(REASON_MAX).collect::<String>()
    };
    let (out, err) = (&output.stdout, text(&output.stderr));
    assert!(output.status.success(), "{command:?}\n{}\n{err}", text(out));
    String::from_utf8_lossy(out).into_owned()
}

/// Returns the path of a program in this folder that uses a client.
fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/generators").join(name)
}

#[test]
#[ignore = "starts a Java program six times; in the full run"]
fn clients_of_six_languages_are_generated() {
    let desk = Desk::new();
    for (language, file) in [
        ("python", "openapi_client/api/names_api.py"),
        ("typescript-fetch", "apis/NamesApi.ts"),
        ("go", "api_names.go"),
        ("java", "src/main/java/org/openapitools/client/api/NamesApi.java"),
        ("rust", "src/apis/names_api.rs"),
        ("csharp", "src/Org.OpenAPITools/Api/NamesApi.cs"),
    ] {
        let file = desk.generate(language).join(file);
        let made =
            fs::read_to_string(&file).unwrap_or_else(|err| panic!("{}: {err}", file.display()));
        let names = made.to_lowercase().replace('_', "");
        assert!(names.contains("finddomain"), "{}", file.display());
    }
}

#[test]
#[ignore = "starts a Java program; in the full run"]
fn the_python_client_decodes_responses() {
    let desk = Desk::new();
    let folder = desk.generate("python");
    let mut python = Command::new(tools::full("bin/python"));
    desk.check(python.arg(program("client.py")).env("PYTHONPATH", folder));
}

#[test]
#[ignore = "compiles a client with all that it uses; in the full run"]
fn the_rust_client_decodes_responses() {
    let desk = Desk::new();
    let folder = desk.generate("rust");
    let package = desk.site.lists().join("client");
    fs::create_dir_all(package.join("src")).expect("a folder");
    fs::copy(program("client.rs"), package.join("src/main.rs")).expect("copied");
    let manifest = format!(
        "[package]\nname = \"client\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[dependencies]\n\
         openapi = {{ path = {folder:?}, default-features = false }}\nserde_json = \"1\"\n\
         tokio = {{ version = \"1\", features = [\"rt\", \"macros\"] }}\n"
    );
    fs::write(package.join("Cargo.toml"), manifest).expect("written");
    // The folder is kept between runs, because most of it is the client's dependencies.
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/rust-client");
    let mut cargo = Command::new(env!("CARGO"));
    desk.check(cargo.args(["run", "--quiet"]).current_dir(package).env("CARGO_TARGET_DIR", target));
}
