//! Real time: the engine, pacing and path elements that the lab runs in virtual time, on real devices of Linux.
//!
//! Start reading at [`Driver`]: one thread, one world, its devices. [`Device`] is what packets come from and go to;
//! [`Handle`] is how other threads reach the host in the world. [`socket`] has sockets for programs on top of it.
//!
//! This crate may read clocks, wait and have threads; nothing below it does. It never knows scenarios, and never waits for one
//! thing while another is due.

#![allow(clippy::disallowed_methods, reason = "this is where real time and threads are")]

mod capture;
mod clock;
mod control;
pub mod device;
mod driver;
mod kernel_tcp;
mod lateness;
mod process;
pub mod socket;
pub mod system;
mod tunnel_paths;

pub use capture::{LiveCapture, LiveCaptureError};
pub use clock::Clock;
pub use control::{
    ControlError, ControlSocket, FoundHost, MAX_ANSWER, MAX_HOSTS, folder as control_folder, hosts,
};
pub use device::{Device, DeviceCounters, DeviceError, DeviceInfo};
pub use driver::{Driver, DriverError, Ended, Handle, HostJob, Stats, Wait};
pub use kernel_tcp::{KernelTcp, connect_kernel};
pub use lateness::Lateness;
pub use process::{Process, leave_terminal, sharpen_timers};
pub use system::{Namespace, default_memory};
pub use tunnel_paths::{MAX_TUNNEL_PATHS, path_framing, stack_over_paths};
