//! What a page shows on a terminal.

use crate::Table;
use textwrap::{Options, WordSplitter};

/// Most columns of running text, however wide the terminal is.
const MAX_TEXT_WIDTH: usize = 110;

/// A part of a page's text. An empty line separates two of them.
#[derive(Clone, Debug)]
pub(crate) enum TextBlock {
    Heading(String),
    /// Paragraphs without lines between them.
    Paragraphs(Vec<TextParagraph>),
    Table(Table),
}

/// Running text with what stands before its first line and before the others.
#[derive(Clone, Debug)]
pub(crate) struct TextParagraph {
    pub text: String,
    pub indents: [&'static str; 2],
}

/// Running text in lines of at most `width` columns, broken at spaces.
pub fn fill(text: &str, width: usize) -> String {
    let options = Options::new(width).break_words(false).word_splitter(WordSplitter::NoHyphenation);
    textwrap::fill(&text.split_whitespace().collect::<Vec<_>>().join(" "), options)
}

/// The text of `blocks` for a terminal with `width` columns; none: no table is wrapped.
pub(crate) fn text(blocks: &[TextBlock], width: Option<usize>) -> String {
    let paragraph = |TextParagraph { text, indents: [first, rest] }: &TextParagraph| {
        let options = Options::new(width.map_or(MAX_TEXT_WIDTH, |width| width.min(MAX_TEXT_WIDTH)));
        textwrap::fill(text, options.initial_indent(first).subsequent_indent(rest)) + "\n"
    };
    let show = |block: &TextBlock| match block {
        TextBlock::Heading(heading) => heading.clone() + "\n",
        TextBlock::Paragraphs(paragraphs) => paragraphs.iter().map(paragraph).collect(),
        TextBlock::Table(table) => table.to_text_for(width),
    };
    let shown: Vec<String> = blocks.iter().map(show).filter(|block| !block.is_empty()).collect();
    shown.join("\n")
}
