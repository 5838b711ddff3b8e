//! Tells the program from which commit and for which target it is built.
//!
//! The commit is `FARPACE_COMMIT` if that is set (tools/dist does), else Git's, if this file is Git's; a
//! tarball has none. Builds for development do not ask, so that a commit does not build everything anew.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=FARPACE_COMMIT");
    let commit = std::env::var("FARPACE_COMMIT").ok().filter(|c| !c.is_empty()).or_else(of_git);
    println!("cargo::rustc-env=FARPACE_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
    println!("cargo::rustc-env=FARPACE_TARGET={}", std::env::var("TARGET").unwrap_or_default());
}

/// The commit that Git has checked out here.
fn of_git() -> Option<String> {
    if std::env::var("PROFILE").ok()? != "release" {
        return None;
    }
    // An unpacked tarball may lie inside of another repository.
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    // It changes with every commit and checkout.
    println!(
        "cargo::rerun-if-changed={}",
        git(&["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"])?
    );
    git(&["rev-parse", "--short=12", "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}
