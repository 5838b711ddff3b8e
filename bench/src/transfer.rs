//! One transfer through the lab, on the path of the paper on communication stops.

use farpace_events::{Record, RecordSink};
use farpace_lab::scenario::Scenario;
use farpace_lab::{Inputs, Run};
use farpace_trace::{CsvSink, ParquetSink, RunInfo};

/// What is recorded of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recording {
    /// Nothing.
    Off,
    /// Records are made and thrown away.
    Made,
    /// Records go to a Parquet file in memory that is thrown away.
    Parquet,
    /// Records go to a CSV file in memory that is thrown away.
    Csv,
}

/// What a run came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Full-size data packets delivered.
    pub packets: u64,
    /// Events of the world.
    pub events: u64,
}

struct Forget;

impl RecordSink for Forget {
    fn record(&mut self, record: &Record) {
        std::hint::black_box(record);
    }
}

const PAPER: &str = include_str!("../../scenarios/papers/stops.toml");

/// Sends `size` (like "1 GB") with `profile` over the paper's path, and checks every byte.
///
/// # Panics
/// The scenario is wrong, or the transfer is not intact: a figure of such a run would be worth nothing.
#[allow(clippy::panic, reason = "a benchmark without a valid run must stop")]
pub fn transfer(profile: &str, size: &str, recording: Recording) -> Transfer {
    let set = [("flows.bulk.sender.profile", profile), ("flows.bulk.size", size)];
    let set: Vec<(String, String)> = set.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
    let scenario = Scenario::parse_with(PAPER, "stops.toml", &set).unwrap_or_else(|e| panic!("{e}"));
    let inputs = Inputs { records: recording != Recording::Off, ..Inputs::default() };
    let mut run = Run::new(&scenario, inputs).unwrap_or_else(|e| panic!("{e}"));
    let info = RunInfo { scenario: scenario.title.clone(), seed: scenario.seed };
    let mut sink: Option<Box<dyn RecordSink>> = match recording {
        Recording::Off => None,
        Recording::Made => Some(Box::new(Forget)),
        Recording::Parquet => {
            Some(Box::new(ParquetSink::new(std::io::sink(), &info).unwrap_or_else(|e| panic!("{e}"))))
        }
        Recording::Csv => Some(Box::new(CsvSink::new(std::io::sink()))),
    };
    loop {
        let sink = sink.as_mut().map(|s| s.as_mut() as &mut dyn RecordSink);
        if run.advance(sink).unwrap_or_else(|e| panic!("{e}")).finished {
            break;
        }
    }
    let outcome = run.finish().unwrap_or_else(|e| panic!("{e}"));
    let flow = &outcome.flows[0];
    assert!(flow.is_intact(), "the transfer did not arrive intact");
    Transfer { packets: flow.size.get().div_ceil(1448), events: outcome.events }
}
