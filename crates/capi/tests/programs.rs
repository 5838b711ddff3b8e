//! C programs, compiled by the system's compiler with the header as it is.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, reason = "helpers of tests")]

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

fn place(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// True, and a line on stderr, if this cannot be tested here. In CI it must be.
fn skipped(why: &str) -> bool {
    assert!(std::env::var_os("CI").is_none(), "{why}");
    // Not `eprintln!`: the harness hides it for tests that pass.
    std::io::stderr().write_all(format!("skipped, {why}\n").as_bytes()).unwrap();
    true
}

/// The folder with the library for C. Tests of Rust need no such library, so nobody has built it yet.
fn library() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let test = std::env::current_exe().unwrap();
        let folder = test.parent().and_then(Path::parent).unwrap().to_owned();
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--offline", "--locked", "--quiet", "-p", "farpace-capi", "--target-dir"]);
        let output = cargo.arg(folder.parent().unwrap()).current_dir(place("")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        folder
    })
}

/// Compiles a program against that library; none: there is no compiler.
fn compiled(source: &str, into: &Path) -> Option<PathBuf> {
    let libraries = library();
    let name = Path::new(source).file_stem().unwrap();
    let program = into.join(name);
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"]).arg(&program).arg(place(source));
    cc.arg("-I").arg(place("include")).arg("-L").arg(libraries).arg("-lfarpace");
    cc.arg(format!("-Wl,-rpath,{}", libraries.display()));
    match cc.output() {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(program)
        }
        Err(error) => {
            skipped(&format!("needs a C compiler: {error}"));
            None
        }
    }
}

fn well(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

/// Breaks: C programs with ordinary event loops: what descriptors show, errno of every call, options,
/// TCP_INFO, bytes both ways with the kernel, and what happens at the end.
#[test]
fn sockets_behave_as_bsd_has_them() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compiled("tests/stack.c", folder.path()) else { return };
    let output = Command::new("unshare").args(["--net", "--"]).arg(&program).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("unshare failed") && skipped("needs root: no network namespace") {
        return;
    }
    assert_eq!(well(&output), "well\n");
}

/// Breaks: simulators and fuzzers that drive the stack in their own time: the bytes, the time they take, and
/// that the same calls give the same packets.
#[test]
fn two_hosts_in_virtual_time() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compiled("examples/pair.c", folder.path()) else { return };
    let run = |seed: &str| well(&Command::new(&program).arg(seed).output().unwrap());
    let first = run("1");
    assert_eq!(first, run("1"));
    assert_ne!(first, run("2"), "another seed has other sequence numbers");
    // 300,000 bytes at 10 ms each way take some round trips of slow start, and TIME-WAIT a minute.
    let seconds: f64 = first.split_whitespace().nth(3).unwrap().parse().unwrap();
    assert!((60.05..60.5).contains(&seconds), "{first}");
}

/// Breaks: simulators get a host with an address that nobody can have, cannot choose its TCP by name, learn a
/// wrong time of a packet, or wake it when there is nothing to do.
#[test]
fn hosts_are_made_as_asked_and_name_their_times() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compiled("tests/host.c", folder.path()) else { return };
    assert_eq!(well(&Command::new(&program).output().unwrap()), "well\n");
}

/// Breaks: examples of the documentation that do not compile.
#[test]
fn the_examples_compile() {
    let folder = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(place("examples")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        compiled(&format!("examples/{name}"), folder.path());
    }
}

/// Names with our prefixes that are followed by a parenthesis.
fn functions(text: &str, before: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for line in text.lines().filter(|line| line.contains(before) && !line.trim_start().starts_with("//")) {
        for (at, _) in line.match_indices('(') {
            let start =
                line[..at].rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_').map_or(0, |n| n + 1);
            let name = &line[start..at];
            if name.starts_with("fp_") || name.starts_with("farpace_host_") {
                names.insert(name.to_owned());
            }
        }
    }
    names
}

/// Breaks: C programs that call what the library does not have, or cannot call what it has.
#[test]
fn the_header_has_what_the_library_has() {
    let header = std::fs::read_to_string(place("include/farpace.h")).unwrap();
    let declarations: String = header
        .lines()
        .filter(|line| !line.starts_with(['/', ' ']))
        .fold(String::new(), |all, line| all + line + "\n");
    let mut code = String::new();
    for entry in std::fs::read_dir(place("src/ffi")).unwrap() {
        code += &std::fs::read_to_string(entry.unwrap().path()).unwrap();
    }
    let (declared, defined) = (functions(&declarations, ""), functions(&code, "extern \"C\" fn"));
    assert!(defined.len() > 30, "{defined:?}");
    assert_eq!(declared, defined);
}
