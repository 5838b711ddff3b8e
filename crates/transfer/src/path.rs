//! Paths within a transfer, which cannot lead out of its directory.

use crate::fault::clean;
use crate::limits::{MAX_DEPTH, MAX_NAME, MAX_PATH};
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;

/// Suffix of partial files. Names with it are never sent and never accepted.
pub(crate) const PARTIAL: &str = ".farpace-part";
/// Maximum number of bytes of a file's name that the name of its partial file contains, for users.
const PARTIAL_NAME: usize = 200;

/// A relative path of names separated by `/`; no name is empty, `.`, `..`, too long, or contains a NUL. Names
/// are bytes, as in Linux.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RelPath(Vec<u8>);

impl RelPath {
    /// Checks a path.
    ///
    /// # Errors
    /// The rule that it violates.
    pub fn new(bytes: &[u8]) -> Result<RelPath, &'static str> {
        if bytes.len() > MAX_PATH {
            return Err("the path is too long");
        }
        let mut depth = 0;
        for name in bytes.split(|b| *b == b'/') {
            depth += 1;
            match name {
                b"" => return Err("the path has an empty name in it, or is absolute"),
                b"." | b".." => return Err("the path has `.` or `..` in it"),
                _ if name.len() > MAX_NAME => return Err("a name in the path is longer than 255 bytes"),
                _ if name.contains(&0) => return Err("a name in the path has a NUL in it"),
                _ if name.ends_with(PARTIAL.as_bytes()) => return Err("that is the name of a partial file"),
                _ => {}
            }
        }
        if depth > MAX_DEPTH {
            return Err("the path is too deep");
        }
        Ok(RelPath(bytes.to_owned()))
    }
    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
    /// Its names, from the outermost.
    pub fn names(&self) -> impl Iterator<Item = &OsStr> {
        self.0.split(|b| *b == b'/').map(OsStr::from_bytes)
    }
    /// Its parent directory, if any, and its last name.
    pub fn split(&self) -> (Option<&[u8]>, &OsStr) {
        match self.0.iter().rposition(|b| *b == b'/') {
            Some(at) => (self.0.get(..at), OsStr::from_bytes(self.0.get(at + 1..).unwrap_or_default())),
            None => (None, OsStr::from_bytes(&self.0)),
        }
    }
    /// The path of `name` in this directory.
    ///
    /// # Errors
    /// As [`new`](RelPath::new).
    pub fn join(&self, name: &OsStr) -> Result<RelPath, &'static str> {
        RelPath::new(&[&self.0, b"/".as_slice(), name.as_bytes()].concat())
    }
    /// The path with another first name.
    ///
    /// # Errors
    /// As [`new`](RelPath::new).
    pub fn renamed(&self, first: &OsStr) -> Result<RelPath, &'static str> {
        let rest = self.0.iter().position(|b| *b == b'/').and_then(|at| self.0.get(at..)).unwrap_or_default();
        RelPath::new(&[first.as_bytes(), rest].concat())
    }
    /// The path without its first name, if anything is left.
    pub(crate) fn below(&self) -> Option<RelPath> {
        let at = self.0.iter().position(|b| *b == b'/')?;
        Some(RelPath(self.0.get(at + 1..)?.to_owned()))
    }
    /// True if one of its names begins with a dot.
    pub fn is_hidden(&self) -> bool {
        self.0.split(|b| *b == b'/').any(|name| name.first() == Some(&b'.'))
    }
    /// True if a walk through a tree visits `other` before this: parents before their contents, names in byte
    /// order.
    pub fn comes_after(&self, other: &RelPath) -> bool {
        self.0.split(|b| *b == b'/').gt(other.0.split(|b| *b == b'/'))
    }
    /// The name of a link beside it that is about to replace it.
    pub(crate) fn partial_link_name(&self) -> String {
        format!(".{}{PARTIAL}", blake3::hash(self.split().1.as_bytes()).to_hex())
    }
    /// The name of the partial file beside it.
    pub fn partial_name(&self) -> String {
        let name = self.split().1;
        let hash = blake3::hash(name.as_bytes()).to_hex();
        let text: String = clean(&name.to_string_lossy());
        let mut cut = text.len().min(PARTIAL_NAME);
        while !text.is_char_boundary(cut) {
            cut -= 1;
        }
        format!(".{}.{}{PARTIAL}", text.get(..cut).unwrap_or_default(), hash.get(..8).unwrap_or_default())
    }
}

impl fmt::Display for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&clean(&String::from_utf8_lossy(&self.0)))
    }
}

impl fmt::Debug for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Breaks: a sender cannot write outside of the directory.
    #[test]
    fn paths_that_lead_out_are_refused() {
        let bad =
            ["", "/", "/etc/passwd", "..", "a/../../b", "a//b", "a/", "./a", "a/.", "a\0b", "x.farpace-part"];
        for path in bad {
            assert!(RelPath::new(path.as_bytes()).is_err(), "{path:?}");
        }
        for path in ["a", "a/b", "...", "a b/c\n", ".hidden", "\u{fc}", "farpace-part"] {
            assert!(RelPath::new(path.as_bytes()).is_ok(), "{path:?}");
        }
        assert!(RelPath::new(&[0xff, 0xfe]).is_ok(), "names need not be UTF-8");
        assert!(RelPath::new("a/".repeat(200).trim_end_matches('/').as_bytes()).is_err());
        assert!(RelPath::new("n".repeat(256).as_bytes()).is_err());
    }

    /// Breaks: a sender cannot offer a file repeatedly, and so cause repeated hashing.
    #[test]
    fn paths_have_the_order_of_a_walk() {
        let walk = ["a", "a/b", "a/b/c", "a/b-c", "a-b", "a-b/c", "b", "b\u{1}"];
        let paths = walk.map(|path| RelPath::new(path.as_bytes()).unwrap());
        for (n, path) in paths.iter().enumerate() {
            for (m, other) in paths.iter().enumerate() {
                assert_eq!(path.comes_after(other), n > m, "{path} {other}");
            }
        }
    }

    /// Breaks: a stranger cannot create `.bashrc`, or files in `.ssh`.
    #[test]
    fn names_with_a_dot_are_hidden() {
        for (path, hidden) in [("a", false), ("a.b/c", false), (".a", true), ("a/.b", true), (".a/b", true)] {
            assert_eq!(RelPath::new(path.as_bytes()).unwrap().is_hidden(), hidden, "{path}");
        }
    }

    proptest! {
        /// Breaks: any name has a valid name of a partial file, which is hidden and in the same directory.
        #[test]
        fn partial_names_are_names(bytes in proptest::collection::vec(any::<u8>(), 1..300)) {
            if let Ok(path) = RelPath::new(&bytes) {
                let partial = path.partial_name();
                prop_assert!(partial.len() <= MAX_NAME && partial.starts_with('.') && !partial.contains(['/', '\0']));
                prop_assert!(RelPath::new(partial.as_bytes()).is_err(), "partial files are never sent");
            }
        }
    }
}
