//! Limits on everything that hosts on either side control. Beyond a limit a connection passes unsplit: it
//! works as without a gateway.

use farpace_units::{ByteCount, Span};

/// Connections at most that wait for the answer of the far host, or for the end of the handshake.
pub const MAX_HALF_OPEN: usize = 16_384;
/// Split connections at most.
pub const MAX_CONNECTIONS: usize = 262_144;
/// Repetitions of a SYN on the far leg. The opener repeats its own SYN, which begins anew after that.
pub const SYN_RETRIES: u32 = 3;
/// Bytes at most that a leg keeps in each direction, unless the policy says otherwise.
pub const DEFAULT_BUFFER: ByteCount = ByteCount::new(64 << 20);
/// Least buffer of a policy.
pub const MIN_BUFFER: ByteCount = ByteCount::new(64 << 10);
/// Largest buffer of a policy: a window of RFC 7323 has no more.
pub const MAX_BUFFER: ByteCount = ByteCount::new(1 << 30);
/// Memory of all connections, unless the configuration says otherwise.
pub const DEFAULT_MEMORY: ByteCount = ByteCount::new(1 << 30);
/// Least memory of all connections.
pub const MIN_MEMORY: ByteCount = ByteCount::new(1 << 20);
/// Rules of a policy table at most.
pub const MAX_RULES: usize = 1024;
/// Connections with a smaller MSS pass: splitting them would cost more than it gains.
pub const MIN_MSS: u16 = 216;
/// Round trips of the handshake below this are short: such connections pass, unless the policy says
/// otherwise.
pub const DEFAULT_MIN_RTT: Span = Span::from_millis(5);
/// A leg whose host is silent for so long is probed, ...
pub const KEEP_ALIVE_IDLE: Span = Span::from_secs(600);
/// ... again after this time without an answer, ...
pub const KEEP_ALIVE_INTERVAL: Span = Span::from_secs(75);
/// ... and the connection ends after so many probes without an answer.
pub const KEEP_ALIVE_PROBES: u32 = 9;
/// Prefixes behind one gateway of a pair at most: each is a routing rule for each interface.
pub const MAX_SITE_PREFIXES: usize = 64;
