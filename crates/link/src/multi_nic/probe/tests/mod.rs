//! Probing on a model of paths, in virtual time.

mod liveness;
mod model;
mod rates;

use farpace_units::{Rate, Span};
use model::{Model, ModelPath};

const G: Rate = Rate::from_mbit(1_000);

fn ms(n: u64) -> Span {
    Span::from_millis(n)
}
/// A NIC of 1 Gbit/s before a path of `mbit` Mbit/s with a one-way delay of `one_way` milliseconds.
fn modem(mbit: u64, one_way: u64) -> ModelPath {
    ModelPath::new(G, Rate::from_mbit(mbit), ms(one_way))
}
