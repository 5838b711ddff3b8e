//! Generated topologies.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic as tests do")]

use farpace_lab::scenario::{MAX_GENERATED, Scenario, Topology, TopologyFigures, generate};
use farpace_lab::{Inputs, Run};
use farpace_units::{ByteCount, Rate, Span};

fn figures(size: u16) -> TopologyFigures {
    let (rate, delay) = (Rate::from_mbit(20), Span::from_millis(10));
    TopologyFigures { size, rate, delay, flow: ByteCount::new(200_000) }
}

fn scenario(topology: Topology, size: u16) -> Scenario {
    let text = generate(topology, figures(size)).unwrap();
    Scenario::parse(&text, topology.name()).unwrap_or_else(|e| panic!("{e}"))
}

/// Breaks: a generated scenario that is none, of any size.
#[test]
fn every_topology_is_a_scenario() {
    for topology in Topology::ALL {
        for size in [2, 3, 17, MAX_GENERATED] {
            scenario(topology, size);
        }
        assert!(
            generate(topology, figures(0)).is_err()
                && generate(topology, figures(MAX_GENERATED + 1)).is_err()
        );
    }
}

/// Breaks: which links flows share: a dumbbell's share one, a parking lot's long flow meets one at each hop,
/// a star's meet at the port of the first host.
#[test]
fn flows_share_the_links_that_they_should() {
    for (topology, flows, shared) in
        [(Topology::Dumbbell, 4, "bottleneck"), (Topology::ParkingLot, 5, "hop"), (Topology::Star, 3, "port")]
    {
        let scenario = scenario(topology, 4);
        assert_eq!(scenario.flows.len(), flows);
        for flow in &scenario.flows {
            let bottleneck = scenario.bottleneck(flow).unwrap();
            assert_eq!(bottleneck.rate, Rate::from_mbit(20));
            assert!(scenario.bottleneck_links(flow)[0].starts_with(shared), "{topology:?}");
        }
        let mut run = Run::new(&scenario, Inputs::default()).unwrap();
        while !run.advance(None).unwrap().finished {}
        let outcome = run.finish().unwrap();
        assert!(outcome.flows.iter().all(|flow| flow.is_intact()), "{topology:?}");
    }
    let lot = scenario(Topology::ParkingLot, 4);
    assert!(lot.base_rtt(&lot.flows[0]) > Span::from_millis(80), "the long flow crosses four hops");
    assert!(lot.base_rtt(&lot.flows[1]) < Span::from_millis(25));
}
