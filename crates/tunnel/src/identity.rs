//! By what receivers know this sender again where there is no token: only so they let it go on with its
//! partial files.
//!
//! A secret of 32 bytes is made once and kept in a file. What a receiver gets is a hash of it and of the
//! words it was reached by: none learns what another one would believe.

use anyhow::{Context, Result};
use farpace_transfer::{SenderKey, kernel};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

const LEN: usize = 32;
const CONTEXT: &str = "farpace 2026: the key of a sender at a receiver";

/// What the receiver at `to` knows this sender by.
///
/// # Errors
/// There is no home directory, or the secret cannot be read or written.
pub fn at(to: &str) -> Result<SenderKey> {
    let secret = secret(&folder()?)?;
    Ok(kernel::derive_key(CONTEXT, &[&secret, to.as_bytes()]))
}

fn folder() -> Result<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || std::env::var_os("HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let state = state.or_else(|| home().map(|home| home.join(".local/state")));
    Ok(state.context("there is no HOME to keep it in")?.join("farpace"))
}

fn secret(folder: &Path) -> Result<[u8; LEN]> {
    let path = folder.join("sender-key");
    match read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        secret => return secret.with_context(|| format!("cannot read {}", path.display())),
    }
    make(folder, &path).with_context(|| format!("cannot write {}", path.display()))
}

fn read(path: &Path) -> io::Result<[u8; LEN]> {
    let mut secret = [0; LEN];
    File::open(path)?.read_exact(&mut secret)?;
    Ok(secret)
}

fn make(folder: &Path, path: &Path) -> io::Result<[u8; LEN]> {
    fs::create_dir_all(folder)?;
    // Whole before it has its name, and the first one stays: two senders may begin at once.
    let draft = folder.join(format!("sender-key.{}", std::process::id()));
    let _ = fs::remove_file(&draft);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(&kernel::random_key()?)?;
    file.sync_all()?;
    let linked = fs::hard_link(&draft, path);
    fs::remove_file(&draft)?;
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => read(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: a sender is not known again, or by those who read its secret, or by one receiver as at
    /// another.
    #[test]
    fn a_secret_is_made_once_and_for_one_user() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("state/farpace");
        let first = secret(&folder).unwrap();
        assert_eq!(secret(&folder).unwrap(), first);
        let listed: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(listed, ["sender-key"]);
        let mode = fs::metadata(folder.join("sender-key")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let key = |to: &str| kernel::derive_key(CONTEXT, &[&first, to.as_bytes()]);
        assert_ne!(key("a:7077"), key("b:7077"));
        fs::write(folder.join("sender-key"), "short").unwrap();
        assert!(secret(&folder).is_err());
    }
}
