//! Tickets as people give them, and what others see of them in the list of processes.

use super::ticket::Ticket;
use anyhow::{Context, Result, bail};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

/// The variable that holds a ticket.
pub const VARIABLE: &str = "FARPACE_TICKET";

/// The ticket that was given: as a word, as `@FILE`, as `-` (standard input), or in `FARPACE_TICKET`. None:
/// `word` is something else.
///
/// # Errors
/// It looks like a ticket and is none, or a file cannot be read.
pub fn ticket_of(word: Option<&str>) -> Result<Option<Ticket>> {
    let from = |mut reader: Box<dyn Read>, name: &str| -> Result<Ticket> {
        let mut text = String::new();
        reader
            .by_ref()
            .take(8_192)
            .read_to_string(&mut text)
            .with_context(|| format!("cannot read the ticket from {name}"))?;
        text.lines().next().unwrap_or_default().parse().with_context(|| name.to_owned())
    };
    match word {
        Some("-") => Ok(Some(from(Box::new(std::io::stdin()), "standard input")?)),
        Some(word) if word.starts_with('@') && word.len() > 1 => {
            let path = Path::new(&word[1..]);
            let file = File::open(path)
                .with_context(|| format!("cannot read the ticket from {}", path.display()))?;
            Ok(Some(from(Box::new(file), &path.display().to_string())?))
        }
        Some(word) if word.starts_with("farpace:") => Ok(Some(word.parse()?)),
        Some(_) => Ok(None),
        None => match std::env::var(VARIABLE) {
            Ok(text) if text.is_empty() => bail!("{VARIABLE} is empty: put a ticket there, or do not set it"),
            Ok(text) => Ok(Some(text.parse().context(VARIABLE)?)),
            Err(_) => Ok(None),
        },
    }
}

/// Overwrites the keys of tickets among the words of this process, so that others do not see them in the list
/// of processes. There they can be seen until this has run. Nothing happens where the system does not allow
/// it.
pub fn hide_words() {
    let _ = overwrite();
}

fn overwrite() -> Option<()> {
    // Fields 48 and 49 of proc(5): where the words stand in memory.
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    let (start, end) = (field(48)?, field(49)?);
    let mut words = vec![0; usize::try_from(end.checked_sub(start)?).ok().filter(|len| *len <= 16 << 20)?];
    let mut memory = OpenOptions::new().read(true).write(true).open("/proc/self/mem").ok()?;
    memory.seek(SeekFrom::Start(start)).ok()?;
    memory.read_exact(&mut words).ok()?;
    let mut changed = false;
    for word in words.split_mut(|byte| *byte == 0) {
        if word.starts_with(b"farpace:")
            && let Some(at) = word.iter().position(|byte| *byte == b'#')
        {
            word[at + 1..].fill(b'x');
            changed = true;
        }
    }
    if changed {
        memory.seek(SeekFrom::Start(start)).ok()?;
        memory.write_all(&words).ok()?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: a file name is taken for a ticket, or a ticket in a file is not found.
    #[test]
    fn tickets_are_found_where_they_are_given() {
        let text = format!("farpace:h:1#{}", "A".repeat(86));
        assert!(ticket_of(Some("film.mp4")).unwrap().is_none());
        assert!(ticket_of(Some(&text)).unwrap().is_some());
        assert!(ticket_of(Some("farpace:h:1")).is_err());
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ticket");
        std::fs::write(&path, format!("{text}\n")).unwrap();
        assert!(ticket_of(Some(&format!("@{}", path.display()))).unwrap().is_some());
        assert!(ticket_of(Some("@no/such/file")).is_err());
    }
}
