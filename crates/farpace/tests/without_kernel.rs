//! `farpace kernel` in a build that has no BPF programs.

#![cfg(not(feature = "kernel"))]

mod common;

/// Breaks: a build without BPF fails without saying which build has it, or with an exit code of another
/// meaning.
#[test]
fn it_says_which_build_has_it() {
    let here = std::path::Path::new(".");
    let (code, help, _) = common::run(here, &["kernel", "--help"]);
    assert!(code == 0 && help.contains("--features kernel"), "{help}");
    for words in [&["kernel", "doctor"][..], &["kernel", "up", "--default"], &["kernel", "down"]] {
        let (code, out, error) = common::run(here, words);
        assert_eq!((code, out.as_str()), (2, ""), "{words:?}");
        assert!(error.contains("--features kernel"), "{error}");
    }
}
