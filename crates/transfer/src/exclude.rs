//! Which files are left out, by patterns as rsync has them.

use crate::path::RelPath;
use globset::{GlobBuilder, GlobMatcher};
use std::path::Path;
use thiserror::Error;

/// Patterns at most.
pub const MAX_EXCLUDES: usize = 1_000;

/// A pattern that is none.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{pattern}` is not a pattern: {why}")]
pub struct ExcludeError {
    pattern: String,
    why: String,
}

/// Patterns of what is left out.
///
/// A pattern without a slash stands for names at any depth: `*.o`. One that begins with a slash stands for a
/// path from the top of what is sent: `/target`; with a slash within, for the end of a path: `doc/*.pdf`.
/// With a slash at its end it stands for directories alone: `cache/`. `*` and `?` do not stand for slashes,
/// `**` does.
#[derive(Clone, Debug, Default)]
pub struct ExcludePatterns {
    patterns: Vec<ExcludePattern>,
    words: Vec<String>,
}

#[derive(Clone, Debug)]
struct ExcludePattern {
    glob: GlobMatcher,
    /// It is about the path, not the name alone.
    of_path: bool,
    directories: bool,
}

impl PartialEq for ExcludePatterns {
    fn eq(&self, other: &Self) -> bool {
        self.words == other.words
    }
}

impl Eq for ExcludePatterns {}

impl ExcludePatterns {
    /// Reads patterns.
    ///
    /// # Errors
    /// One of them is none, or there are more than [`MAX_EXCLUDES`].
    pub fn new(words: &[String]) -> Result<Self, ExcludeError> {
        let wrong = |pattern: &str, why: String| ExcludeError { pattern: pattern.to_owned(), why };
        if let Some(extra) = words.get(MAX_EXCLUDES) {
            return Err(wrong(extra, format!("there are more than {MAX_EXCLUDES}")));
        }
        let read = |word: &String| {
            let bare = word.strip_suffix('/').unwrap_or(word);
            let (anchored, bare) = bare.strip_prefix('/').map_or((false, bare), |bare| (true, bare));
            if bare.is_empty() {
                return Err(wrong(word, "it stands for nothing".to_owned()));
            }
            let of_path = anchored || bare.contains('/');
            let text = if of_path && !anchored { format!("**/{bare}") } else { bare.to_owned() };
            let glob = GlobBuilder::new(&text).literal_separator(true).build();
            let glob = glob.map_err(|error| wrong(word, error.kind().to_string()))?;
            Ok(ExcludePattern { glob: glob.compile_matcher(), of_path, directories: word.ends_with('/') })
        };
        let patterns = words.iter().map(read).collect::<Result<_, _>>()?;
        Ok(ExcludePatterns { patterns, words: words.to_vec() })
    }

    /// As they were written.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// True if something is left out. Its path begins with the name at the top, which stands for the argument
    /// itself.
    pub fn leaves_out(&self, path: &RelPath, is_directory: bool) -> bool {
        let mut names = path.names();
        let top = names.next();
        let below: std::path::PathBuf = names.collect();
        // An argument that is itself a file has nothing below.
        let below =
            if below.as_os_str().is_empty() { top.map(Into::into).unwrap_or_default() } else { below };
        self.patterns.iter().any(|pattern| {
            let ExcludePattern { glob, of_path, directories } = pattern;
            let text: &Path = if *of_path { &below } else { Path::new(path.split().1) };
            (is_directory || !directories) && glob.is_match(text)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: files are sent that were left out, or the other way round.
    #[test]
    fn patterns_mean_what_they_mean_to_rsync() {
        let out = |pattern: &str, path: &str, dir| {
            let patterns = ExcludePatterns::new(&[pattern.to_owned()]).unwrap();
            patterns.leaves_out(&RelPath::new(path.as_bytes()).unwrap(), dir)
        };
        assert!(out("*.o", "src/a.o", false) && out("*.o", "src/deep/down/a.o", false));
        assert!(!out("*.o", "src/a.out", false));
        assert!(out("/target", "src/target", true) && !out("/target", "src/deep/target", true));
        assert!(out("cache/", "src/deep/cache", true) && !out("cache/", "src/cache", false));
        assert!(out("doc/*.pdf", "src/deep/doc/a.pdf", false) && !out("doc/*.pdf", "src/doc/b/a.pdf", false));
        assert!(out("/a/**/z", "src/a/b/c/z", false) && !out("/a/*/z", "src/a/b/c/z", false));
        assert!(out("film.?p4", "film.mp4", false));
        for wrong in ["", "/", "[", "a{"] {
            assert!(ExcludePatterns::new(&[wrong.to_owned()]).is_err(), "{wrong}");
        }
        assert!(ExcludePatterns::new(&vec!["a".to_owned(); MAX_EXCLUDES + 1]).is_err());
    }
}
