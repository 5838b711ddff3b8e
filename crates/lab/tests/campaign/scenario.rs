//! A trial as a scenario file, as far as the language of scenarios allows.

use super::knobs::{DirectionKnobs, Knobs, Program};
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
    let mut inexpressible = Vec::new();
    let directions = [0, 1].map(|i| {
        let jumps = knobs.ends[i].jumps.iter();
        let jump = |j: &farpace_path::Jump| ClockJumpSpec {
            at: j.at.since(Instant::ZERO),
            ticks: j.ticks.cast_signed(),
        };
        let direction = direction(&knobs.directions[i], knobs.heal, i, &mut inexpressible);
        DirectionSpec { clock_jumps: ClockJumpsSpec(jumps.map(jump).collect()), ..direction }
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
            count: None,
            starts: None,
            sizes: None,
            mix: Vec::new(),
            class: None,
            writes: None,
            reads: None,
            exchanges: [].into(),
            sender: knobs.ends[i].settings.clone().into(),
            receiver: knobs.ends[1 - i].settings.clone().into(),
        });
        if turn < total {
            inexpressible.push(format!("the {from} sends in turns of {turn} B"));
        }
        if abort.is_some() {
            inexpressible.push(format!("the {from} aborts: {abort:?}"));
        }
        inexpressible.push(format!("the {from} reads: {read:?}"));
    }
    if flows.len() == 2 {
        inexpressible.push("both directions on one connection".into());
    }
    if knobs.connections > 1 {
        inexpressible.push(format!("{} connections, one every {}", knobs.connections, knobs.every));
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
    let mut text: String =
        inexpressible.iter().map(|link| format!("# not expressed here: {link}\n")).collect();
    text += &scenario.to_toml().unwrap_or_else(|error| format!("# {error}\n"));
    text
}

fn direction(
    direction: &DirectionKnobs,
    heal: Span,
    i: usize,
    inexpressible: &mut Vec<String>,
) -> DirectionSpec {
    let name = ["forward", "backward"][i];
    if let Some(paced) = &direction.paced {
        inexpressible.push(format!("{name}: after the link is a {:?}", paced.far_end));
    }
    if direction.split > 0.0 || direction.marks.is_some() {
        inexpressible.push(format!("{name}: cut in two {}, marks {:?}", direction.split, direction.marks));
    }
    if direction.middlebox.is_some() || direction.thinning.is_some() {
        let stays = if direction.middleboxes_stay { ", forever" } else { "" };
        inexpressible.push(format!(
            "{name}: a middlebox {:?}, one ACK of {:?}{stays}",
            direction.middlebox, direction.thinning
        ));
    }
    if !direction.jitter.is_zero() {
        inexpressible.push(format!("{name}: the jitter reorders"));
    }
    if i == 0 {
        inexpressible.push(format!("all impairments end at {heal}"));
    }
    DirectionSpec {
        rate: Some(direction.rate),
        delay: Some(direction.delay),
        queue: direction.paced.is_none().then_some(QueueLimit::Packets(direction.queue)),
        pacing: direction.paced.as_ref().map(|paced| paced.config.clone()),
        policer: direction.policer.clone(),
        mtu: (!direction.mtu.is_empty()).then(|| MtuSpec {
            limit: ByteCount::new(65_535),
            silent: direction.mtu_silent,
            changes: (direction.mtu.iter())
                .map(|c| MtuChangeSpec { at: c.at.since(Instant::ZERO), limit: c.mtu })
                .collect(),
        }),
        loss: LossSpec(direction.loss),
        burst_loss: direction.burst.map(|BurstLossConfig { begin, end, good, bad }| BurstLossSpec {
            begin,
            end,
            good,
            bad,
        }),
        duplicate: DuplicateSpec(direction.duplicate),
        corrupt: CorruptSpec(direction.corrupt),
        reorder: direction.reorder.map(|(chance, extra)| ReorderSpec { chance, extra }),
        jitter: JitterSpec(direction.jitter),
        outages: OutagesSpec(direction.outages.clone()),
        ..DirectionSpec::default()
    }
}
