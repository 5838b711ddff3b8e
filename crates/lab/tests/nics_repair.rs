//! The multi-NIC layer retransmits frames that one of several paths loses before TCP notices.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic as tests do")]

use farpace_lab::scenario::Scenario;
use farpace_lab::{Inputs, Run, RunOutcome};

/// Two links of 50 Mbit/s, the nearer of which loses one frame of a hundred.
fn run(sender: &str, receiver: &str) -> RunOutcome {
    run_with(sender, receiver, "rate = \"50 Mbit/s\"\ndelay = \"5 ms\"\n[links.forward]\nloss = 0.01\n")
}

/// With this key for the nearer one.
fn run_with(sender: &str, receiver: &str, near: &str) -> RunOutcome {
    let text = format!(
        "title = \"t\"\nduration = \"20 s\"\n\
         [hosts.a]\nmulti_nic = {{ {sender} }}\n[hosts.b]\nmulti_nic = {{ {receiver} }}\n\
         [[links]]\nname = \"near\"\nbetween = [\"a\", \"b\"]\n{near}\
         [[links]]\nname = \"far\"\nbetween = [\"a\", \"b\"]\nrate = \"50 Mbit/s\"\ndelay = \"9 ms\"\n\
         [[flows]]\nname = \"bulk\"\nfrom = \"a\"\nto = \"b\"\nsize = \"20 MB\"\n"
    );
    let scenario = Scenario::parse(&text, "t.toml").unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut run = Run::new(&scenario, Inputs::default()).unwrap();
    while !run.advance(None).unwrap().finished {}
    run.finish().unwrap()
}

fn lost(outcome: &RunOutcome) -> u64 {
    outcome.drops.iter().filter(|drop| drop.place.starts_with("near")).map(|drop| drop.packets).sum()
}

fn retransmitted_by_the_layer(outcome: &RunOutcome) -> u64 {
    let reading =
        |(key, value): &(&str, String)| (*key == "retransmitted").then(|| value.parse::<u64>().unwrap());
    outcome.nics.iter().flat_map(|nic| nic.readings.iter()).filter_map(reading).sum()
}

const ORDERLY: &str = "resequence = { time = \"60 ms\" }";

/// Breaks: a path that loses frames keeps the windows of all connections small, though the hosts could repair
/// it below TCP.
#[test]
fn loss_on_one_path_is_repaired_before_tcp_notices() {
    let with = run("", ORDERLY);
    let without = run("repair = \"0 B\"", ORDERLY);
    for outcome in [&with, &without] {
        assert!(outcome.flows[0].is_intact(), "{:?}", outcome.flows[0].verified);
        assert!(lost(outcome) >= 50, "{} frames were lost", lost(outcome));
    }
    let [often, seldom] = [&without, &with].map(|outcome| outcome.flows[0].retransmissions());
    assert!(retransmitted_by_the_layer(&with) >= lost(&with) * 9 / 10);
    assert_eq!(retransmitted_by_the_layer(&without), 0);
    assert!(seldom * 20 <= often, "TCP sent {seldom} again, {often} without repair");
    let [fast, slow] = [&with, &without].map(|outcome| outcome.flows[0].elapsed);
    assert!(fast * 2 < slow, "{fast} with repair, {slow} without");
}

/// Breaks: a receiver without resequencing requests frames that TCP has retransmitted long ago; or one
/// requests in vain because a round trip is longer than any hold time.
#[test]
fn no_repair_is_requested_without_resequencing() {
    for receiver in ["", "resequence = { time = \"5 ms\" }"] {
        let outcome = run("", receiver);
        assert!(outcome.flows[0].is_intact());
        assert_eq!(retransmitted_by_the_layer(&outcome), 0, "{receiver}");
    }
}

/// Breaks: frames in flight over a NIC that fails stay lost until TCP's timer expires, with any receiver.
#[test]
fn frames_of_a_failed_nic_are_retransmitted_by_others() {
    let rate = "rate = \"500 Mbit/s\"\ndelay = \"5 ms\"\n";
    let mut cured = 0;
    // What is under way when the NIC dies decides whether TCP finds the loss without its timer: so the times
    // differ.
    for at in ["60 ms", "120 ms", "200 ms"] {
        let outage = format!("outages = [{{ at = \"{at}\", lasts = \"20 s\" }}]\n");
        let near = format!("{rate}[links.forward]\n{outage}[links.backward]\n{outage}");
        for receiver in ["", ORDERLY] {
            let with = run_with("", receiver, &near);
            let without = run_with("repair = \"0 B\"", receiver, &near);
            for outcome in [&with, &without] {
                assert!(outcome.flows[0].is_intact(), "{:?}", outcome.flows[0].verified);
            }
            let [never, often] = [&with, &without].map(|outcome| outcome.flows[0].timeouts);
            assert_eq!(never, 0, "{at}: timer of TCP with repair; {often} without");
            let silent =
                |outcome: &RunOutcome| outcome.flows[0].silence.longest().map(|silence| silence.span());
            assert_eq!(silent(&with), None, "{at}, without repair: {:?}", silent(&without));
            cured += u32::from(receiver.is_empty() && often > 0 && silent(&without).is_some());
        }
    }
    assert!(cured >= 2, "hardly anything had to be cured: {cured}");
}
