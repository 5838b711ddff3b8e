//! The satellite path of the paper on TCP-STAR, with one or two flows.

use super::Contender;
use anyhow::{Result, anyhow};
use farpace_lab::scenario::Scenario;
use farpace_units::{ByteCount, Span};
use std::fmt;

/// One sender, one receiver; `farpace run` takes the file as well.
pub const ONE: &str = include_str!("../../../../scenarios/papers/satellite.toml");
/// Two senders behind one satellite router.
pub const TWO: &str = include_str!("../../../../scenarios/papers/satellite-two.toml");

/// Payload of a full segment.
pub const SEGMENT: ByteCount = ByteCount::new(1448);
/// The bandwidth-delay product, which is also the limit of both windows.
pub const WINDOW: ByteCount = ByteCount::new(625_000);

/// Bit error rate of the satellite link, on the way of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ber {
    /// Error free.
    Zero,
    /// 1e-8: a clear sky.
    E8,
    /// 1e-7.
    E7,
    /// 1e-6.
    E6,
    /// 1e-5: a typhoon.
    E5,
}

impl Ber {
    /// All of the paper, from good to bad.
    pub const ALL: [Ber; 5] = [Ber::Zero, Ber::E8, Ber::E7, Ber::E6, Ber::E5];

    /// As people write it.
    pub const fn name(self) -> &'static str {
        match self {
            Ber::Zero => "0",
            Ber::E8 => "1e-8",
            Ber::E7 => "1e-7",
            Ber::E6 => "1e-6",
            Ber::E5 => "1e-5",
        }
    }

    /// As an override of the scenario. Each packet is lost by its length: of 1500 bytes, 1 - (1 - BER)^12000.
    fn set(self) -> (String, String) {
        let value = if self == Ber::Zero { "0.0" } else { self.name() };
        ("links.satellite.forward.bit_errors".to_owned(), value.to_owned())
    }
}

/// Queue of the satellite router.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Queue {
    /// The emulator's of the single flow: the windows keep it below 625 kB.
    Unlimited,
    /// 625 kB: hardly any congestion.
    Large,
    /// 15 kB: heavy congestion.
    Small,
}

impl Queue {
    /// The two of the paper.
    pub const ROUTER: [Queue; 2] = [Queue::Large, Queue::Small];

    /// As a scenario writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Queue::Unlimited => "10000 packets",
            Queue::Large => "625 kB",
            Queue::Small => "15 kB",
        }
    }
}

/// One cell of the grid: who sends over which link.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Satellite {
    /// The senders, one or two. (More than two count as two.)
    pub senders: Vec<Contender>,
    /// Bit errors.
    pub ber: Ber,
    /// The router's queue.
    pub queue: Queue,
    /// All ACKs are lost for a second, after three quarters of the time.
    pub blackout: bool,
    /// Rate of the link between each sender and the router, in Mbit/s.
    pub access: u32,
}

/// The usual rate of access links, in Mbit/s.
pub const ACCESS: u32 = 1_000;

impl Satellite {
    /// A single flow, as in the paper's first testbed.
    pub fn single(sender: Contender, ber: Ber) -> Satellite {
        Satellite { senders: vec![sender], ber, queue: Queue::Unlimited, blackout: false, access: ACCESS }
    }

    /// Two flows through a router.
    pub fn pair(first: Contender, second: Contender, ber: Ber, queue: Queue) -> Satellite {
        Satellite { senders: vec![first, second], ber, queue, blackout: false, access: ACCESS }
    }

    /// True if the seed has no effect: nothing is drawn, and no second flow starts at a time of its own.
    pub fn is_certain(&self) -> bool {
        self.ber == Ber::Zero && self.senders.len() < 2
    }

    /// When the ACKs begin to be lost in a run of `time`.
    pub fn blackout_at(time: Span) -> Span {
        time / 4 * 3
    }

    /// The scenario with one seed (from 1), run for `time`, with `set` on top.
    ///
    /// # Errors
    /// What `set` or a sender's settings make impossible.
    pub fn scenario(&self, seed: u64, time: Span, set: &[(String, String)]) -> Result<Scenario> {
        let two = self.senders.len() > 1;
        let (text, name, flows, links): (_, _, &[&str], &[&str]) = if two {
            (TWO, "scenarios/papers/satellite-two.toml", &["first", "second"], &["left", "right"])
        } else {
            (ONE, "scenarios/papers/satellite.toml", &["bulk"], &["access"])
        };
        let key = |key: &str, value: String| (key.to_owned(), value);
        let mut all = vec![
            key("seed", seed.to_string()),
            key("duration", time.to_string()),
            key("links.satellite.queue", self.queue.name().to_owned()),
            self.ber.set(),
        ];
        if self.blackout {
            let at = Satellite::blackout_at(time);
            all.push(key(
                "links.satellite.backward.outages",
                format!("[{{ at = \"{at}\", lasts = \"1 s\" }}]"),
            ));
        }
        if two {
            // Runs at a bit error rate of 0 differ in this alone.
            all.push(key("flows.second.start", format!("{} ms", seed.saturating_sub(1) % 100 * STEP_MS)));
        }
        for link in links {
            all.push((format!("links.{link}.rate"), format!("{} Mbit/s", self.access)));
        }
        for (flow, sender) in flows.iter().zip(&self.senders) {
            all.extend(sender.overrides(flow));
        }
        all.extend(set.iter().cloned());
        Scenario::parse_with(text, name, &all).map_err(|e| anyhow!("{e}"))
    }
}

/// From seed to seed the second flow starts so much later.
const STEP_MS: u64 = 37;

impl fmt::Display for Satellite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.senders.iter().map(|s| s.name.as_str()).collect();
        write!(f, "{}, BER {}", names.join(" beside "), self.ber.name())?;
        if self.queue != Queue::Unlimited {
            write!(f, ", queue {}", self.queue.name())?;
        }
        if self.access != ACCESS {
            write!(f, ", access {} Mbit/s", self.access)?;
        }
        if self.blackout { write!(f, ", ACKs lost") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_tcp::config::Congestion;

    const TIME: Span = Span::from_secs(60);

    /// Breaks: a cell of the grid is refused by the scenario reader, in the middle of a long measurement.
    #[test]
    fn every_cell_has_a_scenario() {
        let all = [Contender::paper("star"), Contender::star("tsw", None, Some("2"))];
        for sender in Contender::all_modern().into_iter().chain(all) {
            for ber in Ber::ALL {
                let mut cells = vec![Satellite::single(sender.clone(), ber)];
                cells[0].blackout = true;
                cells.extend(Queue::ROUTER.map(|q| Satellite::pair(sender.clone(), sender.clone(), ber, q)));
                for cell in cells {
                    let scenario = cell.scenario(3, TIME, &[]).unwrap_or_else(|e| panic!("{cell}: {e}"));
                    assert!(scenario.flows.iter().all(|f| f.sender.resolve().is_ok()), "{cell}");
                }
            }
        }
    }

    /// Breaks: the path is not the paper's: round trip, bandwidth-delay product, sizes, window limits, and which
    /// direction loses what when.
    #[test]
    fn the_path_is_the_papers() {
        let mut cell = Satellite::single(Contender::paper("reno"), Ber::E5);
        cell.blackout = true;
        let one = cell.scenario(1, TIME, &[]).unwrap();
        let flow = &one.flows[0];
        let segment = one.segment(flow);
        assert_eq!((segment.payload, segment.ip), (SEGMENT, ByteCount::new(1500)));
        let rtt = one.base_rtt(flow);
        assert!(rtt >= Span::from_millis(500) && rtt < Span::from_millis(502), "{rtt}");
        let config = flow.sender.resolve().unwrap();
        assert_eq!(config.congestion, Congestion::Reno);
        assert!(config.send_buffer.max.get() > 2 * WINDOW.get(), "it limits what is in flight");
        assert_eq!(flow.receiver.resolve().unwrap().receive_buffer.max, WINDOW);
        let link = &one.links[1];
        assert_eq!((link.forward.outages.0.len(), link.backward.outages.0.len()), (0, 1));
        assert_eq!((link.backward.outages.0[0].at, link.backward.bit_errors.0), (Span::from_secs(45), 0.0));
        assert_eq!(link.forward.bit_errors.0, 1e-5);
        let star = Contender::paper("star");
        let two =
            Satellite::pair(star.clone(), star, Ber::Zero, Queue::Small).scenario(2, TIME, &[]).unwrap();
        assert!(two.base_rtt(&two.flows[1]) < Span::from_millis(503));
        assert_eq!(two.flows[1].start, Span::from_millis(STEP_MS));
    }

    /// Breaks: cells whose outcome the seed changes are run once only.
    #[test]
    fn only_what_is_certain_is_run_once() {
        let star = Contender::paper("star");
        assert!(Satellite::single(star.clone(), Ber::Zero).is_certain());
        assert!(!Satellite::single(star.clone(), Ber::E8).is_certain());
        assert!(!Satellite::pair(star.clone(), star, Ber::Zero, Queue::Large).is_certain());
    }
}
