//! What users get wrong, and what machines do to them.

mod common;

use common::{LOSSY, bytes, farpace, names, run, with_scenario};
use std::fs;
use std::process::{Command, Stdio};

/// Breaks: a mistake in a scenario is answered without its place, or with success.
#[test]
fn mistakes_in_scenarios_are_shown_in_place() {
    let dir = with_scenario(LOSSY);
    for (from, to, expected) in [
        ("rate = ", "rte = ", &["unknown key `rte`", "bad.toml:", "did you mean `rate`?"][..]),
        ("100 Mbit/s", "0 Mbit/s", &["bad.toml:", "rate"]),
        ("100 Mbit/s", "100 MB", &["bad.toml:", "unknown unit `MB`"]),
        (
            "[[flows]]",
            "[routers.r]\n[routers.s]\n[routers.t]\n[[links]]\nname=\"1\"\nbetween=[\"r\",\"s\"]\n\
             [[links]]\nname=\"2\"\nbetween=[\"s\",\"t\"]\n[[links]]\nname=\"3\"\nbetween=[\"t\",\"r\"]\n[[flows]]",
            &["bad.toml:", "loop"],
        ),
    ] {
        assert!(LOSSY.contains(from));
        fs::write(dir.path().join("bad.toml"), LOSSY.replacen(from, to, 1)).unwrap();
        for command in [
            &["run", "bad.toml"][..],
            &["scenario", "check", "bad.toml"],
            &["scenario", "explain", "bad.toml"],
        ] {
            let (code, stdout, stderr) = run(dir.path(), command);
            assert_eq!((code, stdout.as_str()), (2, ""), "{to}: {stderr}");
            assert!(expected.iter().all(|words| stderr.contains(words)), "{expected:?}: {stderr}");
        }
    }
    assert_eq!(names(dir.path()), ["bad.toml", "scenario.toml"], "nothing was written");
}

/// Breaks: files that are missing or of the wrong kind give panics, hang, or a message without the file's
/// name.
#[test]
fn unusable_files_are_named() {
    let dir = with_scenario(LOSSY);
    fs::create_dir(dir.path().join("folder")).unwrap();
    fs::write(dir.path().join("empty"), "").unwrap();
    fs::write(dir.path().join("binary.toml"), [b'a', b'\n', 0xff, 0xfe]).unwrap();
    fs::write(dir.path().join("payload"), bytes(5_000)).unwrap();
    fs::create_dir(dir.path().join("taken")).unwrap();
    fs::write(dir.path().join("taken/report.html"), "mine").unwrap();
    for (arguments, expected) in [
        (&["run", "missing.toml"][..], "`missing.toml`"),
        (&["run", "folder"], "`folder`"),
        (&["run", "binary.toml"], "line 2"),
        (&["scenario", "check", "missing.toml"], "`missing.toml`"),
        (&["run", "scenario.toml", "--payload", "missing"], "`missing`"),
        (&["run", "scenario.toml", "--payload", "folder"], "`folder` is a directory"),
        (&["run", "scenario.toml", "--payload", "empty"], "`empty` is empty"),
        (
            &["run", "scenario.toml", "--payload", "payload", "--received", "./folder/../payload"],
            "overwritten",
        ),
        (&["run", "scenario.toml", "--received", "scenario.toml"], "overwritten"),
        (&["run", "scenario.toml", "--received", "folder"], "`folder` is a directory"),
        (&["run", "scenario.toml", "--received", "missing/copy"], "missing/copy"),
        (&["run", "scenario.toml", "--out", "payload"], "`payload`"),
        (&["run", "scenario.toml", "--out", "taken"], "taken/report.html"),
        (&["run", "scenario.toml", "--out", "."], "scenario.toml"),
        (&["run", "scenario.toml", "--set", "links.wire.delai=1 s"], "--set links.wire.delai=1 s"),
        (&["run", "scenario.toml", "--set", "nonsense"], "KEY=VALUE"),
        (&["run", "scenario.toml", "--seed", "-1"], "--seed"),
        (&["run", "scenario.toml", "--trace", "excel"], "parquet"),
    ] {
        let (code, stdout, stderr) = run(dir.path(), arguments);
        assert_eq!((code, stdout.as_str()), (2, ""), "{arguments:?}: {stderr}");
        assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
        assert!(!stderr.contains("panicked"), "{stderr}");
    }
    assert_eq!(fs::read_to_string(dir.path().join("taken/report.html")).unwrap(), "mine");
    assert_eq!(fs::read_to_string(dir.path().join("scenario.toml")).unwrap(), LOSSY);
    assert_eq!(fs::read(dir.path().join("payload")).unwrap(), bytes(5_000));
    assert_eq!(names(&dir.path().join("taken")), ["report.html"]);
}

/// A file system of 256 KiB at `at`, unmounted at the end; none without the right to mount.
struct SmallDisk<'a>(&'a std::path::Path);

impl<'a> SmallDisk<'a> {
    fn mount(at: &'a std::path::Path) -> Option<Self> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=900k", "none"]).arg(at).stderr(Stdio::null());
        match mount.status() {
            Ok(status) if status.success() => Some(SmallDisk(at)),
            _ => common::skip("a small file system", "it cannot be mounted here"),
        }
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

/// Breaks: a full disk leaves files that look complete, or an error that does not say which file it was.
#[test]
fn a_full_disk_leaves_nothing_half_written() {
    let dir = with_scenario(LOSSY);
    let disk = dir.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let Some(_mounted) = SmallDisk::mount(&disk) else { return };
    for (options, file) in [
        (&[][..], ".pcapng`"),
        (&["--no-captures", "--trace", "csv", "--set", "flows.0.size=20 MB"], "trace.csv"),
        (&["--trace", "none", "--no-captures", "--received", "disk/copy"], "disk/copy"),
    ] {
        let mut arguments = vec!["run", "scenario.toml", "--out", "disk/out"];
        arguments.extend(options);
        let (code, _, stderr) = run(dir.path(), &arguments);
        assert_eq!(code, 2, "{stderr}");
        assert!(stderr.contains(file) && stderr.contains("No space left"), "{stderr}");
        assert!(!stderr.contains("unfinished"), "the place, not where it was staged: {stderr}");
        // What fails belongs to the results, or stands beside them: nothing, or all the rest, is there.
        let left = if disk.join("out").exists() { names(&disk.join("out")) } else { Vec::new() };
        let complete = options.contains(&"--received");
        let expected = ["figures", "report.html", "scenario.toml", "summary.json"];
        assert_eq!(left, if complete { &expected[..] } else { &[] });
        assert!(!disk.join("copy").exists() && !disk.join("copy.partial").exists());
        let _ = fs::remove_dir_all(disk.join("out"));
    }
}

/// Breaks: Ctrl-C loses what there was, or passes partial results off as whole.
#[cfg(unix)]
#[test]
fn an_interrupt_keeps_partial_results() {
    let dir = with_scenario(LOSSY);
    // Far more than can be done while the test waits.
    let arguments =
        ["run", "scenario.toml", "--out", "out", "--no-captures", "--trace", "none", "--received", "copy"];
    let size = ["--set", "flows.0.size=900 GB", "--set", "duration=20 h", "--set", "trace.bin=100 ms"];
    let mut command = farpace(dir.path(), &arguments);
    let mut child = command.args(size).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // It is under way when received bytes come.
    let partial = dir.path().join("copy.partial");
    let under_way = || fs::metadata(&partial).is_ok_and(|m| m.len() > 0);
    for _ in 0..600 {
        if under_way() {
            break;
        }
        assert!(Command::new("sleep").arg("0.05").status().unwrap().success());
    }
    if !under_way() {
        child.kill().unwrap();
        child.wait().unwrap();
        panic!("it did not begin");
    }
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    if !kill.is_ok_and(|status| status.success()) {
        child.kill().unwrap();
    }
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(130), "{text}");
    assert!(text.contains("INTERRUPTED") && text.contains("copy.partial"), "{text}");
    assert!(!dir.path().join("copy").exists());
    let summary = fs::read_to_string(dir.path().join("out/summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["status"], "interrupted");
    assert_eq!(summary["flows"][0]["completion_s"], serde_json::Value::Null);
    let delivered = summary["flows"][0]["delivered_bytes"].as_u64().unwrap();
    assert_eq!(fs::metadata(&partial).unwrap().len(), delivered, "what was received is in the file");
    let page = fs::read_to_string(dir.path().join("out/report.html")).unwrap();
    assert!(page.contains("Interrupted at"), "the report says that it is partial");
}
