//! Encrypted ways between two machines, without privileges: a WireGuard tunnel over UDP with farpace's own
//! TCP inside; where UDP does not get through, TLS 1.3 over the kernel's TCP; where that does not either,
//! ssh. And what goes over them: transfers of files, forwarded ports, and throughput tests.
//!
//! Start reading at [`Ticket`]: both ends know where the one that waits is, its keys, and a secret. Nothing
//! here is in the clear but what [`Net`] opens, for `--insecure`. This crate never prints and never ends the
//! process.
//!
//! | concept | file |
//! |---|---|
//! | what both ends know | `ticket`, and `words` where people give one |
//! | the end that waits | `gate` |
//! | the end that comes: all ways probed at once | `reach` |
//! | several UDP paths | `paths` |
//! | a far end that ssh starts | `ssh`, `control`: what it says first, and `beside`: what ends with it |
//! | one TLS stream | `tls` |
//! | connections in the clear | `stack` |
//! | what limits a connection | `probe` |
//! | how a transfer goes, in words | `going`; outages of a tunnel: `outage` |
//! | services | `server` for transfers, `forward`, `perf` |
//! | one forwarded connection | `relay` |

#![forbid(unsafe_code)]

mod beside;
mod control;
pub mod forward;
mod gate;
mod going;
pub mod identity;
mod outage;
mod own_addresses;
mod paths;
pub mod perf;
mod probe;
mod quantity;
mod reach;
mod relay;
pub mod server;
mod serving;
pub mod shell_words;
mod ssh;
mod stack;
pub mod target;
mod ticket;
mod tls;
mod words;

pub use beside::beside_ssh;
pub use control::{Greeting, NoFarEnd, greeting, hear_word, open_gate, serve_near_end};
pub use gate::{Gate, GateArgs};
pub use going::going;
pub use outage::{OutageNews, OutageWatch};
pub use own_addresses::list as own_addresses;
pub use paths::Via;
pub use probe::{Explanation, PathFacts, TransferProbe, Watcher, explain};
pub use quantity::{LinkRates, size, speed};
pub use reach::{Carrier, CarrierChoice, ReachedEnd, reach};
pub use ssh::{SshEnd, SshProgram};
pub use stack::{
    CONNECT_TIME, DEFAULT_PORT, Net, TransferListener, TransferStream, host_and_port, named_at, neighbour,
};
pub use ticket::{Ticket, TicketError, TicketIdentity, TicketPlace};
pub use words::{hide_words, ticket_of};

use farpace_live::socket::{SocketOptions, Stream};
use farpace_transfer::FramedStream;
use farpace_units::Span;
use std::net::Shutdown;
use std::time::Duration;

/// What the end that waits does for the other. In the tunnel each is a TCP port, in TLS a protocol name
/// (ALPN).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Service {
    /// Files.
    Transfer,
    /// Connections on to other hosts.
    Forward,
    /// Throughput.
    Perf,
    /// More paths for the tunnel; in tunnels alone.
    Paths,
}

impl Service {
    /// All that TLS may carry.
    pub const ALL: [Service; 3] = [Service::Transfer, Service::Forward, Service::Perf];

    /// Its port inside a tunnel.
    pub const fn port(self) -> u16 {
        match self {
            Service::Transfer => 7_077,
            Service::Forward => 7_078,
            Service::Perf => 7_079,
            Service::Paths => 7_080,
        }
    }
    /// Its name in TLS.
    pub const fn protocol(self) -> &'static [u8] {
        match self {
            Service::Transfer => b"farpace-transfer/2",
            Service::Forward => b"farpace-forward/2",
            Service::Perf => b"farpace-perf/1",
            Service::Paths => b"farpace-paths/1",
        }
    }
}

/// How long a stream waits for the peer to acknowledge the rest when it is closed.
const LINGER: Duration = Duration::from_secs(5);
/// A peer that has been silent for longer is not waited for.
const MAX_LINGERED: Span = Span::from_millis(1_000);

/// A stream to a service, encrypted.
pub struct SecureStream {
    /// Its two directions.
    pub line: FramedStream,
    /// Ends our direction alone: the other end reads to the end of what was written.
    pub finish: Box<dyn Fn() + Send + Sync>,
    /// Who is there.
    pub peer: String,
    /// Where to look how it goes.
    pub probe: TransferProbe,
}

impl SecureStream {
    /// A connection of farpace's stack.
    fn of_stream(stream: Stream) -> SecureStream {
        let peer = stream.peer_addr().map_or("?".to_owned(), |peer| peer.to_string());
        // All that was written is to arrive before the stack goes.
        stream.set_linger(Some(LINGER));
        let (reader, closer, finisher) = (stream.clone(), stream.clone(), stream.clone());
        let close = move || {
            // Data that comes in order does not count as an acknowledgment.
            let silence = closer.inspect().map(|it| it.details.since_heard.min(it.details.since_data));
            if silence.is_ok_and(|silence| silence > MAX_LINGERED) {
                closer.set_linger(Some(Duration::ZERO));
            }
            let _ = closer.shutdown(Shutdown::Both);
            closer.interrupt();
        };
        let finish = move || drop(finisher.shutdown(Shutdown::Write));
        let probe = TransferProbe::Farpace(stream.clone());
        let line =
            FramedStream { reader: Box::new(reader), writer: Box::new(stream), close: Box::new(close) };
        SecureStream { line, finish: Box::new(finish), peer, probe }
    }
}

/// How connections inside a tunnel are to be, if nothing else is said.
fn inside(options: &SocketOptions) -> SocketOptions {
    options.clone().nodelay(true)
}
