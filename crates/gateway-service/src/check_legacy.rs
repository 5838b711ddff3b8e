//! Rules of iptables-legacy: `nft` does not show them, and nothing here judges them.

use farpace_live::doctor::DoctorFinding;
use farpace_live::system::legacy_rules;

/// For each family: its name, where the kernel lists its tables, and what shows their rules.
const FAMILIES: [(&str, &str, &str); 2] = [
    ("IPv4", "/proc/net/ip_tables_names", "iptables-legacy-save"),
    ("IPv6", "/proc/net/ip6_tables_names", "ip6tables-legacy-save"),
];

/// Notes about families that have such rules, or may have.
pub fn legacy() -> Vec<DoctorFinding> {
    let look = |(family, list, tool): (&str, &str, &'static str)| {
        // Without iptables-legacy in the kernel there is no such file.
        let tables = std::fs::read_to_string(list).unwrap_or_default();
        let tables: Vec<_> = tables.split_whitespace().collect();
        if tables.is_empty() {
            return None;
        }
        of_family(family, &tables, tool, legacy_rules(tool).map_err(|error| error.to_string()))
    };
    FAMILIES.into_iter().filter_map(look).collect()
}

/// `rules`: what `tool` shows; none: it is not installed.
fn of_family(
    family: &str,
    tables: &[&str],
    tool: &str,
    rules: Result<Option<String>, String>,
) -> Option<DoctorFinding> {
    let tables = tables.join(", ");
    let judged = "\"Firewalls\" in docs/gateway.md";
    let (value, mend) = match rules {
        Ok(Some(text)) => {
            let count = text.lines().filter(|line| decides(line)).count();
            if count == 0 {
                return None;
            }
            let lines = if count == 1 { "1 rule or policy" } else { &format!("{count} rules and policies") };
            (
                format!("iptables-legacy has {lines} for {family}, in {tables}: they are not judged here"),
                format!("compare what `{tool}` shows with {judged}"),
            )
        }
        Ok(None) => (
            format!(
                "iptables-legacy has tables for {family} ({tables}): whether they have rules cannot be told, \
                 and they are not judged here"
            ),
            format!("apt install iptables; compare what `{tool}` shows with {judged}"),
        ),
        Err(error) => (
            format!("iptables-legacy has tables for {family} ({tables}), which are not judged here: {error}"),
            format!("compare what `{tool}` shows with {judged}, as root"),
        ),
    };
    Some(DoctorFinding::note("iptables-legacy", value, mend))
}

/// True for a line with a rule, or with a policy other than to accept.
fn decides(line: &str) -> bool {
    let mut words = line.split_whitespace();
    match words.next() {
        Some("-A") => true,
        Some(chain) if chain.starts_with(':') => !matches!(words.next(), Some("ACCEPT" | "-") | None),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:own - [0:0]\nCOMMIT\n";

    /// Breaks: `check` says nothing of a firewall of iptables-legacy, or warns of empty tables.
    #[test]
    fn legacy_rules_are_told() {
        let of = |rules| of_family("IPv4", &["nat", "filter"], "iptables-legacy-save", rules);
        assert!(of(Ok(Some(EMPTY.to_owned()))).is_none());
        let closed = EMPTY.replace("FORWARD ACCEPT", "FORWARD DROP");
        let policy = of(Ok(Some(closed.clone()))).unwrap();
        assert!(policy.value.contains("has 1 rule or policy for IPv4, in nat, filter"), "{}", policy.value);
        assert!(policy.mend.as_ref().unwrap().contains("`iptables-legacy-save`"));
        let ruled = closed.replace("COMMIT", "-A FORWARD -i lan0 -o wan0 -j DROP\nCOMMIT");
        assert!(of(Ok(Some(ruled))).unwrap().value.contains("has 2 rules and policies"));
        let unknown = of(Ok(None)).unwrap();
        assert!(unknown.value.contains("cannot be told"), "{}", unknown.value);
        assert!(unknown.mend.as_ref().unwrap().contains("apt install iptables"));
        assert!(of(Err("not allowed".to_owned())).unwrap().value.ends_with("not allowed"));
    }
}
