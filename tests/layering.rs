//! Checks the parts of the module map in `src/ARCHITECTURE.md` that the compiler does not enforce.
//!
//! Rooms of the root package import only what [`MAY_IMPORT`] allows; the modules of a folder do not import
//! each other in a cycle; and documents that comments name exist. For the first two checks, comments,
//! literals and inline tests do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// Rooms of the root package, each with the rooms it may import. `app` and `cli` may import all others.
const MAY_IMPORT: &[(&str, &str)] = &[
    // Files in, an archive out; it knows paths, but not content.
    ("backup", "vocab bucket outbound"),
    // Object stores, through the client of all calls.
    ("bucket", "vocab outbound"),
    // Registry checks that users request wait in `service`. Dated files have the rows of `http`.
    (
        "workers",
        "vocab query facts sales service index intake changes copies cluster accounts backup telemetry outbound http",
    ),
    // Connections and deadlines: the server can refuse requests, but does not know their meaning.
    ("server", "vocab telemetry service edge"),
    // A setting is parsed into the type that the code using it takes.
    (
        "config",
        "exit vocab feeds facts zones index intake telemetry outbound sources web server cluster backup bucket",
    ),
    // A server of a cluster: its log, its peers, the lead, and files for all nodes.
    ("nodes", "vocab corpus index intake changes cluster accounts outbound workers config bucket"),
];

#[test]
fn rooms_import_only_what_they_may_and_modules_form_no_cycle() {
    let modules = modules(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(modules.len() > 300, "few modules");
    let faults = faults(&modules);
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

#[test]
fn documents_named_in_comments_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let document = Regex::new(r"//.*?([\w./-]+\.md)\b").expect("a pattern");
    let mut missing = Vec::new();
    for file in ["src", "tests", "benches"].iter().flat_map(|it| rust_files(&root.join(it))) {
        let text = fs::read_to_string(&file).expect("readable");
        for name in document.captures_iter(&text).map(|found| found[1].to_owned()) {
            if !root.join(&name).exists() && !file.with_file_name(&name).exists() {
                missing.push(format!("{}: there is no {name}", file.display()));
            }
        }
    }
    assert!(missing.is_empty(), "\n{}\n", missing.join("\n"));
}

/// Paths of modules below `src` (`feeds/zone.rs` is `[feeds, zone]`), each with its imports.
type Modules = BTreeMap<Vec<String>, Vec<Vec<String>>>;

/// The modules under `src`.
fn modules(src: &Path) -> Modules {
    let mut modules = Modules::new();
    for file in rust_files(src) {
        let inside = file.strip_prefix(src).expect("listed from src").with_extension("");
        let parts = inside.iter().map(|part| part.to_string_lossy().into_owned());
        let mut path: Vec<_> = parts.collect();
        path.truncate(path.len() - usize::from(path.len() > 1 && inside.ends_with("mod")));
        // Files of tests may use whatever they need, as inline tests may.
        if path.iter().all(|part| part != "tests") {
            let own_crate = src.join(&path[0]).join("Cargo.toml").exists();
            let root = if own_crate { &path[..1] } else { &[] };
            let text = fs::read_to_string(&file).expect("readable");
            let imports = imports(&text, root, &path);
            modules.insert(path, imports);
        }
    }
    modules
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let files = paths.flat_map(|path| if path.is_dir() { rust_files(&path) } else { vec![path] });
    files.filter(|path| path.extension().is_some_and(|it| it == "rs")).collect()
}

/// Comments and literals.
static DEAD: LazyLock<Regex> = LazyLock::new(|| {
    let raw = r###"\br##?".*?"##?|\br".*?""###;
    let pattern = format!(r#"//[^\n]*|/\*.*?\*/|{raw}|"(?:\\.|[^"\\])*"|'(?:\\.[^']*|[^\\'])'"#);
    Regex::new(&format!("(?s){pattern}")).expect("a pattern")
});
/// A group of paths without groups inside: `super::a::{b, c::d}`.
static GROUP: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(\w+(?:::\w+)*)::\{([^{}]*)\}").expect("a pattern"));
static IMPORT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\b(crate|dropdex|super(?:::super)*)((?:::\w+)*)").expect("a pattern")
});

/// Returns the paths that the code of a module names after `crate` (at `root`), `dropdex` and `super`.
/// Inline tests are last in a file.
fn imports(text: &str, root: &[String], path: &[String]) -> Vec<Vec<String>> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let mut code = DEAD.replace_all(code, "''").into_owned();
    while GROUP.is_match(&code) {
        let paths = |group: &Captures<'_>| {
            let paths = group[2].split(',').map(|path| format!("{}::{}", &group[1], path.trim()));
            paths.collect::<Vec<_>>().join(", ")
        };
        code = GROUP.replace_all(&code, paths).into_owned();
    }
    let imports = IMPORT.captures_iter(&code).map(|import| {
        let supers = import[1].matches("super").count();
        let above = if supers == 0 { root } else { &path[..path.len().saturating_sub(supers)] };
        above.iter().cloned().chain(import[2].split("::").skip(1).map(str::to_owned)).collect()
    });
    imports.collect()
}

/// Returns imports of rooms that [`MAY_IMPORT`] does not allow, and modules that are part of a cycle.
fn faults(modules: &Modules) -> Vec<String> {
    let mut faults = Vec::new();
    for (path, imports) in modules {
        let room = &path[0];
        let Some((_, allowed)) = MAY_IMPORT.iter().find(|(name, _)| name == room) else { continue };
        for to in imports.iter().filter_map(|to| to.first()) {
            let is_room = modules.keys().any(|path| path[0] == *to);
            if is_room && to != room && allowed.split(' ').all(|name| name != to) {
                faults.push(format!("{}: `{room}` may not import `{to}`", path.join("::")));
            }
        }
    }
    let next = siblings(modules);
    let on_cycle = next.keys().filter(|module| {
        let mut seen = BTreeSet::new();
        let mut left = vec![**module];
        while let Some(module) = left.pop() {
            left.extend(next.get(module).into_iter().flatten().filter(|to| seen.insert(**to)));
        }
        seen.contains(**module)
    });
    faults.extend(on_cycle.map(|path| format!("{}: on a cycle of imports", path.join("::"))));
    faults
}

/// Returns, for each module, the modules of its own folder that it or a module below it imports. A
/// folder's `mod.rs` is above the modules of the folder, so its imports do not count.
fn siblings(modules: &Modules) -> BTreeMap<&[String], BTreeSet<&[String]>> {
    let mut siblings = BTreeMap::<_, BTreeSet<_>>::new();
    for (path, to) in modules.iter().flat_map(|(path, to)| to.iter().map(move |to| (path, to))) {
        let shared = path.iter().zip(to).take_while(|(one, other)| one == other).count();
        if let (Some(from), Some(to)) = (path.get(..=shared), to.get(..=shared))
            && modules.contains_key(to)
        {
            siblings.entry(from).or_default().insert(to);
        }
    }
    siblings
}

#[test]
fn planted_faults_are_found() {
    let root = tempfile::tempdir().expect("a folder");
    let plant = |file: &str, text: &str| {
        let file = root.path().join(file);
        fs::create_dir_all(file.parent().expect("in a folder")).expect("made");
        fs::write(file, text).expect("written");
    };
    plant("vocab/mod.rs", "use crate::{http::A, day}; // no room of this crate");
    plant("vocab/Cargo.toml", "");
    plant("backup/mod.rs", "pub use rows::Row;");
    plant(
        "backup/rows.rs",
        "use crate::{backup::{cells::Cell, free}, vocab::Day}; use super::super::vocab::Day;",
    );
    plant(
        "backup/cells.rs",
        "let x = r#\"crate::web\"#; /* crate::web */ fn f<'a>() { 'x'; super::rows::f() }",
    );
    plant(
        "server/mod.rs",
        "use crate::{edge, config::C};\n#[cfg(test)]\nmod tests {\n    use crate::corpus::B;\n}\n",
    );
    for room in ["corpus", "config", "edge"] {
        plant(&format!("{room}/mod.rs"), "// crate::web");
    }
    let found = faults(&modules(root.path()));
    let expected = [
        "server: `server` may not import `config`",
        "backup::cells: on a cycle of imports",
        "backup::rows: on a cycle of imports",
    ];
    assert_eq!(found, expected);
}
