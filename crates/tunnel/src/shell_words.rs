//! Places as scp writes them, and words for the shell at the far end of ssh.

use std::ffi::OsStr;

/// A place as scp writes it: `[user@]host:path`. None: a path here, as all that is not UTF-8.
pub fn remote(text: &OsStr) -> Option<(&str, &str)> {
    let text = text.to_str()?;
    let (host, path) = match text.find(']') {
        // An IPv6 address.
        Some(end) if text.contains('[') => text.get(..=end).zip(text.get(end + 1..)?.strip_prefix(':'))?,
        _ => text.split_once(':')?,
    };
    // `./a:b` is a path, and so is `:b`. What begins with a dash would be an option of ssh.
    (!host.is_empty() && !host.contains('/') && !host.starts_with('-')).then_some((host, path))
}

/// True if a source stands for what is in a directory, not for the directory: `dir/`, `dir/.` or `.`.
pub fn is_contents(source: &OsStr) -> bool {
    let path = remote(source).map_or(source, |(_, path)| OsStr::new(path)).as_encoded_bytes();
    path == b"." || path.ends_with(b"/") || path.ends_with(b"/.")
}

/// `text` as one word; a `~/` in front still means the home directory.
pub fn quoted(text: &str) -> String {
    match text.strip_prefix("~/") {
        Some(rest) => format!("~/{}", quoted_pattern(rest)),
        None => quoted_pattern(text),
    }
}

/// A path as one word that is no option of the command; without one the home directory.
pub fn quoted_path(path: &str) -> String {
    match path {
        "" => quoted("."),
        "~" => quoted("~/"),
        dash if dash.starts_with('-') => quoted(&format!("./{dash}")),
        _ => quoted(path),
    }
}

/// `text` as one word, whatever it begins with.
pub fn quoted_pattern(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    /// Breaks: a file here is taken for a machine, or the other way round; or a name becomes an option of
    /// ssh.
    #[test]
    fn places_are_read_as_scp_does() {
        for (text, place) in [
            ("far:films/", Some(("far", "films/"))),
            ("anna@far:", Some(("anna@far", ""))),
            ("[fd00::1]:x", Some(("[fd00::1]", "x"))),
            ("anna@[fd00::1]:x", Some(("anna@[fd00::1]", "x"))),
            ("film.mp4", None),
            ("./a:b", None),
            ("dir/a:b", None),
            (":b", None),
            ("-oProxyCommand=x:y", None),
        ] {
            assert_eq!(remote(OsStr::new(text)), place, "{text}");
        }
        assert_eq!(remote(OsStr::from_bytes(b"film\xff")), None);
    }

    /// Breaks: a directory is copied into the target and not its contents, or the other way round.
    #[test]
    fn contents_are_told_from_directories() {
        for text in ["dir/", "dir/.", ".", "./", "far:dir/", "far:.", "far:a/."] {
            assert!(is_contents(OsStr::new(text)), "{text}");
        }
        for text in ["dir", "..", "dir/a.", "a.", "far:", "far:dir", "far:..", ".hidden"] {
            assert!(!is_contents(OsStr::new(text)), "{text}");
        }
    }

    /// Breaks: a file's name is a command or an option at the far end, or another file there.
    #[test]
    fn names_are_quoted_for_the_far_shell() {
        assert_eq!(quoted("a b; rm -rf ~"), "'a b; rm -rf ~'");
        assert_eq!(quoted("~/it's"), r"~/'it'\''s'");
        assert_eq!(quoted_pattern("~/a"), "'~/a'");
        assert_eq!(["", "~", "-x", "a"].map(quoted_path), ["'.'", "~/''", "'./-x'", "'a'"]);
    }
}
