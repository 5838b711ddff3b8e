//! Safe output of SVG and HTML: escaping, numbers, text widths, colours.

use std::fmt::{self, Write};

/// Escapes `text` for HTML and XML, for use in text and in quoted attribute values. Control characters, which
/// XML does not allow, become spaces.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// A coordinate with at most one decimal.
pub(crate) struct Px(pub f64);

impl fmt::Display for Px {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = (self.0 * 10.0).round();
        if tenths % 10.0 == 0.0 {
            write!(f, "{:.0}", tenths / 10.0)
        } else {
            write!(f, "{:.1}", tenths / 10.0)
        }
    }
}

/// The approximate width of `text` in a common sans-serif font of `size` pixels.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    let em: f64 = text
        .chars()
        .map(|c| match c {
            'i' | 'l' | 'j' | '\'' | '|' => 0.27,
            '.' | ',' | ':' | '!' => 0.32,
            '0'..='9' => 0.63,
            'f' | 't' | 'r' | ' ' | '(' | ')' | '/' | '-' | '[' | ']' => 0.36,
            'm' | 'w' | 'M' | 'W' | '@' | '%' => 0.88,
            'A'..='Z' => 0.68,
            c if u32::from(c) >= 0x2e80 => 1.0,
            _ => 0.57,
        })
        .sum();
    em * size
}

/// Breaks `text` at spaces into lines of at most `width` pixels. A longer word is not broken.
pub(crate) fn wrap(text: &str, size: f64, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if text_width(line, size) + text_width(word, size) + 0.36 * size <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// The colours of figures: the set of Okabe and Ito, which is distinguishable with common colour vision
/// deficiencies. A page replaces them in dark mode by their class names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    Ink,
    Grey,
    Blue,
    Sky,
    Vermillion,
    Orange,
    Green,
    Purple,
}

impl Colour {
    /// All colours with their light and dark values.
    pub(crate) const ALL: [(Colour, &'static str, &'static str); 8] = [
        (Colour::Ink, "#1a1a1a", "#ececec"),
        (Colour::Grey, "#767676", "#a0a0a0"),
        (Colour::Blue, "#0072b2", "#5db4ee"),
        (Colour::Sky, "#56b4e9", "#2f7fb0"),
        (Colour::Vermillion, "#d55e00", "#ff8a3d"),
        (Colour::Orange, "#e69f00", "#f2b632"),
        (Colour::Green, "#009e73", "#2fcf9f"),
        (Colour::Purple, "#cc79a7", "#e29ac4"),
    ];
    pub(crate) fn class(self) -> &'static str {
        match self {
            Colour::Ink => "ink",
            Colour::Grey => "grey",
            Colour::Blue => "blue",
            Colour::Sky => "sky",
            Colour::Vermillion => "vermillion",
            Colour::Orange => "orange",
            Colour::Green => "green",
            Colour::Purple => "purple",
        }
    }
    pub(crate) fn hex(self) -> &'static str {
        Self::ALL.iter().find(|c| c.0 == self).map_or("#000000", |c| c.1)
    }
    /// Attributes of a line in this colour.
    pub(crate) fn stroke(self) -> String {
        format!("class=\"s-{}\" fill=\"none\" stroke=\"{}\"", self.class(), self.hex())
    }
    /// Attributes of an area in this colour.
    pub(crate) fn fill(self) -> String {
        format!("class=\"f-{}\" fill=\"{}\"", self.class(), self.hex())
    }
    /// CSS variables with the colours, for scripts.
    pub(crate) fn variables(dark: bool) -> String {
        let value = |(c, light_value, dark_value): &(Colour, &str, &str)| {
            format!("--c-{}:{};", c.class(), if dark { dark_value } else { light_value })
        };
        Self::ALL.iter().map(value).collect()
    }
    /// CSS rules for dark mode.
    pub(crate) fn dark_css() -> String {
        let mut css = String::new();
        for (c, _, dark) in Self::ALL {
            let _ = write!(css, ".s-{0}{{stroke:{dark}}}.f-{0}{{fill:{dark}}}", c.class());
        }
        css
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: a file name or scenario title cannot inject markup into a report.
    #[test]
    fn markup_is_escaped() {
        assert_eq!(escape("<a b=\"c\" d='e'>&\u{1b}[0m"), "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp; [0m");
    }

    /// Breaks: coordinates have at most one decimal, and keep their sign.
    #[test]
    fn coordinates_are_short() {
        let text: Vec<String> = [12.0, 12.34, -0.04, 0.96].iter().map(|x| Px(*x).to_string()).collect();
        assert_eq!(text, ["12", "12.3", "-0", "1"]);
    }

    /// Breaks: long titles fit narrow figures.
    #[test]
    fn text_is_wrapped() {
        assert_eq!(wrap("one two three", 10.0, 40.0), ["one two", "three"]);
        assert_eq!(wrap("", 10.0, 40.0), Vec::<String>::new());
    }
}
