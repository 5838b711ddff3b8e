//! Compiles the BPF programs, for the feature `bpf`. Everything else builds without clang.

use std::path::Path;
use std::process::Command;

/// Each becomes an object of its own, so that a kernel that refuses one still takes the others.
const PROGRAMS: [&str; 5] = ["control", "policy", "list", "hand_back", "classes"];

fn main() {
    println!("cargo:rerun-if-changed=bpf");
    println!("cargo:rerun-if-env-changed=CLANG");
    if std::env::var_os("CARGO_FEATURE_BPF").is_none() {
        return;
    }
    let var = |name: &str| std::env::var(name).unwrap_or_default();
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let (headers, out) = (var("DEP_BPF_INCLUDE"), var("OUT_DIR"));
    for program in PROGRAMS {
        let source = format!("bpf/{program}.bpf.c");
        let object = Path::new(&out).join(format!("{program}.bpf.o"));
        let mut command = Command::new(&clang);
        command.args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Wextra", "-Werror"]);
        command.args(["-Wno-unused-parameter", "-D__TARGET_ARCH_x86"]);
        // No path of this machine in the debug information.
        command.args(["-fdebug-compilation-dir", ".", &format!("-I{headers}"), "-c", &source, "-o"]);
        let status = command.arg(&object).status();
        match status {
            Ok(status) if status.success() => {}
            Ok(_) => fail(&format!("{source}: clang cannot compile it")),
            Err(error) => fail(&format!(
                "{clang}: {error}. The feature needs clang (tools/setup kernel; Debian: apt-get install \
                 clang); CLANG names another one"
            )),
        }
    }
}

fn fail(why: &str) -> ! {
    println!("cargo:error={why}");
    std::process::exit(1)
}
