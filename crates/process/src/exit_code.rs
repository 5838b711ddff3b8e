//! Exit codes of programs that this one has started, as shells say them.

use std::io::{Error, ErrorKind};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// That of a program: its own, or 128 and the number of the signal that ended it.
pub fn of(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// That of a program that could not be started: 127 if it is not there, 126 otherwise.
pub fn cannot_run(error: &Error) -> u8 {
    if error.kind() == ErrorKind::NotFound { 127 } else { 126 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Breaks: a script cannot tell how a program ended that farpace ran for it.
    #[test]
    fn codes_are_those_of_shells() {
        let run = |line: &str| of(Command::new("sh").args(["-c", line]).status().unwrap());
        assert_eq!(["exit 0", "exit 3", "kill -TERM $$", "kill -KILL $$"].map(run), [0, 3, 143, 137]);
        assert_eq!(cannot_run(&Command::new("/no/such/program").status().unwrap_err()), 127);
        assert_eq!(cannot_run(&Command::new("/").status().unwrap_err()), 126);
    }
}
