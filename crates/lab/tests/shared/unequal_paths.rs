//! Scenarios of one connection over several unequal paths, for the test that compares them with the best path
//! alone and for the benchmark `multipath`, which includes this file.

use std::fmt::Write as _;

/// A path: a NIC at each end and the link between them.
#[derive(Clone, Debug)]
pub struct UnequalPath {
    /// Rate in kbit/s.
    pub kbit: u64,
    /// One-way delay.
    pub delay_us: u64,
    /// Greatest jitter from `a` to `b`.
    pub jitter_us: u64,
    /// Loss from `a` to `b`, 0 to 1.
    pub loss: f64,
    /// Packets.
    pub queue: u64,
    /// The narrow link is behind a NIC of 1 Gbit/s and a switch, so that its rate must be measured.
    pub behind: bool,
}

impl UnequalPath {
    /// Its links in the scenario.
    fn links(&self, n: usize) -> String {
        let UnequalPath { kbit, delay_us, jitter_us, loss, queue, behind } = self;
        let mut text = String::new();
        let mut from = "a".to_owned();
        if *behind {
            from = format!("s{n}");
            text = format!(
                "[switches.{from}]\n\
                 [[links]]\nname = \"c{n}\"\nbetween = [\"a\", \"{from}\"]\n\
                 rate = \"1 Gbit/s\"\ndelay = \"1 us\"\n"
            );
        }
        let _ = write!(
            text,
            "[[links]]\nname = \"w{n}\"\nbetween = [\"{from}\", \"b\"]\n\
             rate = \"{kbit} kbit/s\"\ndelay = \"{delay_us} us\"\nqueue = \"{queue} packets\"\n\
             [links.forward]\nloss = {loss:.6}\njitter = \"{jitter_us} us\"\n"
        );
        text
    }
}

/// A scenario in which host `a` sends to `b` by these paths: 10 kB at first, by which the hosts get to know
/// each other, and after a second flow `bulk` without an end, for `seconds`. `hosts` is the text of both
/// hosts, behind other keys of the scenario; `sender` is the inner text of the sender of `bulk`, and `buffer`
/// the size of its buffers.
pub fn scenario(paths: &[UnequalPath], seconds: u64, hosts: &str, sender: &str, buffer: &str) -> String {
    let links: String = paths.iter().enumerate().map(|(n, path)| path.links(n)).collect();
    format!(
        "title = \"unequal paths\"\nduration = \"{} s\"\n{hosts}\n{links}\
         [[flows]]\nname = \"first\"\nfrom = \"a\"\nto = \"b\"\nsize = \"10 kB\"\n\
         [[flows]]\nname = \"bulk\"\nfrom = \"a\"\nto = \"b\"\nsize = \"20 GB\"\nstart = \"1 s\"\n\
         sender = {{ {sender}send_buffer = \"{buffer}\" }}\n\
         receiver = {{ receive_buffer = \"{buffer}\" }}\n",
        seconds + 1
    )
}
