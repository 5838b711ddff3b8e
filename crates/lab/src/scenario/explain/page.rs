//! The text of an explanation, wrapped as it is written.

/// Columns of the text.
const WIDTH: usize = 100;

/// Text that is wrapped as it is written.
#[derive(Default)]
pub(super) struct ExplainPage {
    pub text: String,
}

impl ExplainPage {
    /// A blank line.
    pub fn gap(&mut self) {
        self.text.push('\n');
    }
    /// A paragraph. The second line and later ones are indented further.
    pub fn item(&mut self, depth: usize, text: &str) {
        let indent = "  ".repeat(depth);
        let hang = if depth == 0 { String::new() } else { "  ".repeat(depth + 1) };
        let (mut line, mut empty) = (indent, true);
        for word in phrases(text) {
            let word = word.as_str();
            let fits = line.chars().count() + usize::from(!empty) + word.chars().count() <= WIDTH;
            if !empty && !fits {
                self.text.push_str(line.trim_end());
                self.text.push('\n');
                (line, empty) = (hang.clone(), true);
            }
            if !empty {
                line.push(' ');
            }
            line.push_str(word);
            empty = false;
        }
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }
}

/// The words of a text, with numbers and their units kept together.
fn phrases(text: &str) -> Vec<String> {
    const UNITS: [&str; 14] =
        ["ns", "us", "ms", "s", "B", "kB", "MB", "GB", "bit/s", "kbit/s", "Mbit/s", "Gbit/s", "packets", "%"];
    let mut phrases: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let is_unit = UNITS.contains(&word.trim_end_matches(['.', ',', ';', ':', ')']));
        match phrases.last_mut() {
            Some(last) if is_unit && last.ends_with(|c: char| c.is_ascii_digit()) => {
                last.push(' ');
                last.push_str(word);
            }
            _ => phrases.push(word.to_string()),
        }
    }
    phrases
}
