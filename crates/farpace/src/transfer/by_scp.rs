//! scp in place of farpace, where the far end has none.

use crate::terminal;
use anyhow::{Context, Result, bail};
use farpace_units::Rate;
use serde_json::json;
use std::ffi::{OsStr, OsString};
use std::process::{Command, ExitCode};

/// What scp is to do.
#[derive(Clone, Copy, Debug)]
pub struct ScpJob<'a> {
    /// ssh and its options, as one line.
    pub ssh: &'a str,
    /// As scp writes them.
    pub sources: &'a [OsString],
    /// As scp writes it.
    pub target: &'a OsStr,
    /// The rate at most.
    pub limit: Option<Rate>,
    /// No progress.
    pub quiet: bool,
}

impl ScpJob<'_> {
    /// The command line.
    ///
    /// # Errors
    /// ssh has no name.
    pub fn words(&self) -> Result<Vec<OsString>> {
        let mut given = self.ssh.split_whitespace();
        let ssh = given.next().context("--ssh-command is empty")?;
        let mut words: Vec<String> = ["scp", "-r", "-p", "-S", ssh].map(str::to_owned).into();
        // The options have the same names, but for the port.
        words.extend(given.map(|word| match word.strip_prefix("-p") {
            Some(port) => format!("-P{port}"),
            None => word.to_owned(),
        }));
        // In kbit/s.
        words.extend(self.limit.map(|rate| format!("-l{}", (rate.bits_per_sec() / 1_000).max(1))));
        words.extend(self.quiet.then(|| "-q".to_owned()));
        words.push("--".to_owned());
        let places = self.sources.iter().cloned().chain([self.target.to_owned()]);
        Ok(words.into_iter().map(OsString::from).chain(places).collect())
    }
    /// Runs it, and says how it ended: 0, 1, or that it was interrupted.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn run(&self, json: bool) -> Result<ExitCode> {
        let words = self.words()?;
        let Some((program, rest)) = words.split_first() else { bail!("no command") };
        let status = Command::new(program).args(rest).status();
        let status = status.context("cannot start `scp`: install it (Debian: openssh-client)")?;
        if json {
            terminal::print_json(
                &json!({ "stack": "scp", "complete": status.success(), "verified": false }),
            )?;
        }
        Ok(match status.code() {
            Some(0) => ExitCode::SUCCESS,
            Some(_) => ExitCode::from(terminal::FAILED),
            None => ExitCode::from(terminal::INTERRUPTED),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: options for ssh mean something else to scp, a name is taken for an option, or the cap is
    /// forgotten.
    #[test]
    fn scp_gets_what_ssh_would() {
        let sources = ["-film".into(), "b".into()];
        let job = ScpJob {
            ssh: "ssh -p 2222 -i key -p22",
            sources: &sources,
            target: OsStr::new("h:"),
            limit: Some(Rate::from_mbit(5)),
            quiet: true,
        };
        let words = job.words().unwrap().join(OsStr::new(" "));
        assert_eq!(words, "scp -r -p -S ssh -P 2222 -i key -P22 -l5000 -q -- -film b h:");
        assert!(ScpJob { ssh: " ", ..job }.words().is_err());
    }
}
