//! What the checks look at: the crates of the workspace and their sources.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A package of the workspace.
pub struct Crate {
    pub name: String,
    pub folder: PathBuf,
    /// Roots of its library and programs.
    pub roots: Vec<PathBuf>,
    /// Names of crates of the workspace that it needs to be built.
    pub needs: BTreeSet<String>,
    /// Crates of the workspace that only its tests and examples need.
    pub test_needs: BTreeSet<String>,
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

pub fn crates() -> Vec<Crate> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--offline", "--no-deps", "--format-version", "1"]).current_dir(root());
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let list = |value: &Value| value.as_array().unwrap().clone();
    let packages = list(&metadata["packages"]);
    let ours: BTreeSet<_> = packages.iter().map(|p| text(&p["name"])).collect();
    let read = |package: &Value| {
        let needs = |test: bool| {
            let all = list(&package["dependencies"]);
            let these = all.iter().filter(|d| (d["kind"] == "dev") == test).map(|d| text(&d["name"]));
            these.filter(|name| ours.contains(name)).collect()
        };
        let is_root = |target: &&Value| {
            list(&target["kind"])
                .iter()
                .any(|k| matches!(k.as_str(), Some("lib" | "bin" | "proc-macro" | "cdylib")))
        };
        Crate {
            name: text(&package["name"]),
            folder: Path::new(&text(&package["manifest_path"])).parent().unwrap().to_owned(),
            roots: list(&package["targets"])
                .iter()
                .filter(is_root)
                .map(|t| text(&t["src_path"]).into())
                .collect(),
            needs: needs(false),
            test_needs: needs(true),
        }
    };
    let crates: Vec<_> = packages.iter().map(read).collect();
    assert!(crates.len() >= 10 && crates.iter().all(|c| !c.roots.is_empty()), "the metadata was misread");
    crates
}

/// All Rust files below `folder`, with their text, in order.
pub fn sources(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for path in entries.map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                files.insert(path, text);
            }
        }
    }
    files
}

/// The lines of `text` that are not comments, with their numbers.
pub fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(n, line)| (n + 1, line))
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// True for files that hold only tests, or what tests share.
pub fn is_test_file(path: &Path) -> bool {
    let in_tests = path.iter().any(|part| part == "tests" || part == "testing");
    let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    in_tests
        || name.ends_with("tests")
        || matches!(name, "testing" | "test_records" | "harness" | "hostile" | "laws")
}
