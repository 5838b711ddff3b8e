//! The token of a dashboard in a file, where standard output may be read by others than who has started the
//! gateway: a journal, the logs of a container, a file.

use crate::control::token_path_of;
use anyhow::{Context, Result};
use farpace_live::write_private;
use std::fs;
use std::path::{Path, PathBuf};

/// A file with a token, which is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct TokenFile(PathBuf);

impl TokenFile {
    /// Writes a token into the state folder, for the user of the gateway alone.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write(token: &str) -> Result<Self> {
        Self::write_to(token_path_of(std::process::id()), token)
    }

    fn write_to(path: PathBuf, token: &str) -> Result<Self> {
        write_private(&path, format!("{token}\n"))
            .with_context(|| format!("cannot write the token of the dashboard to {}", path.display()))?;
        Ok(TokenFile(path))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TokenFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// Breaks: other users read the token, it is written where a link leads, or it stays behind.
    #[test]
    fn a_token_is_for_its_user_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("token"), folder.path().join("other"));
        std::os::unix::fs::symlink(&other, &path).unwrap();
        let file = TokenFile::write_to(path.clone(), "secret").unwrap();
        assert_eq!(fs::read_to_string(file.path()).unwrap(), "secret\n");
        let about = fs::symlink_metadata(&path).unwrap();
        assert!(about.is_file() && about.permissions().mode() & 0o7777 == 0o600 && !other.exists());
        drop(file);
        assert!(!path.exists());
    }
}
