//! The lab compared with real time over a grid of paths.
//!
//! A grid is a list of points (`points`); a point (`point`) is a path with one bottleneck and a
//! congestion control, and becomes a scenario. Each point is run in the lab and in real time with the same
//! seeds, until the ratio of the goodputs has a narrow interval (`judge`). Every run is kept in a journal
//! (`journal`), so that an interrupted grid continues. `measure` makes the runs, `show` has the
//! table, the page and JSON.

mod journal;
mod judge;
mod measure;
mod point;
mod points;
mod record;
mod show;

pub use journal::{GridJournal, GridKept};
pub use judge::{GridRules, GridTally, GridVerdict, MAX_STALL_COST, NextGridRun, left, next_run, tally};
pub use measure::{GridObserver, GridPlan, GridProgress, measure};
pub use point::{GridPoint, GridQueue};
pub use points::{FULL, QUICK, parse};
pub use record::GridRun;
pub use show::GridResults;
