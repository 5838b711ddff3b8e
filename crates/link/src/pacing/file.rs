//! Reading and writing a configuration file.

use super::PacingConfig;
use farpace_units::ByteCount;

/// Maximum size of a file: enough for a million classes and all filters.
pub const MAX_TEXT: ByteCount = ByteCount::new(64 << 20);

impl PacingConfig {
    /// Parses a file. The configuration may still be invalid: see [`check`](Self::check).
    ///
    /// # Errors
    /// The first syntax error with line and column; a text longer than [`MAX_TEXT`].
    pub fn parse(text: &str) -> Result<Self, String> {
        if ByteCount::of_len(text.len()) > MAX_TEXT {
            return Err(format!("the file is longer than {MAX_TEXT}"));
        }
        toml::from_str(text).map_err(|error| error.to_string())
    }

    /// The configuration as TOML with all defaults. [`parse`](Self::parse) returns the same configuration.
    ///
    /// # Errors
    /// None is known: every value has a TOML form.
    pub fn to_toml(&self) -> Result<String, String> {
        toml::to_string(self).map_err(|error| error.to_string())
    }

    /// The configuration as an inline table.
    ///
    /// # Errors
    /// As [`to_toml`](Self::to_toml).
    pub fn to_inline_toml(&self) -> Result<String, String> {
        toml::Value::try_from(self).map(|value| value.to_string()).map_err(|error| error.to_string())
    }
}

/// True if a file has comments, which rewriting it would lose.
pub fn has_comments(text: &str) -> bool {
    let mut string: Option<char> = None;
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match (string, c) {
            (None, '#') => return true,
            (None, '"' | '\'') => string = Some(c),
            (Some('"'), '\\') => {
                characters.next();
            }
            // In a multi-line string, each of the three quotes ends or begins a string, which has the same
            // effect.
            (Some(quote), c) if c == quote => string = None,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: comments are detected, so that they are not lost, and files without comments can be changed.
    #[test]
    fn comments_are_found() {
        for (text, has) in [
            ("scheduler = \"edf\"", false),
            ("scheduler = \"edf\" # why", true),
            ("# head", true),
            ("default = \"a#b\"", false),
            ("default = 'a#\"b'", false),
            ("default = \"a\\\"#\"", false),
            ("default = \"a\\\\\" # why", true),
            ("default = \"\"\"a\n#\"\"\"", false),
            ("default = '''a'''\n# why", true),
        ] {
            assert_eq!(has_comments(text), has, "{text}");
        }
    }

    /// Breaks: a written file reads back unchanged, and errors name the line.
    #[test]
    fn files_come_back() {
        let text = "default = \"a\"\nclasses = [{ name = \"a\", rate = \"connection\" }]\nfilters = [{ class \
                    = \"a\", protocol = \"47\" }]";
        let config = PacingConfig::parse(text).unwrap();
        let inline = format!("x = {}", config.to_inline_toml().unwrap());
        let nested: std::collections::BTreeMap<String, PacingConfig> = toml::from_str(&inline).unwrap();
        assert_eq!((nested["x"].clone(), inline.lines().count()), (config.clone(), 1));
        assert_eq!(PacingConfig::parse(&config.to_toml().unwrap()), Ok(config));
        let error = PacingConfig::parse("scheduler = \"edf\"\nclases = []").unwrap_err();
        assert!(error.contains("line 2") && error.contains("clases"), "{error}");
    }
}
