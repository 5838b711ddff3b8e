//! Whether a library can be loaded before a program.

use anyhow::{Context, Result, bail};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Interpreters of interpreters at most, as in Linux.
const DEEPEST: usize = 4;
/// Types of program headers (System V ABI, "Program Header").
const INTERPRETER: u32 = 3;
const NOTE: u32 = 4;
/// As much of a note as is looked at, and as many headers.
const MAX: usize = 4096;

/// The file that the shell would run.
///
/// # Errors
/// There is none.
pub fn find(name: &OsStr) -> Result<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Ok(name.into());
    }
    let folders = std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/local/bin:/usr/bin:/bin"));
    let can = |path: &PathBuf| {
        path.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
    };
    let found = std::env::split_paths(&folders).map(|folder| folder.join(name)).find(can);
    found.with_context(|| format!("there is no program `{}` in PATH", name.display()))
}

/// Says why a program cannot be helped.
///
/// # Errors
/// It cannot, or cannot be read.
pub fn check(path: &Path) -> Result<()> {
    let mut path = path.to_owned();
    for _ in 0..DEEPEST {
        match interpreter(&path)? {
            None => return check_binary(&path),
            Some(other) => path = other,
        }
    }
    bail!("`{}`: interpreters of interpreters of interpreters", path.display())
}

/// Of a script, what reads it.
fn interpreter(path: &Path) -> Result<Option<PathBuf>> {
    let what = || format!("cannot read `{}`", path.display());
    let mut head = vec![0; 256];
    let len = File::open(path).and_then(|mut file| file.read(&mut head)).with_context(what)?;
    let Some(line) = head.get(..len).and_then(|head| head.strip_prefix(b"#!")) else { return Ok(None) };
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let word = line.split(u8::is_ascii_whitespace).find(|word| !word.is_empty());
    Ok(word.map(|word| OsString::from_vec(word.to_vec()).into()))
}

fn check_binary(path: &Path) -> Result<()> {
    let what = || format!("cannot read `{}`", path.display());
    let file = File::open(path).with_context(what)?;
    let about = file.metadata().with_context(what)?;
    let name = path.display();
    let me = std::fs::metadata("/proc/self").with_context(|| "cannot read /proc/self")?;
    let other_user = about.mode() & 0o4000 != 0 && about.uid() != me.uid();
    let other_group = about.mode() & 0o2000 != 0 && about.gid() != me.gid();
    if other_user || other_group {
        bail!("`{name}` is setuid or setgid: the system lets nobody load a library before such programs");
    }
    let Some(elf) = Elf::read(&file) else { bail!("`{name}` is no program of this machine") };
    if elf.kind
        != Elf::read(&File::open("/proc/self/exe").with_context(what)?).map_or(elf.kind, |own| own.kind)
    {
        bail!("`{name}` is for another kind of machine (or 32 bits): farpace's library does not fit");
    }
    if !elf.dynamic {
        bail!(
            "`{name}` is statically linked: no library can be loaded before it, and its sockets would be the \
             kernel's"
        );
    }
    if elf.go {
        bail!(
            "`{name}` is written in Go: it asks the kernel without libc, and its sockets would be the \
             kernel's"
        );
    }
    Ok(())
}

/// What counts of a program file.
struct Elf {
    /// Class, order of bytes, and machine.
    kind: [u8; 4],
    dynamic: bool,
    go: bool,
}

impl Elf {
    /// None: it is no program of a machine with 64 bits.
    fn read(file: &File) -> Option<Elf> {
        let mut head = [0; 64];
        file.read_exact_at(&mut head, 0).ok()?;
        // The magic, and 64 bits.
        if !head.starts_with(b"\x7fELF\x02") {
            return None;
        }
        let half = |at: usize| Some(u16::from_ne_bytes(*head.get(at..)?.first_chunk()?));
        let (at, size, count) =
            (u64::from_ne_bytes(*head.get(32..)?.first_chunk()?), half(54)?, usize::from(half(56)?));
        let (mut dynamic, mut go) = (false, false);
        for n in 0..count.min(MAX) {
            let mut header = [0; 56];
            file.read_exact_at(&mut header, at.checked_add(n as u64 * u64::from(size))?).ok()?;
            match u32::from_ne_bytes(*header.first_chunk()?) {
                INTERPRETER => dynamic = true,
                NOTE => go |= is_go(file, &header).unwrap_or(false),
                _ => {}
            }
        }
        Some(Elf { kind: [head[4], head[5], head[18], head[19]], dynamic, go })
    }
}

/// True if a note is that of Go's linker.
fn is_go(file: &File, header: &[u8; 56]) -> Option<bool> {
    let word = |at: usize| Some(u64::from_ne_bytes(*header.get(at..)?.first_chunk()?));
    let mut note = vec![0; usize::try_from(word(32)?).ok()?.min(MAX)];
    file.read_exact_at(&mut note, word(8)?).ok()?;
    // The name of a note: its length, two more words, and the name.
    Some(note.windows(16).any(|window| window.starts_with(&[4, 0, 0, 0]) && window.ends_with(b"Go\0\0")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: programs that work are refused, or some that cannot work run by the kernel unnoticed.
    #[test]
    fn programs_are_told_apart() {
        let folder = std::env::temp_dir().join(format!("farpace-program-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, bytes: &[u8]| {
            let path = folder.join(name);
            std::fs::write(&path, bytes).unwrap();
            path
        };
        let sh = find(OsStr::new("sh")).unwrap();
        check(&sh).unwrap();
        check(&write("script", format!("#! {} -e\necho\n", sh.display()).as_bytes())).unwrap();
        // The same program without its interpreter: as static ones are.
        let mut bytes = std::fs::read(&sh).unwrap();
        let at = u64::from_ne_bytes(bytes[32..40].try_into().unwrap()) as usize;
        let count = usize::from(u16::from_ne_bytes(bytes[56..58].try_into().unwrap()));
        for header in 0..count {
            let kind = &mut bytes[at + header * 56..][..4];
            if kind == INTERPRETER.to_ne_bytes() {
                kind.fill(0);
            }
        }
        let said = |path: &Path| check(path).unwrap_err().to_string();
        assert!(said(&write("static", &bytes)).contains("statically linked"));
        bytes[18] ^= 1;
        assert!(said(&write("foreign", &bytes)).contains("another kind of machine"));
        assert!(said(&write("text", b"hello")).contains("no program"));
        assert!(said(&folder.join("nowhere")).contains("cannot read"));
        let path = write("loop", format!("#!{}", folder.join("loop").display()).as_bytes());
        assert!(said(&path).contains("interpreters"));
        assert!(find(OsStr::new("no-such-program")).is_err());
        std::fs::remove_dir_all(folder).unwrap();
    }
}
