//! Files with keys, which are for one user alone.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use thiserror::Error;

/// Permissions of other users.
const OTHERS: u32 = 0o077;
/// Names that are tried for a temporary file at most: others are of processes that were killed.
const MAX_ATTEMPTS: u32 = 64;

/// Why a file with keys is not used. No error repeats what is in it.
#[derive(Debug, Error)]
pub enum PrivateFileError {
    /// The system does not let it be read.
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    /// Other users may read it.
    #[error("other users may read it (mode {mode:o}): chmod 600")]
    Exposed {
        /// Its permissions.
        mode: u32,
    },
    /// It is longer than so many bytes.
    #[error("it is longer than {0} B")]
    TooLong(u64),
}

/// The text of a file of at most `limit` bytes that no other user may read.
///
/// # Errors
/// See [`PrivateFileError`].
pub fn read_private(path: &Path, limit: u64) -> Result<String, PrivateFileError> {
    let file = File::open(path)?;
    let mode = file.metadata()?.permissions().mode() & 0o777;
    if mode & OTHERS != 0 {
        return Err(PrivateFileError::Exposed { mode });
    }
    let mut text = String::new();
    file.take(limit.saturating_add(1)).read_to_string(&mut text)?;
    if text.len() as u64 > limit {
        return Err(PrivateFileError::TooLong(limit));
    }
    Ok(text)
}

/// Writes a file with mode 0600, or replaces one: whoever opens it finds the old content or the new one,
/// never a part, also after a crash of the machine.
///
/// # Errors
/// The system refuses. What was there stays.
pub fn write_private(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    let (new, mut file) = temporary(path)?;
    let written = file.write_all(content.as_ref()).and_then(|()| file.sync_all());
    let done = written.and_then(|()| fs::rename(&new, path));
    if let Err(error) = done {
        let _ = fs::remove_file(&new);
        return Err(error);
    }
    // The new name is on the disk when its folder is.
    File::open(folder_of(path))?.sync_all()
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A new file beside `path`, for this user alone.
fn temporary(path: &Path) -> io::Result<(std::path::PathBuf, File)> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
    for number in 0..MAX_ATTEMPTS {
        let new = folder_of(path).join(format!(".{name}.{}-{number}.new", std::process::id()));
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new) {
            Ok(file) => return Ok((new, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: other users can read keys, one that they can read is used, a file that is replaced keeps its
    /// mode or is written through a link, or a temporary file stays.
    #[test]
    fn a_private_file_is_for_one_user() {
        let folder = std::env::temp_dir().join(format!("farpace-private-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        let (path, other) = (folder.join("keys"), folder.join("other"));
        fs::write(&other, "old").unwrap();
        fs::set_permissions(&other, fs::Permissions::from_mode(0o644)).unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        assert!(matches!(read_private(&path, 10), Err(PrivateFileError::Exposed { mode: 0o644 })));
        write_private(&path, "secret").unwrap();
        let about = fs::symlink_metadata(&path).unwrap();
        assert!(about.is_file() && about.permissions().mode() & 0o7777 == 0o600);
        assert_eq!(fs::read_to_string(&other).unwrap(), "old");
        assert_eq!(read_private(&path, 6).unwrap(), "secret");
        assert!(matches!(read_private(&path, 5), Err(PrivateFileError::TooLong(5))));
        write_private(&path, "longer than before").unwrap();
        assert_eq!(read_private(&path, 100).unwrap(), "longer than before");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2, "a temporary file stays");
        let lost = folder.join("gone/keys");
        assert!(write_private(&lost, "").is_err());
        assert!(matches!(read_private(&lost, 5), Err(PrivateFileError::Unreadable(_))));
        fs::remove_dir_all(&folder).unwrap();
    }
}
