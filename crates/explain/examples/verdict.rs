//! The verdict on the largest transfer of each capture that is named: what the library is for, in a few
//! lines.

use farpace_explain::{diagnose, input};
use std::error::Error;
use std::fs::File;

fn main() -> Result<(), Box<dyn Error>> {
    for name in std::env::args().skip(1) {
        let (source, _) = input::open(File::open(&name)?)?;
        let capture = input::read(source)?;
        let Some(flow) = capture.flows.iter().max_by_key(|f| f.packets) else {
            println!("{name}: no TCP");
            continue;
        };
        let d = diagnose(flow, flow.sender());
        println!(
            "{name}: {} ({:.0} %), captured at the {}, {:.3} s, {}, control {} ({:.2})",
            d.dominant.id(),
            d.share_of(d.dominant) * 100.0,
            d.vantage.name(),
            d.duration().as_secs_f64(),
            if d.healthy { "healthy" } else { "not healthy" },
            d.control.name,
            d.control.confidence
        );
        for share in &d.shares {
            println!("    {:22} {:8.3} s", share.cause.id(), share.time.as_secs_f64());
        }
        for finding in &d.findings {
            println!("  * {} {:.2}: {}", finding.cause.id(), finding.confidence, finding.evidence);
        }
    }
    Ok(())
}
