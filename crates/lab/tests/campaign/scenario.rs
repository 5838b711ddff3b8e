//! A trial as a scenario file, as far as the language of scenarios allows.

use super::knobs::{Knobs, Program, Way};
use farpace_lab::scenario::{
    BurstLossSpec, ClockJumpSpec, ClockJumpsSpec, CorruptSpec, DirectionSpec, DuplicateSpec, FlowSpec,
    HostSpec, JitterSpec, LinkSpec, LossSpec, MtuChangeSpec, MtuSpec, OutagesSpec, QueueLimit, ReorderSpec,
    Scenario, Trace,
};
use farpace_path::BurstLossConfig;
use farpace_units::{ByteCount, Instant, Span};
use std::collections::BTreeMap;

/// The text, with a comment for each property that a scenario cannot express.
pub fn text(knobs: &Knobs) -> String {
    let mut unsaid = Vec::new();
    let directions = [0, 1].map(|i| {
        let jumps = knobs.ends[i].jumps.iter();
        let jump = |j: &farpace_path::Jump| ClockJumpSpec {
            at: j.at.since(Instant::ZERO),
            ticks: j.ticks.cast_signed(),
        };
        let way = direction(&knobs.ways[i], knobs.heal, i, &mut unsaid);
        DirectionSpec { clock_jumps: ClockJumpsSpec(jumps.map(jump).collect()), ..way }
    });
    let [forward, backward] = directions;
    let link = LinkSpec {
        name: "path".into(),
        between: ["client".into(), "server".into()],
        rate: None,
        delay: Span::ZERO,
        queue: QueueLimit::default(),
        aqm: None,
        schedule: None,
        overhead: ByteCount::new(24),
        forward,
        backward,
    };
    let mut flows = Vec::new();
    for i in 0..2 {
        let Program { total, turn, piece: _, wait: _, close: _, read, abort } = knobs.programs[i];
        if total == 0 {
            continue;
        }
        let (from, to) = [("client", "server"), ("server", "client")][i];
        flows.push(FlowSpec {
            name: format!("from-{from}"),
            from: from.into(),
            to: to.into(),
            port: None,
            start: Span::ZERO,
            size: ByteCount::new(total),
            sender: knobs.ends[i].settings.clone(),
            receiver: knobs.ends[1 - i].settings.clone(),
        });
        if turn < total {
            unsaid.push(format!("the {from} sends in turns of {turn} B"));
        }
        if abort.is_some() {
            unsaid.push(format!("the {from} aborts: {abort:?}"));
        }
        unsaid.push(format!("the {from} reads: {read:?}"));
    }
    if flows.len() == 2 {
        unsaid.push("both ways on one connection".into());
    }
    if knobs.connections > 1 {
        unsaid.push(format!("{} connections, one every {}", knobs.connections, knobs.every));
    }
    let scenario = Scenario {
        title: format!("Campaign, seed {}", knobs.seed),
        description: String::new(),
        seed: knobs.seed >> 1,
        duration: Span::from_secs(86_400),
        trace: Trace { bin: Span::from_secs(1), ..Trace::default() },
        hosts: BTreeMap::from([
            ("client".into(), HostSpec::default()),
            ("server".into(), HostSpec::default()),
        ]),
        routers: BTreeMap::new(),
        switches: BTreeMap::new(),
        links: vec![link],
        flows,
        datagrams: Vec::new(),
    };
    let mut text: String = unsaid.iter().map(|line| format!("# not said here: {line}\n")).collect();
    text += &scenario.to_toml().unwrap_or_else(|error| format!("# {error}\n"));
    text
}

fn direction(way: &Way, heal: Span, i: usize, unsaid: &mut Vec<String>) -> DirectionSpec {
    let name = ["forward", "backward"][i];
    if let Some(paced) = &way.paced {
        unsaid.push(format!("{name}: behind the line stands a {:?}", paced.far_end));
    }
    if way.split > 0.0 || way.marks.is_some() {
        unsaid.push(format!("{name}: cut in two {}, marks {:?}", way.split, way.marks));
    }
    if way.middlebox.is_some() || way.thinning.is_some() {
        let stays = if way.boxes_stay { ", for ever" } else { "" };
        unsaid.push(format!("{name}: a box {:?}, one ACK of {:?}{stays}", way.middlebox, way.thinning));
    }
    if !way.jitter.is_zero() {
        unsaid.push(format!("{name}: the jitter reorders"));
    }
    if i == 0 {
        unsaid.push(format!("all troubles end at {heal}"));
    }
    DirectionSpec {
        rate: Some(way.rate),
        delay: Some(way.delay),
        queue: way.paced.is_none().then_some(QueueLimit::Packets(way.queue)),
        pacing: way.paced.as_ref().map(|paced| paced.config.clone()),
        policer: way.policer.clone(),
        mtu: (!way.mtu.is_empty()).then(|| MtuSpec {
            limit: ByteCount::new(65_535),
            silent: way.mtu_silent,
            changes: (way.mtu.iter())
                .map(|c| MtuChangeSpec { at: c.at.since(Instant::ZERO), limit: c.mtu })
                .collect(),
        }),
        loss: LossSpec(way.loss),
        burst_loss: way.burst.map(|BurstLossConfig { begin, end, good, bad }| BurstLossSpec {
            begin,
            end,
            good,
            bad,
        }),
        duplicate: DuplicateSpec(way.duplicate),
        corrupt: CorruptSpec(way.corrupt),
        reorder: way.reorder.map(|(chance, extra)| ReorderSpec { chance, extra }),
        jitter: JitterSpec(way.jitter),
        outages: OutagesSpec(way.outages.clone()),
        ..DirectionSpec::default()
    }
}
