//! Reasons why claims fail, which stand in the documents of the papers.
//!
//! In the section of that name a list has an item for each claim that fails: the id of the claim as code
//! (several with commas between), `quick` or `full` in parentheses if it fails only in that measurement, a
//! colon, and the reason. The reason ends with the paragraph. Paragraphs that follow are for readers of the
//! document alone.

use std::collections::BTreeMap;

/// The heading of the section.
const HEADING: &str = "## Claims that fail";

/// In which measurements a claim fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailsIn {
    /// In all.
    Always,
    /// With `--quick` only.
    Quick,
    /// Without `--quick` only.
    Full,
}

/// The reasons by id, of the literal reproduction or of a world.
pub(crate) fn parse(document: &str, world: Option<&str>) -> BTreeMap<String, String> {
    let entries = match world {
        Some(world) => entries_in_world(document, world),
        None => entries(document),
    };
    entries.into_iter().map(|(id, _, reason)| (id, reason)).collect()
}

/// Id, measurement and reason of each claim in `document` that fails literally.
pub fn entries(document: &str) -> Vec<(String, FailsIn, String)> {
    entries_below(document, &format!("{HEADING}\n"))
}

/// The same of each claim that fails in a world. The reason of a claim that fails literally, too, begins with
/// `Inconsistent:` if the paper contradicts itself, else with `Open:` and names what would decide it.
pub fn entries_in_world(document: &str, world: &str) -> Vec<(String, FailsIn, String)> {
    entries_below(document, &format!("{HEADING} in the world `{world}`\n"))
}

fn entries_below(document: &str, heading: &str) -> Vec<(String, FailsIn, String)> {
    let section = document.split_once(heading).map_or("", |(_, rest)| rest);
    let section = section.split_once("\n## ").map_or(section, |(section, _)| section);
    let mut entries = Vec::new();
    for item in section.split("\n* `").skip(1) {
        let paragraph = item.split("\n\n").next().unwrap_or_default();
        let Some((head, reason)) = paragraph.split_once(": ") else { continue };
        let (ids, fails) = match head.split_once(" (") {
            Some((ids, "quick)")) => (ids, FailsIn::Quick),
            Some((ids, "full)")) => (ids, FailsIn::Full),
            _ => (head, FailsIn::Always),
        };
        let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
        let reason = reason.strip_suffix('.').unwrap_or(&reason);
        entries.extend(ids.split(", ").map(|id| (id.trim_matches('`').to_owned(), fails, reason.to_owned())));
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: reports lack the reason of a claim, or print more of the document than that.
    #[test]
    fn reasons_end_with_their_paragraph() {
        let document = "# Paper\n\n* `no`: not here\n\n## Claims that fail\n\nText.\n\n* `a/1`, `b`: one\n  \
                        two. Three.\n\n  \
                        More.\n* `c` (quick): see [d: e](f).\n\n## Next\n\n* `no`: nor here\n";
        let entry = |id: &str, fails, reason: &str| (id.to_owned(), fails, reason.to_owned());
        let expected = [
            entry("a/1", FailsIn::Always, "one two. Three"),
            entry("b", FailsIn::Always, "one two. Three"),
            entry("c", FailsIn::Quick, "see [d: e](f)"),
        ];
        assert_eq!(entries(document), expected);
    }

    /// Breaks: reasons of a world are taken for those of the literal reproduction.
    #[test]
    fn each_world_has_its_own_section() {
        let document = "## Claims that fail\n\n* `a`: one.\n\n## Claims that fail in the world `w`\n\n\
                        * `b`: Open: two.\n";
        let ids = |entries: Vec<(String, FailsIn, String)>| {
            entries.into_iter().map(|(id, _, reason)| format!("{id} {reason}")).collect::<Vec<_>>()
        };
        assert_eq!(ids(entries(document)), ["a one"]);
        assert_eq!(ids(entries_in_world(document, "w")), ["b Open: two"]);
        assert!(entries_in_world(document, "x").is_empty());
    }
}
