//! farpace carries TCP over **far** networks: long, fat, lossy, satellite, policed. It is a TCP engine in
//! user space, a lab that runs whole networks of it in virtual time (the same scenario and seed give the same
//! bytes on every machine, much faster than real time, without privileges), and stations that run the same on
//! devices.
//!
//! This crate is the `farpace` command, and the front door for programs that embed farpace. Of the command,
//! start reading at [`cli`]; it never computes a result itself: it reads words, asks the crates below, and
//! prints. For programs:
//!
//! * **Run a scenario** and read what came of it: [`lab::Run`]. The example below is complete.
//! * **Use the engine alone**, over your own packets and clock: [`tcp::Connection`]. It is sans-IO.
//! * **Build a network in code** rather than TOML: [`lab::World`] and the elements of [`path`].
//! * **Look into a run**: [`events::Record`] is one row per segment and ACK; [`report`] draws figures.
//! * **Use the command's own parts**: [`run::run`] is `farpace run`.
//!
//! ```
//! use farpace::lab::{Inputs, Run, RunError, scenario::Scenario};
//!
//! let text = r#"
//!     title = "Two hosts"
//!     [hosts.a]
//!     [hosts.b]
//!     [[links]]
//!     name = "wire"
//!     between = ["a", "b"]
//!     rate = "100 Mbit/s"
//!     delay = "5 ms"
//!     [[flows]]
//!     name = "bulk"
//!     from = "a"
//!     to = "b"
//!     size = "1 MB"
//! "#;
//! let scenario = Scenario::parse(text, "two-hosts.toml").unwrap_or_else(|e| panic!("{e}"));
//! let mut run = Run::new(&scenario, Inputs::default())?;
//! while !run.advance(None)?.finished {}
//! let outcome = run.finish()?;
//! assert!(outcome.flows[0].is_intact());
//! println!("{}", outcome.flows[0].goodput());
//! # Ok::<(), RunError>(())
//! ```

#![forbid(unsafe_code)]

pub use farpace_events as events;
pub use farpace_gateway as split;
pub use farpace_host as host;
pub use farpace_lab as lab;
pub use farpace_link as link;
pub use farpace_live as live;
pub use farpace_papers as reproduction;
pub use farpace_path as path;
pub use farpace_report as report;
pub use farpace_study as study;
pub use farpace_tcp as tcp;
pub use farpace_trace as trace;
pub use farpace_units as units;
pub use farpace_wire as wire;

pub mod carrier;
pub mod cc;
pub mod cli;
pub mod completions;
pub mod device;
pub mod doctor;
pub mod emulate;
pub mod exec;
pub mod experiments;
pub mod explain;
mod far_end;
pub mod forward;
pub mod gateway;
pub mod kernel;
pub mod lab_compare;
pub mod lab_grid;
pub mod lab_namespaces;
pub mod man;
pub mod nics;
pub mod notices;
pub mod pacing;
pub mod papers;
pub mod perf;
pub mod profiles;
pub mod realtime;
pub mod run;
pub mod scenario;
pub mod show;
pub mod ss;
pub mod sweep;
pub mod terminal;
pub mod together;
pub mod transfer;
pub mod up;
pub mod version;
pub mod view;
