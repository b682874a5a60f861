//! Checks the module map of `src/ARCHITECTURE.md` against the source text.
//!
//! Two rules: a room imports only the rooms that [`MAY_IMPORT`] allows (`crate::index::..`,
//! `use crate::{index, vocab}`, `super::super::index`, `dropdex::index`); and the modules of a folder do not
//! import each other in a cycle. Strings, comments and `#[cfg(test)]` items do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// Each top-level module and what it may import besides itself, in the order of the pipeline.
/// `crate` stands for `lib.rs`.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("vocab", &[]),
    // Text that is sent becomes conditions on names; knows neither HTTP nor the index.
    ("query", &["vocab"]),
    ("feeds", &["vocab"]),
    // A zone, day after day: lists of drops that `feeds` reads.
    ("zones", &["vocab", "feeds"]),
    ("scorer", &["vocab"]),
    ("corpus", &["vocab", "feeds", "scorer"]),
    ("index", &["vocab", "query", "scorer", "corpus"]),
    // Lists in, corpus and generation out: the commands, the admin socket and the inbox call it.
    ("intake", &["vocab", "feeds", "zones", "corpus", "index"]),
    // Events of names, in order; derived by `workers`.
    ("changes", &["vocab"]),
    // Knows bytes, no events: so it can be tested to the last bit.
    ("journal", &[]),
    // One log for several nodes; knows bytes, as the journal does.
    ("cluster", &["journal"]),
    // Never the index: facts about names cross as arguments.
    ("accounts", &["vocab", "query", "journal", "cluster"]),
    // Files in, an archive out; knows paths, no content.
    ("backup", &["vocab"]),
    // Stands around the journal's disk; counting goes through the macros of `metrics`.
    ("telemetry", &["vocab", "journal"]),
    ("outbound", &["vocab"]),
    // Fetches lists and hands them to the pipeline, as the inbox does.
    ("sources", &["vocab", "feeds", "intake", "outbound"]),
    // Use cases, in the words of users: no status, no header.
    (
        "service",
        &["vocab", "index", "intake", "changes", "accounts", "telemetry", "outbound", "sources"],
    ),
    // The checks that people ask for wait in `service`.
    (
        "workers",
        &[
            "vocab",
            "query",
            "service",
            "index",
            "intake",
            "changes",
            "cluster",
            "accounts",
            "backup",
            "telemetry",
            "outbound",
        ],
    ),
    // Headers, cookies and statuses, for the API, the pages and the server.
    ("edge", &["vocab", "index", "accounts", "service"]),
    // Responses contain the signals of a score. The guard checks webhooks when they are added.
    (
        "http",
        &[
            "vocab",
            "query",
            "service",
            "edge",
            "scorer",
            "index",
            "intake",
            "changes",
            "cluster",
            "accounts",
            "telemetry",
            "outbound",
            "sources",
        ],
    ),
    // Pages show what the API answers, and the parts of a score.
    (
        "web",
        &[
            "vocab",
            "query",
            "service",
            "edge",
            "scorer",
            "index",
            "intake",
            "accounts",
            "telemetry",
            "outbound",
            "sources",
            "http",
        ],
    ),
    // Connections and deadlines: knows how to refuse, and nothing of what is asked for.
    ("server", &["vocab", "telemetry", "service", "edge", "http"]),
    // A setting is parsed into what its reader takes.
    (
        "config",
        &[
            "vocab",
            "feeds",
            "zones",
            "index",
            "intake",
            "telemetry",
            "outbound",
            "sources",
            "web",
            "server",
            "cluster",
        ],
    ),
    // A server of a cluster: its log, its peers, the lead, and files for all nodes.
    (
        "nodes",
        &[
            "vocab", "corpus", "index", "intake", "changes", "cluster", "accounts", "outbound",
            "workers", "config",
        ],
    ),
    (
        "app",
        &[
            "vocab",
            "service",
            "edge",
            "cluster",
            "feeds",
            "scorer",
            "corpus",
            "index",
            "intake",
            "changes",
            "journal",
            "accounts",
            "backup",
            "telemetry",
            "outbound",
            "sources",
            "workers",
            "http",
            "web",
            "server",
            "config",
            "nodes",
        ],
    ),
    (
        "cli",
        &[
            "vocab",
            "query",
            "service",
            "edge",
            "feeds",
            "scorer",
            "corpus",
            "index",
            "intake",
            "changes",
            "journal",
            "cluster",
            "accounts",
            "backup",
            "telemetry",
            "outbound",
            "sources",
            "workers",
            "http",
            "web",
            "server",
            "config",
            "nodes",
            "app",
        ],
    ),
    // Arguments in, exit code out.
    ("main", &["cli"]),
    // `pub mod` lines alone.
    ("lib", &[]),
];

#[test]
fn every_module_imports_only_what_it_may() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let faults = check_tree(&src);
    let lines: Vec<String> = faults.iter().map(Fault::to_string).collect();
    assert!(faults.is_empty(), "\n{}\n", lines.join("\n"));
}

/// A fault and its place.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    /// `file` imports module `to`, which the table does not allow to module `from`.
    Import { file: PathBuf, line: usize, from: String, to: String },
    /// `file` imports the crate root as a whole, which hides what it uses.
    Glob { file: PathBuf, line: usize },
    /// The table has no row for the module.
    NoRow { module: String },
    /// Modules of one folder import each other: each the next, and the last the first.
    Cycle { modules: Vec<String> },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Import { file, line, from, to } => write!(
                f,
                "{}:{line}: `{from}` may not import `{to}`; pass what is needed as an argument, \
                 move it down the pipeline, or move the wall (MAY_IMPORT in tests/layering.rs and \
                 src/ARCHITECTURE.md, in one commit that says why)",
                file.display()
            ),
            Fault::Glob { file, line } => write!(
                f,
                "{}:{line}: name the module instead of importing the crate root",
                file.display()
            ),
            Fault::NoRow { module } => write!(
                f,
                "module `{module}` has no row in MAY_IMPORT (tests/layering.rs): add one in the \
                 place it has in the pipeline, and the module to src/ARCHITECTURE.md"
            ),
            Fault::Cycle { modules } => write!(
                f,
                "{} import each other: move what both need into a module below them",
                modules.join(" -> ")
            ),
        }
    }
}

/// Every fault under `src`, sorted.
fn check_tree(src: &Path) -> BTreeSet<Fault> {
    let files = rust_files(src);
    assert!(!files.is_empty(), "{} holds no Rust files", src.display());
    let modules: BTreeSet<String> =
        files.iter().map(|file| module_path(src, file).swap_remove(0)).collect();
    let mut faults = BTreeSet::new();
    for module in &modules {
        if may_import(module).is_none() {
            faults.insert(Fault::NoRow { module: module.clone() });
        }
    }
    let mut imports = Imports::default();
    for file in files {
        let text = fs::read_to_string(&file).unwrap_or_else(|err| panic!("{file:?}: {err}"));
        let path = module_path(src, &file);
        faults.extend(check_file(&file, &path, &text, &modules));
        imports.add(&path, &text);
    }
    faults.extend(imports.cycles().into_iter().map(|modules| Fault::Cycle { modules }));
    faults
}

/// Which modules each module names: paths from the crate root.
#[derive(Default)]
struct Imports {
    modules: BTreeMap<Vec<String>, Vec<Vec<String>>>,
}

impl Imports {
    /// Adds the file at `path` of the module tree. Files of tests may import in cycles.
    fn add(&mut self, path: &[String], text: &str) {
        if !path.iter().any(|part| part == "tests") {
            let named = paths(&without_tests(&tokens(text)), path);
            self.modules.insert(path.to_owned(), named.into_iter().map(|(path, _)| path).collect());
        }
    }

    /// One cycle of each folder that has any. A folder's own `mod.rs` stands above its modules, so what
    /// it names does not count.
    fn cycles(&self) -> Vec<Vec<String>> {
        let folders: BTreeSet<&[String]> = self
            .modules
            .keys()
            .filter_map(|path| path.split_last())
            .map(|(_, rest)| rest)
            .collect();
        folders
            .into_iter()
            .filter(|folder| !folder.is_empty())
            .filter_map(|folder| {
                cycle(&self.siblings(folder)).map(|names| in_folder(folder, &names))
            })
            .collect()
    }

    /// The modules of `folder`, each with those beside it that it or anything below it names.
    fn siblings(&self, folder: &[String]) -> BTreeMap<&str, BTreeSet<&str>> {
        let child = |path: &'_ [String]| -> Option<usize> {
            (path.len() > folder.len() && path.starts_with(folder)).then_some(folder.len())
        };
        let names: BTreeSet<&str> =
            self.modules.keys().filter_map(|path| Some(path[child(path)?].as_str())).collect();
        let mut siblings: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (path, named) in &self.modules {
            let Some(at) = child(path) else { continue };
            let from = path[at].as_str();
            let to = named.iter().filter_map(|path| Some(path[child(path)?].as_str()));
            let to = to.filter(|to| *to != from && names.contains(to));
            siblings.entry(from).or_default().extend(to);
        }
        siblings
    }
}

fn in_folder(folder: &[String], names: &[&str]) -> Vec<String> {
    names.iter().map(|name| format!("{}::{name}", folder.join("::"))).collect()
}

/// A cycle of the graph, if there is one. Modules that name no module left are removed until none
/// is; what remains is on a cycle or leads to one.
fn cycle<'a>(graph: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> Option<Vec<&'a str>> {
    let mut left = graph.clone();
    while let Some(leaf) = left.iter().find(|(_, to)| to.is_empty()).map(|(name, _)| *name) {
        left.remove(leaf);
        left.values_mut().for_each(|to| {
            to.remove(leaf);
        });
    }
    let mut walk = vec![*left.keys().next()?];
    loop {
        let next = *left[walk.last()?].first()?;
        if let Some(start) = walk.iter().position(|name| *name == next) {
            walk.push(next);
            return Some(walk.split_off(start));
        }
        walk.push(next);
    }
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap_or_else(|err| panic!("{folder:?}: {err}")) {
        let path = entry.expect("a folder entry").path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// Where a file stands in the module tree: `src/feeds/zone.rs` is `[feeds, zone]`.
fn module_path(src: &Path, file: &Path) -> Vec<String> {
    let inside = file.strip_prefix(src).expect("listed from src").with_extension("");
    let mut path: Vec<String> =
        inside.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if path.len() > 1 && path.last().is_some_and(|last| last == "mod") {
        path.pop();
    }
    path
}

fn may_import(module: &str) -> Option<&'static [&'static str]> {
    MAY_IMPORT.iter().find(|(name, _)| *name == module).map(|(_, allowed)| *allowed)
}

/// The faults of one file; `path` is its place in the module tree.
fn check_file(file: &Path, path: &[String], text: &str, modules: &BTreeSet<String>) -> Vec<Fault> {
    let from = &path[0];
    // A file of tests (`#[cfg(test)] mod tests;`) may import anything, as inline tests may.
    let (Some(allowed), false) = (may_import(from), path[1..].iter().any(|part| part == "tests"))
    else {
        return Vec::new();
    };
    let mentions = mentions(&without_tests(&tokens(text)), path);
    let fault = |(to, line): (String, usize)| match to.as_str() {
        "*" | "self" => Some(Fault::Glob { file: file.to_owned(), line }),
        to if to == from || allowed.contains(&to) || !modules.contains(to) => None,
        _ => Some(Fault::Import { file: file.to_owned(), line, from: from.clone(), to }),
    };
    mentions.into_iter().filter_map(fault).collect()
}

/// A word or a mark of Rust, with its line. `::` is one token; comments and literals are not tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Token {
    text: String,
    line: usize,
}

/// Just enough of a Rust lexer to tell code from comments and literals.
fn tokens(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < chars.len() {
        let end = match chars[at] {
            '/' if chars.get(at + 1) == Some(&'/') => line_comment(&chars, at),
            '/' if chars.get(at + 1) == Some(&'*') => block_comment(&chars, at),
            '"' => string(&chars, at),
            '\'' => char_or_lifetime(&chars, at),
            'r' | 'b' | 'c' if raw_string(&chars, at).is_some() => {
                raw_string(&chars, at).unwrap_or(chars.len())
            }
            c if is_word(c) => {
                let end = run(&chars, at, is_word);
                tokens.push(Token { text: chars[at..end].iter().collect(), line });
                end
            }
            ':' if chars.get(at + 1) == Some(&':') => {
                tokens.push(Token { text: "::".into(), line });
                at + 2
            }
            c if c.is_whitespace() => at + 1,
            c => {
                tokens.push(Token { text: c.into(), line });
                at + 1
            }
        };
        line += chars[at..end].iter().filter(|&&c| c == '\n').count();
        at = end;
    }
    tokens
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn run(chars: &[char], from: usize, belongs: impl Fn(char) -> bool) -> usize {
    chars[from..].iter().position(|&c| !belongs(c)).map_or(chars.len(), |length| from + length)
}

fn line_comment(chars: &[char], at: usize) -> usize {
    run(chars, at, |c| c != '\n')
}

/// The end of a block comment; they nest.
fn block_comment(chars: &[char], mut at: usize) -> usize {
    let mut depth = 0;
    while at + 1 < chars.len() {
        match (chars[at], chars[at + 1]) {
            ('/', '*') => (depth, at) = (depth + 1, at + 2),
            ('*', '/') => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    chars.len()
}

/// The end of a literal in quotes, which stand at `at`.
fn string(chars: &[char], at: usize) -> usize {
    let quote = chars[at];
    let mut at = at + 1;
    while at < chars.len() && chars[at] != quote {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(chars.len())
}

/// `'a'` and `'\n'` are literals; of `'a` in a type only the quote is passed.
fn char_or_lifetime(chars: &[char], at: usize) -> usize {
    let literal = chars.get(at + 1) == Some(&'\\') || chars.get(at + 2) == Some(&'\'');
    if literal { string(chars, at) } else { at + 1 }
}

/// The end of a raw string literal at `at`, such as `r".."` or `br#".."#`, if one starts there.
fn raw_string(chars: &[char], at: usize) -> Option<usize> {
    if at > 0 && is_word(chars[at - 1]) {
        return None;
    }
    let start = if chars[at] == 'r' { at + 1 } else { at + 2 };
    if chars.get(start - 1) != Some(&'r') {
        return None;
    }
    let quote = run(chars, start, |c| c == '#');
    if chars.get(quote) != Some(&'"') {
        return None;
    }
    let hashes = quote - start;
    let closes = |&at: &usize| {
        chars[at] == '"'
            && chars.get(at + 1..at + 1 + hashes).is_some_and(|end| end.iter().all(|&c| c == '#'))
    };
    Some((quote + 1..chars.len()).find(closes).map_or(chars.len(), |at| at + 1 + hashes))
}

/// The tokens without the items under `#[cfg(test)]`.
fn without_tests(tokens: &[Token]) -> Vec<Token> {
    const CFG_TEST: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let is_test = tokens[at..].len() >= CFG_TEST.len()
            && tokens[at..].iter().zip(CFG_TEST).all(|(token, text)| token.text == text);
        if is_test {
            at = item_end(tokens, at + CFG_TEST.len());
        } else {
            kept.push(tokens[at].clone());
            at += 1;
        }
    }
    kept
}

/// Where the item at `at` ends: after its `;`, or after the brace that closes its first one.
fn item_end(tokens: &[Token], at: usize) -> usize {
    let mut depth = 0_i32;
    for (offset, token) in tokens[at..].iter().enumerate() {
        match token.text.as_str() {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth -= 1,
            _ => {}
        }
        let closed = token.text == "}" || token.text == ";";
        if depth == 0 && closed {
            return at + offset + 1;
        }
    }
    tokens.len()
}

/// The top-level modules that the tokens of the file at `path` name, each with its line.
fn mentions(tokens: &[Token], path: &[String]) -> Vec<(String, usize)> {
    let head = |(mut path, line): (Vec<String>, usize)| (path.swap_remove(0), line);
    let mut heads: Vec<_> = paths(tokens, path).into_iter().map(head).collect();
    heads.dedup();
    heads
}

/// The paths that the tokens of the file at `path` name, from the crate root, each with its line: after
/// `crate::`, after `dropdex::`, and after any number of `super::`. Inside an inline module `super` leads
/// one module less far than read here.
fn paths(tokens: &[Token], path: &[String]) -> Vec<(Vec<String>, usize)> {
    let is = |at: usize, text: &str| tokens.get(at).is_some_and(|token| token.text == text);
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let root = is(at, "crate") || is(at, "dropdex");
        let mut supers = 0;
        while is(at + 2 * supers, "super") && is(at + 2 * supers + 1, "::") {
            supers += 1;
        }
        if root && is(at + 1, "::") {
            expand(&tokens[at + 2..], &[], &mut found);
            at += 2;
        } else if supers > 0 {
            let above = &path[..path.len().saturating_sub(supers)];
            expand(&tokens[at + 2 * supers..], above, &mut found);
            at += 2 * supers;
        } else {
            at += 1;
        }
    }
    found
}

/// Adds the path that the tokens start with, or each path of their group, below `above`. Returns how
/// many tokens those take.
fn expand(tokens: &[Token], above: &[String], found: &mut Vec<(Vec<String>, usize)>) -> usize {
    let mut path = above.to_vec();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        if token.text == "{" {
            at += 1;
            while let Some(token) = tokens.get(at) {
                match token.text.as_str() {
                    "}" => return at + 1,
                    "," => at += 1,
                    _ => at += expand(&tokens[at..], &path, found).max(1),
                }
            }
            return at;
        }
        if !token.text.chars().all(is_word) && token.text != "*" {
            break;
        }
        path.push(token.text.clone());
        at += 1;
        if tokens.get(at).is_none_or(|next| next.text != "::") {
            break;
        }
        at += 1;
    }
    if path.len() > above.len() {
        found.push((path, tokens[at - 1].line));
    }
    // `use a::b as c` in a group: the alias is not a path of its own.
    if tokens.get(at).is_some_and(|token| token.text == "as") { at + 2 } else { at }
}

#[cfg(test)]
mod scanner {
    use super::*;

    /// The faults of `text` as the file `path` (`feeds/zone`), in a crate with all modules.
    fn faults(path: &str, text: &str) -> Vec<Fault> {
        let modules = MAY_IMPORT.iter().map(|(name, _)| (*name).to_owned()).collect();
        let path: Vec<String> = path.split('/').map(str::to_owned).collect();
        check_file(Path::new("f.rs"), &path, text, &modules)
    }

    /// Consequences of [`faults`] of imports, with their lines.
    fn imports(path: &str, text: &str) -> Vec<(String, usize)> {
        let import = |fault| match fault {
            Fault::Import { to, line, .. } => (to, line),
            other => panic!("{other:?}"),
        };
        faults(path, text).into_iter().map(import).collect()
    }

    #[test]
    fn a_violation_is_seen_however_it_is_spelled() {
        for text in [
            "\nuse crate::index::Hit;",
            "\npub(crate) use crate::{vocab::day::Day, index::{Hit, live}};",
            "\nuse crate::{\n vocab, index as i};",
            "\nfn f() -> crate::index::Hit { x }",
            "\nfn f<'a>(x: &'a str) { let c = '\"'; crate :: index :: g(x) }",
            "\nlet x = r#\"\"//\"#; crate::index::f()",
            "\n/* a /* nested */ one */ use crate::index;",
            "\nuse super::super::index;",
            "\n$crate::index::f!()",
            "\nuse ::dropdex::index::Hit;",
            "\nuse dropdex::index::Hit;",
            "\n#[cfg(test)]\nmod tests { fn f() { g(); } }\nuse crate::index;",
            "\n#[cfg(test)] use crate::http; use crate::index;",
            "\n#[cfg(not(test))] use crate::index;",
        ] {
            let found: Vec<String> =
                imports("feeds/zone", text).into_iter().map(|(to, _)| to).collect();
            assert_eq!(found, ["index"], "{text}");
        }
        assert_eq!(imports("feeds/zone", "a\n\"\n\"\n\ncrate::index"), [("index".into(), 5)]);
        assert_eq!(imports("feeds", "use super::index;"), [("index".into(), 1)]);
        assert_eq!(
            imports("vocab/day", "use crate::{feeds::A, scorer::{B, C}, vocab::D};").len(),
            2
        );
    }

    #[test]
    fn what_is_allowed_or_no_code_is_not_seen() {
        for text in [
            "use crate::vocab::day::Day;",
            "use crate::feeds::Row; use super::lines; use super::super::vocab::day;",
            "// use crate::index;\n/// [`crate::index`]\n//! crate::index",
            "/* crate::index /* crate::http */ crate::web */",
            "let x = \"crate::index \\\" crate::http\"; let y = r\"crate::index\";",
            "#[cfg(test)]\nmod tests {\n use crate::index; fn f(x: [u8; 2]) { { } } \n}",
            "#[cfg(test)]\n#[path = \"x\"]\nuse crate::index;",
            "pub(in crate) fn f() {} pub(crate) struct S;",
            "other::index::f(); super::index::f();",
            "crate::SOMETHING_AT_THE_ROOT",
        ] {
            assert_eq!(faults("feeds/zone", text), [], "{text}");
        }
        assert_eq!(faults("feeds/tests", "use crate::index;"), [], "a file of tests");
        assert_eq!(faults("feeds/zone/tests", "use crate::index;"), [], "a file of tests");
    }

    #[test]
    fn the_root_is_not_imported_whole() {
        for text in ["use crate::*;", "use crate::{vocab, *};", "use crate::{self as all};"] {
            assert!(
                matches!(faults("feeds/zone", text)[..], [Fault::Glob { line: 1, .. }]),
                "{text}"
            );
        }
    }

    #[test]
    fn an_invented_tree_fails_with_all_its_faults() {
        let folder = tempfile::tempdir().expect("a folder");
        let src = folder.path();
        for (file, text) in [
            ("lib.rs", "pub mod journal;\npub mod vocab;\nmod surprise;"),
            ("main.rs", "fn main() { dropdex::vocab::f() }"),
            ("vocab/mod.rs", "mod day;"),
            ("vocab/day.rs", "use crate::journal::frame;"),
            ("journal/mod.rs", "use crate::journal::frame;"),
            ("surprise.rs", "use crate::vocab;"),
        ] {
            let file = src.join(file);
            fs::create_dir_all(file.parent().expect("in a folder")).expect("made");
            fs::write(file, text).expect("written");
        }
        let import = |file: &str, from: &str, to: &str| Fault::Import {
            file: src.join(file),
            line: 1,
            from: from.into(),
            to: to.into(),
        };
        let expected = BTreeSet::from([
            import("main.rs", "main", "vocab"),
            import("vocab/day.rs", "vocab", "journal"),
            Fault::NoRow { module: "surprise".into() },
        ]);
        let found = check_tree(src);
        assert_eq!(found, expected);
        let text: Vec<String> = found.iter().map(Fault::to_string).collect();
        assert!(text.iter().any(|line| line.contains("`vocab` may not import `journal`")));
        assert!(text.iter().any(|line| line.contains("`surprise` has no row")));
    }

    #[test]
    fn a_cycle_inside_a_folder_is_found_however_long() {
        let mut imports = Imports::default();
        for (path, text) in [
            ("index", "use self::build; pub use crate::index::rows::Row;"),
            ("index/build", "use crate::index::{rows::Row, query};"),
            ("index/rows", "use super::table::Table;"),
            ("index/table", "use crate::index::query::filter::Filter;"),
            ("index/query", "pub mod filter;"),
            (
                "index/query/filter",
                "use crate::vocab::day; #[cfg(test)] mod t { use crate::index::build; }",
            ),
        ] {
            let path: Vec<String> = path.split('/').map(str::to_owned).collect();
            imports.add(&path, text);
        }
        assert_eq!(imports.cycles(), Vec::<Vec<String>>::new());
        let path = ["index", "query", "filter"].map(str::to_owned);
        imports.add(&path, "fn f() { crate::index::rows::g() }");
        let [cycle] = &imports.cycles()[..] else { panic!("one cycle") };
        assert_eq!(cycle.join(" "), "index::query index::rows index::table index::query");
    }

    #[test]
    fn the_table_never_turns_back() {
        for (at, (module, allowed)) in MAY_IMPORT.iter().enumerate() {
            if *module == "main" {
                continue;
            }
            for to in *allowed {
                let earlier = MAY_IMPORT[..at].iter().any(|(name, _)| name == to);
                assert!(earlier, "`{module}` imports `{to}`, which does not come before it");
            }
        }
    }
}
