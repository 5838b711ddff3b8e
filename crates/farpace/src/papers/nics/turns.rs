//! What the paper leaves open, turned one by one.

use super::case::{Case, Kind};
use super::host::{Host, IDLE, OBSERVED};
use super::plan::RATIOS;
use super::results::Results;
use farpace_report::{Table, TableCell, TableColumn};

/// An assumption: what it is, the machine, and settings, in which S, S+1 and S+2 stand for numbers.
struct Turn {
    what: &'static str,
    host: Host,
    /// The same machine when nobody observes.
    idle: Host,
    keys: &'static [(&'static str, &'static str)],
}

const fn turn(what: &'static str, keys: &'static [(&'static str, &'static str)]) -> Turn {
    Turn { what, host: OBSERVED, idle: IDLE, keys }
}
const fn machine(what: &'static str, host: Host) -> Turn {
    Turn { what, host, idle: host, keys: &[] }
}

const PROFILE: [&str; 2] = ["flows.bulk.sender.profile", "flows.bulk.receiver.profile"];
const FLOOR: &str = "flows.bulk.sender.cwnd_floor";
const WIDE: [&str; 2] = ["links.b-wide.forward.interrupts", "links.a-wide.backward.interrupts"];
const NARROW: [&str; 2] = ["links.b-narrow.forward.interrupts", "links.a-narrow.backward.interrupts"];

const TURNS: [Turn; 23] = [
    turn("as assumed", &[]),
    machine("hosts take no time", Host { send: 0.0, ack: 0.0 }),
    machine("nobody observes", IDLE),
    machine("the observer takes 5 us a frame", IDLE.with_observer(5.0)),
    machine("the observer takes 15 us a frame", IDLE.with_observer(15.0)),
    turn("TCP without SACK", &[(PROFILE[0], "newreno"), (PROFILE[1], "newreno")]),
    turn(
        "TCP of Linux 2.6.17: learns of reordering",
        &[(PROFILE[0], "linux-2.6.17"), (PROFILE[1], "linux-2.6.17")],
    ),
    turn("TCP of today", &[(PROFILE[0], "modern"), (PROFILE[1], "modern")]),
    turn("no floor below the window", &[(FLOOR, "1 packets")]),
    turn("a floor of S + 2", &[(FLOOR, "S+2 packets")]),
    turn("receive window of 32 kB", &[("flows.bulk.receiver.window", "22 packets")]),
    turn("an ACK for each segment", &[("flows.bulk.receiver.delayed_ack", "none")]),
    turn("ACKs are put in order by S as well", &[("hosts.b.multi_nic.skip", "S")]),
    turn("ACKs by the wide card alone", &[("hosts.b.multi_nic.ratio", "1/0")]),
    turn("frames are held for 1 ms", &[("hosts.a.multi_nic.hold", "1 ms")]),
    turn("frames are held for 20 ms", &[("hosts.a.multi_nic.hold", "20 ms")]),
    turn(
        "interrupts of the wide card after 30 us",
        &[(WIDE[0], "{ delay = \"30 us\" }"), (WIDE[1], "{ delay = \"30 us\" }")],
    ),
    turn(
        "interrupts of the wide card after 100 us",
        &[(WIDE[0], "{ delay = \"100 us\" }"), (WIDE[1], "{ delay = \"100 us\" }")],
    ),
    turn(
        "interrupts of the narrow card after 100 us",
        &[(NARROW[0], "{ delay = \"100 us\" }"), (NARROW[1], "{ delay = \"100 us\" }")],
    ),
    turn(
        "interrupts of all cards up to 20 us late",
        &[
            (WIDE[0], "{ jitter = \"20 us\" }"),
            (WIDE[1], "{ jitter = \"20 us\" }"),
            (NARROW[0], "{ jitter = \"20 us\" }"),
            (NARROW[1], "{ jitter = \"20 us\" }"),
        ],
    ),
    turn(
        "interrupts of all cards up to 100 us late",
        &[
            (WIDE[0], "{ jitter = \"100 us\" }"),
            (WIDE[1], "{ jitter = \"100 us\" }"),
            (NARROW[0], "{ jitter = \"100 us\" }"),
            (NARROW[1], "{ jitter = \"100 us\" }"),
        ],
    ),
    turn(
        "interrupts of all cards up to 200 us late",
        &[
            (WIDE[0], "{ jitter = \"200 us\" }"),
            (WIDE[1], "{ jitter = \"200 us\" }"),
            (NARROW[0], "{ jitter = \"200 us\" }"),
            (NARROW[1], "{ jitter = \"200 us\" }"),
        ],
    ),
    turn("the narrow way is 50 us longer", &[("links.b-narrow.delay", "50 us")]),
];

/// Skip numbers of the table at 90/10.
const SKIPS: [u16; 10] = [0, 2, 4, 6, 7, 8, 9, 10, 12, 16];
/// The paper's at 99.6/0.4.
const WIDE_SKIP: u16 = 18;

impl Turn {
    fn apply(&self, case: Case, skip: u16) -> Case {
        let value = |value: &str| {
            let next = |n: u16| skip.saturating_add(n).to_string();
            let value = value.replace("S+2", &next(2)).replace("S+1", &next(1));
            if value == "S" { skip.to_string() } else { value }
        };
        let mut case = self.keys.iter().fold(case, |case, (key, text)| case.with(key, &value(text)));
        case.kind = Kind::Turned;
        case.name = format!("{}, {}", self.what, case.name);
        case
    }
    fn at_90(&self, skip: u16) -> Case {
        self.apply(Case::paper(RATIOS[0], skip, self.host), skip)
    }
    fn at_99(&self) -> Case {
        self.apply(Case::paper(RATIOS[1], WIDE_SKIP, self.idle), WIDE_SKIP)
    }
    fn alone(&self) -> Case {
        self.apply(Case::alone(self.idle), 0)
    }
}

/// Cells of [`table`].
pub fn cases() -> Vec<Case> {
    let of = |turn: &Turn| {
        let mut cases: Vec<Case> = SKIPS.iter().map(|skip| turn.at_90(*skip)).collect();
        cases.extend([turn.at_99(), turn.alone()]);
        cases
    };
    TURNS.iter().flat_map(of).collect()
}

/// True if these runs were made.
pub fn measured(results: &Results) -> bool {
    results.case(&TURNS[0].alone()).is_some()
}

/// What comes of each.
pub fn table(results: &Results) -> Table {
    let columns = vec![
        TableColumn::text("what is turned"),
        TableColumn::number("S = 0", "Mbit/s (% again)"),
        TableColumn::number("S = 2", "Mbit/s (% again)"),
        TableColumn::number("S = 8", "Mbit/s (% again)"),
        TableColumn::number("best S", ""),
        TableColumn::number("with it", "Mbit/s"),
        TableColumn::number("gain", "times"),
        TableColumn::number("99.6/0.4, S = 18", "Mbit/s"),
        TableColumn::number("wide card alone", "Mbit/s"),
    ];
    let mut table =
        Table::new("What the paper leaves open, one by one: 90/10, unless said otherwise", columns);
    for turn in &TURNS {
        let both = |skip: u16| -> TableCell {
            let case = turn.at_90(skip);
            let text = |m: &super::case::Measured| format!("{:.0} ({:.1})", m.total(), m.resent_percent());
            results.case(&case).map(text).into()
        };
        let all = SKIPS.map(|skip| (skip, results.goodput(&turn.at_90(skip))));
        let (skip, best) =
            all.into_iter().fold((0, f64::MIN), |best, one| if one.1 > best.1 { one } else { best });
        table.row(vec![
            turn.what.into(),
            both(0),
            both(2),
            both(8),
            u64::from(skip).into(),
            TableCell::Number(best, Some(0)),
            TableCell::Number(best / results.goodput(&turn.at_90(0)), Some(2)),
            TableCell::Number(results.goodput(&turn.at_99()), Some(0)),
            TableCell::Number(results.goodput(&turn.alone()), Some(0)),
        ]);
    }
    table
}
