//! All that a process has set up is taken away at once. In a program of its own: other tests of this process
//! would lose what they have set up.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, reason = "helpers of tests")]

#[path = "kernel/netns.rs"]
mod netns;

use farpace_live::system::{Setup, SystemError, SystemInterface, SystemUndo, journals, undo_all};
use netns::alone;

/// Breaks: Ctrl-C leaves interfaces behind; or `lab up` and `lab down`, which are different processes, lose
/// what is to stay.
#[test]
fn what_is_kept_stays_and_the_rest_goes() {
    alone(|| {
        let name = format!("kept {}", std::process::id());
        let setup = Setup::begin(&name).unwrap();
        setup.veth(&SystemInterface::here("c"), &SystemInterface::here("d")).unwrap();
        assert!(matches!(Setup::take_over(&name), Err(SystemError::Unknown(_))), "its process lives");
        setup.keep().unwrap();
        let other = Setup::begin("not kept").unwrap();
        other.veth(&SystemInterface::here("e"), &SystemInterface::here("f")).unwrap();
        undo_all();
        assert!(SystemInterface::here("c").exists() && !SystemInterface::here("e").exists());
        drop(other);
        assert!(journals().iter().any(|journal| journal.name == name && !journal.is_left_over()));
        let setup = Setup::take_over(&name).unwrap();
        assert_eq!(setup.steps(), [SystemUndo::Link(SystemInterface::here("c"))]);
        setup.undo().unwrap();
        assert!(!SystemInterface::here("c").exists());
    });
}
