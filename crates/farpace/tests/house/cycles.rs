//! Modules of a crate form no cycles. A module and its parent may refer to each other.

use crate::exceptions::compare;
use crate::syntax::references;
use crate::workspace::{crates, is_test_file, sources};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Cycles that exist still: a crate and the modules of one cycle.
const EXCEPTIONS: &[&str] = &[];

type Module = Vec<String>;
type Edges = BTreeMap<Module, BTreeSet<Module>>;

/// Breaks: reading a crate module by module, if two modules each need the other to be understood.
#[test]
fn modules_form_no_cycles() {
    let mut found = BTreeSet::new();
    for c in crates() {
        let edges = edges(&c.folder.join("src"));
        for cycle in cycles(&edges) {
            let names: Vec<_> = cycle.iter().map(|module| module.join("::")).collect();
            found.insert(format!("{}: {}", c.name, names.join(" ")));
        }
    }
    compare("modules that form a cycle", &found, EXCEPTIONS);
}

/// Breaks: the check above, if it misses a cycle or calls a parent and its child one.
#[test]
fn cycles_are_found() {
    let module = |name: &str| name.split("::").map(str::to_owned).collect::<Module>();
    let edge = |from: &str, to: &str| (module(from), BTreeSet::from([module(to)]));
    let edges = Edges::from([edge("a", "b"), edge("b", "c"), edge("c", "a"), edge("d", "a")]);
    assert_eq!(cycles(&edges), [["a", "b", "c"].map(module)]);
    assert!(related(&module("a::b"), &module("a")) && !related(&module("a::b"), &module("a::c")));
}

/// Which module of a source folder refers to which other, parents and children left out.
fn edges(folder: &Path) -> Edges {
    let files = sources(folder);
    let modules: BTreeMap<Module, &String> = files
        .iter()
        .filter(|(path, _)| !is_test_file(path))
        .map(|(path, text)| (module_of(path.strip_prefix(folder).unwrap()), text))
        .collect();
    let mut edges = Edges::new();
    for (module, text) in &modules {
        let file = syn::parse_file(text).unwrap();
        let targets = references(&file).into_iter().filter_map(|path| resolve(module, &path, &modules));
        let targets = targets.filter(|target| !related(module, target)).collect();
        edges.insert(module.clone(), targets);
    }
    edges
}

fn module_of(path: &Path) -> Module {
    let mut parts: Module =
        path.with_extension("").iter().map(|part| part.to_str().unwrap().to_owned()).collect();
    if parts.last().is_some_and(|last| matches!(last.as_str(), "mod" | "lib" | "main")) {
        parts.pop();
    }
    parts
}

/// The module that a path leads to: the longest beginning that is one.
fn resolve(from: &Module, path: &[String], modules: &BTreeMap<Module, &String>) -> Option<Module> {
    let mut full = from.clone();
    for (n, part) in path.iter().enumerate() {
        match part.as_str() {
            "crate" if n == 0 => full.clear(),
            "self" if n == 0 => {}
            "super" => {
                full.pop();
            }
            name => full.push(name.to_owned()),
        }
    }
    while !modules.contains_key(&full) {
        full.pop()?;
    }
    Some(full)
}

/// True for a module and itself, or one that it is inside of.
fn related(a: &Module, b: &Module) -> bool {
    a.starts_with(b) || b.starts_with(a)
}

/// Sets of modules each of which leads to each other, of at least two.
fn cycles(edges: &Edges) -> Vec<Vec<Module>> {
    let reach: BTreeMap<&Module, BTreeSet<&Module>> =
        edges.keys().map(|from| (from, reachable(from, edges))).collect();
    let mut cycles = BTreeSet::new();
    for (from, reached) in &reach {
        let cycle: BTreeSet<_> =
            reached.iter().copied().filter(|to| reach.get(to).is_some_and(|r| r.contains(from))).collect();
        if cycle.len() > 1 {
            cycles.insert(cycle.into_iter().cloned().collect::<Vec<_>>());
        }
    }
    cycles.into_iter().collect()
}

fn reachable<'a>(from: &Module, edges: &'a Edges) -> BTreeSet<&'a Module> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&Module> = edges.get(from).into_iter().flatten().collect();
    while let Some(module) = next.pop() {
        if reached.insert(module) {
            next.extend(edges.get(module).into_iter().flatten());
        }
    }
    reached
}
