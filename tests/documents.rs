//! Checks that documents and comments name only files, modules and tests that exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Markdown files that are checked, by folder; their subfolders hold fixtures and samples.
const FOLDERS: [&str; 7] =
    ["", "src", "tests", "tests/fuzz", "benches", "data/docs", "data/scorer"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|err| panic!("{}: {err}", path.display()))
}

#[test]
fn comments_name_existing_documents() {
    let tree = Tree::read();
    let mut dangling = Vec::new();
    for file in tree.files.iter().filter(|file| file.ends_with(".rs")) {
        for (name, line) in documents(&read(&root().join(file))) {
            if !tree.has_document(file, &name) {
                dangling.push(format!("{file}:{line}: there is no {name}"));
            }
        }
    }
    assert!(dangling.is_empty(), "\n{}\n", dangling.join("\n"));
}

#[test]
fn documents_name_existing_files() {
    let tree = Tree::read();
    let mut dangling = Vec::new();
    for file in tree.files.iter().filter(|file| is_document(file)) {
        for (name, line) in code_spans(&read(&root().join(file))) {
            let exists = match name.rsplit_once('.') {
                Some((_, "md")) => tree.has_document(file, &name),
                Some((_, "rs")) => tree.has_source(&name),
                None if file == "src/ARCHITECTURE.md" && is_module_path(&name) => {
                    tree.has_source(&format!("{name}.rs")) || tree.has_folder(&name)
                }
                _ => true,
            };
            if !exists {
                dangling.push(format!("{file}:{line}: there is no {name}"));
            }
        }
    }
    assert!(dangling.is_empty(), "\n{}\n", dangling.join("\n"));
}

#[test]
fn the_architecture_is_in_short_paragraphs() {
    let (mut lines, mut is_fenced) = (0, false);
    for (line, number) in read(&root().join("src/ARCHITECTURE.md")).lines().zip(1..) {
        is_fenced ^= line.starts_with("```");
        let is_item = line.starts_with("- ")
            || line.split_once(". ").is_some_and(|(n, _)| n.parse::<u8>().is_ok());
        lines = match line {
            _ if is_fenced || line.is_empty() || line.starts_with(['|', '#']) => 0,
            _ if is_item => 1,
            _ => lines + 1,
        };
        let is_wide = line.chars().count() > 120 && !line.starts_with('|');
        assert!(!is_wide, "src/ARCHITECTURE.md:{number}: longer than 120 columns");
        assert!(lines <= 6, "src/ARCHITECTURE.md:{number}: a paragraph of more than 6 lines");
    }
}

#[test]
fn contributing_names_existing_tests() {
    let tests: Vec<String> = Tree::read()
        .files
        .iter()
        .filter(|file| file.ends_with(".rs"))
        .map(|file| read(&root().join(file)))
        .collect();
    // Minimum length of a code span that is the name of a test: test names are sentences, and other
    // code spans of this length are paths or contain capitals.
    let is_test = |name: &str| {
        name.matches('_').count() > 3
            && name.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit())
    };
    let text = read(&root().join("data/docs/contributing.md"));
    let named: Vec<_> = code_spans(&text).into_iter().filter(|(name, _)| is_test(name)).collect();
    assert!(named.len() > 3, "{named:?}");
    for (name, line) in named {
        let exists = tests.iter().any(|file| file.contains(&format!("fn {name}(")));
        assert!(exists, "data/docs/contributing.md:{line}: there is no test {name}");
    }
}

#[test]
fn the_table_of_tests_lists_every_module() {
    let main = read(&root().join("tests/it/main.rs"));
    let modules: BTreeSet<&str> = main
        .lines()
        .filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'))
        .filter(|module| *module != "common")
        .collect();
    let readme = read(&root().join("tests/README.md"));
    let (_, table) = readme.split_once("## Modules of `it`").expect("the table of modules");
    let table = table.split("\n## ").next().unwrap_or_default();
    let first_cells = table.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let listed: BTreeSet<&str> = first_cells
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .filter(|name| !name.contains(':'))
        .collect();
    assert_eq!(listed, modules);
}

/// Every file of the source tree, relative to its root.
struct Tree {
    files: Vec<String>,
}

impl Tree {
    fn read() -> Tree {
        let mut files = Vec::new();
        for folder in ["src", "tests", "benches", "data"] {
            add_files(&root().join(folder), &mut files);
        }
        files.push("README.md".to_owned());
        Tree { files }
    }

    /// Whether `name` exists beside `file`, or below the root.
    fn has_document(&self, file: &str, name: &str) -> bool {
        let beside = Path::new(file).parent().expect("in a folder");
        [beside, Path::new("")].iter().any(|folder| root().join(folder).join(name).exists())
    }

    /// Whether the path of a file ends with the parts of `name`.
    fn has_source(&self, name: &str) -> bool {
        self.files.iter().any(|file| ends_with(file, name))
    }

    /// Whether a folder ends with the parts of `name`.
    fn has_folder(&self, name: &str) -> bool {
        let parents = self.files.iter().filter_map(|file| Some(file.rsplit_once('/')?.0));
        parents.into_iter().any(|folder| ends_with(folder, name))
    }
}

fn ends_with(path: &str, end: &str) -> bool {
    path.strip_suffix(end).is_some_and(|start| start.is_empty() || start.ends_with('/'))
}

fn add_files(folder: &Path, files: &mut Vec<String>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|err| panic!("{}: {err}", folder.display()));
    for entry in entries {
        let path: PathBuf = entry.expect("a folder entry").path();
        if path.is_dir() {
            add_files(&path, files);
        } else {
            let relative = path.strip_prefix(root()).expect("below the root");
            files.push(relative.display().to_string());
        }
    }
}

fn is_document(file: &str) -> bool {
    let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
    file.ends_with(".md") && FOLDERS.contains(&folder)
}

/// Whether a code span names a module by its path: `intake/run`.
fn is_module_path(span: &str) -> bool {
    span.contains('/')
        && span.split('/').all(|part| {
            !part.is_empty() && part.chars().all(|c| c.is_ascii_lowercase() || c == '_')
        })
}

/// Returns the code spans of a document outside fenced blocks, and the targets of its links, each with
/// its line. Names in capitals are placeholders (`FORMAT.rs`) and are left out.
fn code_spans(text: &str) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    let mut is_fenced = false;
    for (line, number) in text.lines().zip(1..) {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        } else if !is_fenced {
            let spans = line.split('`').skip(1).step_by(2);
            let links = line.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
            let names = spans.chain(links).filter(|name| {
                let last = name.rsplit('/').next().unwrap_or_default();
                let is_local = !name.contains([':', ' ', '*', '…', '?']);
                is_local
                    && (last.ends_with(".md") || !last.contains(|c: char| c.is_ascii_uppercase()))
            });
            found.extend(names.map(|name| (name.to_owned(), number)));
        }
    }
    found
}

/// Returns the Markdown files that line comments of `text` name, each with its line.
fn documents(text: &str) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let Some((_, comment)) = line.split_once("//") else { continue };
        let is_path = |c: char| c.is_alphanumeric() || matches!(c, '.' | '/' | '-' | '_');
        for word in comment.split(|c| !is_path(c)) {
            let word = word.trim_end_matches('.');
            if word.ends_with(".md") && word != ".md" {
                found.push((word.to_owned(), number));
            }
        }
    }
    found
}

#[test]
fn documents_are_read_from_comments_only() {
    let text =
        "let x = \"a.md\";\n/// See `data/docs/api.md`, Names.\nx(); // (src/ARCHITECTURE.md).";
    let found = [("data/docs/api.md".to_owned(), 2), ("src/ARCHITECTURE.md".to_owned(), 3)];
    assert_eq!(documents(text), found);
}

#[test]
fn code_spans_and_links_are_read_outside_fences() {
    let text =
        "A `feeds/row.rs` and\n```\n`no.rs`\n```\n[one](two.md#three), `FORMAT.rs`, `a b.rs`";
    let found = [("feeds/row.rs".to_owned(), 1), ("two.md".to_owned(), 5)];
    assert_eq!(code_spans(text), found);
}
