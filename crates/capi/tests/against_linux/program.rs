//! What is played to both stacks: calls of a program, segments of a peer, errors of the network, and when.
//!
//! All numbers are relative: `seq` counts from the peer's initial number, `ack` and SACK blocks from that of
//! the stack, so that a program means the same to both.

use std::collections::BTreeMap;

/// A program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// Switches of TCP (`net.ipv4.*`), where they differ from the defaults.
    pub switches: BTreeMap<String, String>,
    /// Congestion control of all sockets.
    pub congestion: String,
    pub steps: Vec<Step>,
    /// How long both are watched after the last step, in ms.
    pub quiet: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// In microseconds, from the beginning.
    pub at: u64,
    pub what: Action,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    Call(Call),
    Segment(Segment),
    Icmp(Icmp),
}

/// A call on the socket in `slot`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub slot: u8,
    /// It may wait, while the rest goes on.
    pub blocking: bool,
    pub op: Op,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    Socket,
    Bind(u16),
    Listen(i32),
    /// Of the listener in that slot; the new socket gets the slot of the call.
    Accept(u8),
    /// To the peer's port of that connection.
    Connect(u8),
    Send(u32, Flags),
    Recv(u32, Flags),
    Shutdown(How),
    Close,
    /// `close` with SO_LINGER of so many seconds.
    Set(&'static SocketOption, Value),
    Get(&'static SocketOption),
    /// What poll(2) shows.
    Poll,
    /// TCP_INFO.
    Info,
    Ioctl(Ioctl),
    LocalName,
    PeerName,
}

/// MSG_*
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub i32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Read,
    Write,
    Both,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ioctl {
    InQueue,
    OutQueue,
    OutQueueUnsent,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Int(i32),
    /// `struct linger`
    Linger(i32, i32),
    /// `struct timeval`, in ms.
    Millis(u32),
    Name(String),
}

/// The form of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Int,
    Linger,
    Timeval,
    Name,
}

#[derive(Debug, PartialEq, Eq)]
pub struct SocketOption {
    pub name: &'static str,
    pub level: i32,
    pub number: i32,
    pub form: Form,
}

const fn option(name: &'static str, level: i32, number: i32, form: Form) -> SocketOption {
    SocketOption { name, level, number, form }
}

const SOL: i32 = nix::libc::SOL_SOCKET;
const TCP: i32 = nix::libc::IPPROTO_TCP;
const IP: i32 = nix::libc::IPPROTO_IP;

/// All that programs may use.
pub static OPTIONS: &[SocketOption] = &[
    option("SO_REUSEADDR", SOL, 2, Form::Int),
    option("SO_TYPE", SOL, 3, Form::Int),
    option("SO_ERROR", SOL, 4, Form::Int),
    option("SO_SNDBUF", SOL, 7, Form::Int),
    option("SO_RCVBUF", SOL, 8, Form::Int),
    option("SO_KEEPALIVE", SOL, 9, Form::Int),
    option("SO_OOBINLINE", SOL, 10, Form::Int),
    option("SO_LINGER", SOL, 13, Form::Linger),
    option("SO_RCVLOWAT", SOL, 18, Form::Int),
    option("SO_RCVTIMEO", SOL, 20, Form::Timeval),
    option("SO_SNDTIMEO", SOL, 21, Form::Timeval),
    option("SO_ACCEPTCONN", SOL, 30, Form::Int),
    option("TCP_NODELAY", TCP, 1, Form::Int),
    option("TCP_MAXSEG", TCP, 2, Form::Int),
    option("TCP_CORK", TCP, 3, Form::Int),
    option("TCP_KEEPIDLE", TCP, 4, Form::Int),
    option("TCP_KEEPINTVL", TCP, 5, Form::Int),
    option("TCP_KEEPCNT", TCP, 6, Form::Int),
    option("TCP_SYNCNT", TCP, 7, Form::Int),
    option("TCP_LINGER2", TCP, 8, Form::Int),
    option("TCP_DEFER_ACCEPT", TCP, 9, Form::Int),
    option("TCP_WINDOW_CLAMP", TCP, 10, Form::Int),
    option("TCP_QUICKACK", TCP, 12, Form::Int),
    option("TCP_CONGESTION", TCP, 13, Form::Name),
    option("TCP_USER_TIMEOUT", TCP, 18, Form::Int),
    option("TCP_NOTSENT_LOWAT", TCP, 25, Form::Int),
    option("TCP_INQ", TCP, 36, Form::Int),
    option("TCP_RTO_MAX_MS", TCP, 44, Form::Int),
    option("TCP_RTO_MIN_US", TCP, 45, Form::Int),
    option("TCP_DELACK_MAX_US", TCP, 46, Form::Int),
    option("IP_TOS", IP, 1, Form::Int),
    option("IP_TTL", IP, 2, Form::Int),
    option("IP_MTU_DISCOVER", IP, 10, Form::Int),
    option("IP_RECVERR", IP, 11, Form::Int),
    option("IP_MTU", IP, 14, Form::Int),
];

pub fn named(name: &str) -> Option<&'static SocketOption> {
    OPTIONS.iter().find(|o| o.name == name)
}

/// Header flags, FIN first.
pub const FIN: u16 = 0x001;
pub const SYN: u16 = 0x002;
pub const RST: u16 = 0x004;
pub const PSH: u16 = 0x008;
pub const ACK: u16 = 0x010;
pub const URG: u16 = 0x020;
pub const ECE: u16 = 0x040;
pub const CWR: u16 = 0x080;
pub const AE: u16 = 0x100;

/// A segment from the peer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Which connection: it is the peer's port.
    pub conn: u8,
    pub flags: u16,
    /// The SYN is 0, the first byte 1.
    pub seq: i64,
    /// The stack's SYN is 0, its first byte 1.
    pub ack: i64,
    pub len: u32,
    pub window: u16,
    pub urgent: u16,
    pub mss: Option<u16>,
    pub wscale: Option<u8>,
    pub sackok: bool,
    pub ts: Option<(u32, Echo)>,
    pub sack: Vec<(i64, i64)>,
    /// The two bits of ECN in the IP header.
    pub ecn: u8,
}

/// What TSecr is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Echo {
    /// The newest timestamp that was sent at least so long ago (ms).
    Age(u32),
    /// That of the n-th time that a segment beginning there was sent; the newest, if there is none.
    Of(i64, u8),
    /// This number.
    Raw(u32),
    /// The newest, and so much.
    Off(i32),
}

/// An ICMP error that quotes a segment of the stack which begins at `seq`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Icmp {
    pub conn: u8,
    pub kind: u8,
    pub code: u8,
    /// Next-hop MTU, of "fragmentation needed".
    pub mtu: u16,
    pub seq: i64,
}

impl Program {
    /// How long it takes, in microseconds.
    pub fn duration(&self) -> u64 {
        self.steps.last().map_or(0, |s| s.at) + self.quiet * 1000
    }
}
