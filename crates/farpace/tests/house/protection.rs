//! Each test states what it protects.

use crate::workspace::{root, sources};

/// Breaks: knowing from a failed test which behaviour is lost.
#[test]
fn each_test_says_what_breaks() {
    let (mut tests, mut wrong) = (0, Vec::new());
    for folder in ["crates", "bench"] {
        for (path, text) in sources(&root().join(folder)) {
            let lines: Vec<&str> = text.lines().map(str::trim).collect();
            let is_test = |line: &str| line == "#[test]" || line.starts_with("#[tokio::test");
            for (number, _) in lines.iter().enumerate().filter(|(_, line)| is_test(line)) {
                tests += 1;
                let above =
                    lines[..number].iter().rev().take_while(|l| l.starts_with("//") || l.starts_with("#["));
                if !above.into_iter().any(|line| line.contains("Breaks: ")) {
                    wrong.push(format!("{}:{}", path.display(), number + 1));
                }
            }
        }
    }
    assert!(tests > 1_000, "only {tests} tests were found");
    assert!(wrong.is_empty(), "a comment \"Breaks: ...\" is missing:\n{}", wrong.join("\n"));
}
