//! docs/limits.md says what the code says.

use farpace_host as host;

/// Breaks: an operator plans with a limit that is not the one in force.
#[test]
fn the_page_of_limits_is_true() {
    let page = include_str!("../../../docs/limits.md");
    let table = [
        ("MAX_CONNECTIONS", host::MAX_CONNECTIONS),
        ("MAX_TIME_WAIT", host::MAX_TIME_WAIT),
        ("DEFAULT_BACKLOG", host::DEFAULT_BACKLOG),
        ("DEFAULT_ACCEPTED", host::DEFAULT_ACCEPTED),
        ("MAX_ORPHANS", host::MAX_ORPHANS),
        ("MAX_RESETS_PER_SECOND", host::MAX_RESETS_PER_SECOND as usize),
        ("MAX_BOUND", host::MAX_BOUND),
    ];
    for (name, value) in table {
        let row = page.lines().find(|line| line.contains(&format!("`{name}`")));
        let limit = row.and_then(|row| row.split('|').nth(2)).map(str::trim);
        assert!(limit.is_some_and(|text| text.starts_with(&thousands(value))), "{name}: {limit:?}, {value}");
    }
    let gib = host::DEFAULT_MEMORY.get() >> 30;
    assert!(page.contains(&format!("| lab | {gib} GiB |")));
    assert!(page.contains(&format!("The newest {} are kept", host::DEFAULT_CLOSED_KEPT)));
}

fn thousands(n: usize) -> String {
    let digits = n.to_string();
    let first = (digits.len() + 2) % 3 + 1;
    let (head, tail) = digits.split_at(first);
    let groups = tail.as_bytes().chunks(3).map(|group| String::from_utf8_lossy(group));
    groups.fold(head.to_owned(), |text, group| format!("{text},{group}"))
}
