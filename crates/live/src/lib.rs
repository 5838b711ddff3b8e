//! Real time: the engine, pacing and path elements of the lab on real devices of Linux.
//!
//! Start reading at [`Driver`]: a thread that runs a world and its devices. [`Device`] is a source and sink
//! of packets. [`Handle`] gives other threads access to the host of the world. [`socket`] provides sockets
//! for programs.
//!
//! This crate may read clocks, wait and start threads; the crates below it may not. It never knows scenarios,
//! and never waits for one event while another is due.

#![allow(clippy::disallowed_methods, reason = "this is where real time and threads are")]

mod capture;
mod clock;
mod control;
pub mod device;
pub mod doctor;
mod driver;
mod host_account;
mod host_addresses;
mod kernel_tcp;
mod lateness;
mod private_file;
mod process;
mod shared_words;
pub mod socket;
mod stall_debt;
mod stall_log;
pub mod system;
mod tunnel_paths;

pub use capture::{LiveCapture, LiveCaptureError};
pub use clock::Clock;
pub use control::{
    ControlError, ControlSocket, FoundHost, MAX_ANSWER, MAX_HOSTS, folder as control_folder, hosts,
};
pub use device::{Device, DeviceCounters, DeviceError, DeviceInfo};
pub use driver::{Driver, DriverError, Ended, Handle, HostJob, Stats, Wait};
pub use host_account::HostAccount;
pub use host_addresses::{
    AddressError, InterfacePrefix, broadcast_of, check_addresses, check_not_own, kernel_addresses, prefix,
};
pub use kernel_tcp::{KernelTcp, connect_kernel};
pub use lateness::Lateness;
pub use private_file::{PrivateFileError, read_private, write_private};
pub use process::{Process, leave_terminal, make_room_for_descriptors, sharpen_timers};
pub use shared_words::SharedWords;
pub use stall_debt::MAX_STALL_DEBT;
pub use system::{Namespace, default_memory};
pub use tunnel_paths::{MAX_TUNNEL_PATHS, add_paths, path_framing, stack_over_paths};
