//! Studies whose runs are made on a cluster: the process that has the folder, and the workers.
//!
//! Start reading at [`RayCluster`], which starts the program that talks to Ray, answers it, and alone writes
//! the study; [`make_runs`] is what a worker does. This crate never prints.

#![forbid(unsafe_code)]

mod error;
mod ray;
mod worker;

pub use error::ClusterError;
pub use ray::{RayCluster, python};
pub use worker::{WorkerLimits, make_runs};
