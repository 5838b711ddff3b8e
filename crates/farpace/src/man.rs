//! `farpace man`: manual pages, one for each command, made from what `--help` prints.

use crate::terminal;
use anyhow::{Context, Result, bail};
use clap::Command;
use clap_mangen::Man;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
Examples:
  farpace man | man -l -                             the page of farpace itself
  farpace man lab up | man -l -                      the page of one command
  farpace man --out ~/.local/share/man/man1          all of them, as files: then man farpace-lab-up";

/// The arguments of `farpace man`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The command whose page to print; without it, the page of farpace itself
    #[arg(value_name = "COMMAND", conflicts_with = "out")]
    command: Vec<String>,
    /// Write the pages of all commands into this directory, which is made if need be
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// All pages of a command by the names of their files, as in `farpace-lab-up.1`.
///
/// # Errors
/// None that is known: writing to memory could fail by its type.
pub fn pages(command: Command) -> Result<BTreeMap<String, String>> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let mut pages = BTreeMap::new();
    add(&command, &mut pages)?;
    Ok(pages)
}

fn add(command: &Command, pages: &mut BTreeMap<String, String>) -> Result<()> {
    for below in command.get_subcommands().filter(|c| !c.is_hide_set()) {
        add(below, pages)?;
    }
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    let mut page = String::from_utf8_lossy(&page).into_owned();
    if let Some(help) = command.get_after_long_help().or(command.get_after_help()) {
        page += &sections(&help.to_string());
    }
    pages.insert(man.get_filename(), page);
    Ok(())
}

/// Text as `--help` prints it, in roff: a line at the margin that ends in a colon is a heading, and lines
/// stay as they are broken.
fn sections(help: &str) -> String {
    let mut out = String::new();
    let mut headed = false;
    for line in help.lines() {
        match line.strip_suffix(':') {
            Some(heading) if !line.starts_with(' ') => {
                let _ = write!(
                    out,
                    "{}.SH \"{}\"\n.nf\n",
                    if headed { ".fi\n" } else { "" },
                    escaped(heading).to_uppercase()
                );
                headed = true;
            }
            _ => {
                if !headed {
                    out += ".SH NOTES\n.nf\n";
                    headed = true;
                }
                let _ = writeln!(out, "{}", escaped(line));
            }
        }
    }
    out + if headed { ".fi\n" } else { "" }
}

/// A line of text in which roff finds nothing to do.
fn escaped(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-").replace('"', "\\(dq");
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line }
}

/// `farpace man`.
///
/// # Errors
/// No such command, or output that cannot be written.
pub fn run(args: &Args, command: Command) -> Result<ExitCode> {
    let pages = pages(command)?;
    if let Some(dir) = &args.out {
        std::fs::create_dir_all(dir).with_context(|| format!("cannot make directory {}", dir.display()))?;
        for (name, page) in &pages {
            let file = dir.join(name);
            std::fs::write(&file, page).with_context(|| format!("cannot write {}", file.display()))?;
        }
        terminal::print(&format!("{} pages in {}\n", pages.len(), dir.display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let words = [vec!["farpace".to_owned()], args.command.clone()].concat();
    let Some(page) = pages.get(&format!("{}.1", words.join("-"))) else {
        bail!("no command `{}`: farpace --help lists them", args.command.join(" "));
    };
    terminal::print(page)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: manual pages in which an example that begins with a dot or has a backslash is lost or does
    /// something.
    #[test]
    fn text_means_nothing_to_roff() {
        let page = sections("Examples:\n  a --b \\n\n.SH x\n\nExit codes:\n  0  well");
        let want = ".SH \"EXAMPLES\"\n.nf\n  a \\-\\-b \\en\n\\&.SH x\n\n.fi\n.SH \"EXIT CODES\"\n.nf\n  0  \
                    well\n.fi\n";
        assert_eq!(page, want);
    }
}
