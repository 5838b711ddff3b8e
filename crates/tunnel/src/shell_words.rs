//! Words for the shell at the far end of ssh.

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

    /// Breaks: a file's name is a command or an option at the far end, or another file there.
    #[test]
    fn names_are_quoted_for_the_far_shell() {
        assert_eq!(quoted("a b; rm -rf ~"), "'a b; rm -rf ~'");
        assert_eq!(quoted("~/it's"), r"~/'it'\''s'");
        assert_eq!(quoted_pattern("~/a"), "'~/a'");
        assert_eq!(["", "~", "-x", "a"].map(quoted_path), ["'.'", "~/''", "'./-x'", "'a'"]);
    }
}
