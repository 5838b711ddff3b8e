//! Where the records of a run go: the flight recorders of the report, and the trace file.

use super::TraceFormat;
use super::input::Input;
use anyhow::{Context, Result, anyhow};
use farpace_events::{Record, RecordSink};
use farpace_explain::input::RecordFollower;
use farpace_process::outdir::OutDir;
use farpace_run::RunWatch;
use farpace_trace::{CsvSink, ParquetSink, RunInfo, TraceError};
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::PathBuf;

enum Writer {
    Parquet(Box<ParquetSink<BufWriter<File>>>),
    Csv(Box<CsvSink<BufWriter<File>>>),
}

/// The trace file being written.
pub struct TraceSink {
    place: PathBuf,
    writer: Writer,
}

impl TraceSink {
    /// Begins the trace that is wanted, if one is.
    pub fn create(input: &Input, out: Option<&OutDir>) -> Result<Option<TraceSink>> {
        let (Some(out), Some(name)) = (out, input.trace_name()) else { return Ok(None) };
        let staged = out.staging().join(name);
        let place = out.place(&staged);
        let cannot = || format!("cannot write the trace `{}`", place.display());
        let file = BufWriter::with_capacity(1 << 20, File::create(&staged).with_context(cannot)?);
        let info = RunInfo { scenario: input.run.scenario.title.clone(), seed: input.run.scenario.seed };
        let writer = match input.trace {
            TraceFormat::Csv => Writer::Csv(Box::new(CsvSink::new(file))),
            _ => Writer::Parquet(Box::new(ParquetSink::new(file, &info).with_context(cannot)?)),
        };
        Ok(Some(TraceSink { place, writer }))
    }

    /// Ends the file.
    pub fn finish(self) -> Result<()> {
        let flush =
            |file: BufWriter<File>| file.into_inner().map(drop).map_err(io::IntoInnerError::into_error);
        let written = match self.writer {
            Writer::Parquet(sink) => sink.finish(),
            Writer::Csv(sink) => sink.finish(),
        };
        let written = written.and_then(|file| flush(file).map_err(TraceError::from));
        written.map_err(|error| anyhow!("{error} (`{}`)", self.place.display()))
    }
}

impl RecordSink for TraceSink {
    fn record(&mut self, record: &Record) {
        match &mut self.writer {
            Writer::Parquet(sink) => sink.record(record),
            Writer::Csv(sink) => sink.record(record),
        }
    }
}

/// All of them.
pub struct Records<'a> {
    pub watch: &'a mut RunWatch,
    pub trace: Option<&'a mut TraceSink>,
    /// The engine of reasons.
    pub follower: Option<&'a mut RecordFollower>,
}

impl RecordSink for Records<'_> {
    fn record(&mut self, record: &Record) {
        self.watch.record(record);
        if let Some(trace) = &mut self.trace {
            trace.record(record);
        }
        if let Some(follower) = &mut self.follower {
            follower.record(record);
        }
    }
}
