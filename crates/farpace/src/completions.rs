//! `farpace completions`: what a shell needs to complete commands and options.

use crate::terminal;
use anyhow::Result;
use clap_complete::Shell;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
Examples:
  farpace completions bash > ~/.local/share/bash-completion/completions/farpace
  farpace completions zsh > ~/.zfunc/_farpace        with ~/.zfunc in $fpath, before compinit
  farpace completions fish > ~/.config/fish/completions/farpace.fish";

/// The arguments of `farpace completions`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: TestedShell,
}

/// The shells that are tested here.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum TestedShell {
    Bash,
    Zsh,
    Fish,
}

/// `farpace completions`, for this `command`.
///
/// # Errors
/// Standard output cannot be written.
pub fn run(args: &Args, mut command: clap::Command) -> Result<ExitCode> {
    let shell = match args.shell {
        TestedShell::Bash => Shell::Bash,
        TestedShell::Zsh => Shell::Zsh,
        TestedShell::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "farpace", &mut script);
    terminal::print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
