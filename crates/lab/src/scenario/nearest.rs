//! The nearest of several words, and lists of words.

/// The candidate nearest to `word`; none if nothing is near.
pub(super) fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    // A longer word is no name, and comparing it would take time.
    if word.len() > 100 {
        return None;
    }
    let lower = word.to_lowercase();
    candidates
        .iter()
        .map(|c| (strsim::osa_distance(&lower, &c.to_lowercase()), *c))
        .filter(|(d, c)| {
            let (short, long) = (lower.len().min(c.len()), lower.len().max(c.len()));
            *d < short && *d <= long.div_ceil(3)
        })
        .min_by_key(|(d, _)| *d)
        .map(|(_, c)| c)
}

/// Words with commas between.
pub(super) fn list(words: &[&str]) -> String {
    const MAX: usize = 30;
    let mut text = words.iter().take(MAX).copied().collect::<Vec<_>>().join(", ");
    if words.len() > MAX {
        text.push_str(", ...");
    }
    text
}
