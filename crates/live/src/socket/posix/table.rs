//! The socket options in one table: names, numbers, valid values, effects.
//!
//! getsockopt(2) and setsockopt(2) ([`get`](super::get), [`set`](super::set)), the inheritance of accepted
//! sockets, the table in docs/sockets.md and the tests against the kernel are derived from it.

use nix::errno::Errno;

/// SOL_SOCKET, IPPROTO_IP, IPPROTO_IPV6, IPPROTO_TCP, IPPROTO_UDP.
pub const SOCKET: i32 = 1;
pub const IP: i32 = 0;
pub const IPV6: i32 = 41;
pub const TCP: i32 = 6;
pub const UDP: i32 = 17;
/// The level of options that do not exist in Linux.
pub const FARPACE: i32 = 0x4650;

/// The sockets that have an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// TCP and UDP.
    All,
    /// TCP only.
    Stream,
    /// UDP only.
    Datagram,
}

/// How setsockopt(2) handles an `int`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOption {
    /// Read-only: ENOPROTOOPT.
    Never,
    /// Zero, or one for any other value.
    Flag,
    /// Stored unchanged.
    Any,
    /// Stored unchanged within these limits; otherwise EINVAL.
    Within(i32, i32),
    /// Always this error.
    Fails(Errno),
    /// By its own rule in `set.rs`.
    Special,
}

/// The result of getsockopt(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Get {
    /// Not readable: ENOPROTOOPT (EOPNOTSUPP outside of SOL_SOCKET, as in Linux).
    Never,
    /// An `int`: the set value, or the default.
    Stored,
    /// Always this error.
    Fails(Errno),
    /// By its own rule in `get.rs`.
    Special,
}

/// The effect of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionEffect {
    /// The same effect as in Linux.
    Linux,
    /// The value is stored and reported, without effect.
    Kept,
    /// It is not supported, and fails as in Linux without privileges.
    Fails,
}

/// An option.
#[derive(Clone, Copy, Debug)]
pub struct OptionRow {
    /// The option.
    pub option: Opt,
    /// Its name in C.
    pub name: &'static str,
    /// Its level.
    pub level: i32,
    /// Its number.
    pub number: i32,
    /// The sockets that have it.
    pub of: Of,
    /// How it is set.
    pub set: SetOption,
    /// How it is read.
    pub get: Get,
    /// The default value.
    pub default: i32,
    /// Accepted sockets inherit the value of their listener.
    pub inherited: bool,
    /// Its effect.
    pub effect: OptionEffect,
    /// A note for the documentation.
    pub note: &'static str,
}

macro_rules! options {
    ($($option:ident $name:literal $level:ident $number:literal $of:ident, $set:expr, $get:expr, $default:expr, $inherited:ident, $effect:ident $note:literal;)*) => {
        /// The options by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[allow(missing_docs, reason = "the manual pages explain them, under the names in the table")]
        pub enum Opt { $($option),* }

        /// All options.
        pub const OPTIONS: &[OptionRow] = {
            use Errno::*;
            use Get::{Never as NoGet, Special as Own, Stored};
            use SetOption::{Any, Fails, Flag, Never, Special, Within};
            const fn get_fails(error: Errno) -> Get { Get::Fails(error) }
            const fn inherits(word: Inherit) -> bool { matches!(word, Inherit::Child) }
            #[allow(dead_code, reason = "not every table uses both")]
            enum Inherit { Child, Alone }
            &[$(OptionRow {
                option: Opt::$option, name: $name, level: $level, number: $number, of: Of::$of, set: $set, get: $get,
                default: $default, inherited: inherits(Inherit::$inherited), effect: OptionEffect::$effect, note: $note,
            }),*]
        };
    };
}

options! {
    // Option, name, level, number, sockets; set; get; default; whether an accepted socket inherits it;
    // effect; note.
    Debug "SO_DEBUG" SOCKET 1 All, Flag, Stored, 0, Child, Kept "";
    ReuseAddress "SO_REUSEADDR" SOCKET 2 All, Flag, Stored, 0, Child, Linux "";
    Type "SO_TYPE" SOCKET 3 All, Never, Own, 0, Child, Linux "";
    Error "SO_ERROR" SOCKET 4 All, Never, Own, 0, Alone, Linux "";
    DontRoute "SO_DONTROUTE" SOCKET 5 All, Flag, Stored, 0, Child, Kept "";
    Broadcast "SO_BROADCAST" SOCKET 6 All, Flag, Stored, 0, Child, Kept "";
    SendBuffer "SO_SNDBUF" SOCKET 7 All, Special, Own, 0, Child, Linux "at most 1 GiB after doubling";
    ReceiveBuffer "SO_RCVBUF" SOCKET 8 All, Special, Own, 0, Child, Linux "at most 1 GiB after doubling";
    KeepAlive "SO_KEEPALIVE" SOCKET 9 All, Flag, Stored, 0, Child, Linux "";
    OobInline "SO_OOBINLINE" SOCKET 10 All, Flag, Stored, 0, Child, Linux "";
    NoCheck "SO_NO_CHECK" SOCKET 11 All, Flag, Stored, 0, Child, Kept "";
    Priority "SO_PRIORITY" SOCKET 12 All, Any, Stored, 0, Child, Kept "";
    Linger "SO_LINGER" SOCKET 13 All, Special, Own, 0, Child, Linux "";
    BsdCompat "SO_BSDCOMPAT" SOCKET 14 All, Special, Stored, 0, Child, Kept "always 0, as in Linux";
    ReusePort "SO_REUSEPORT" SOCKET 15 All, Flag, Stored, 0, Child, Linux "";
    PassCred "SO_PASSCRED" SOCKET 16 All, Fails(EOPNOTSUPP), get_fails(EOPNOTSUPP), 0, Child, Linux "";
    PeerCred "SO_PEERCRED" SOCKET 17 All, Never, Own, 0, Child, Linux "nobody's";
    ReceiveLow "SO_RCVLOWAT" SOCKET 18 All, Special, Stored, 1, Child, Linux "";
    SendLow "SO_SNDLOWAT" SOCKET 19 All, Never, Stored, 1, Child, Linux "";
    ReceiveTimeout "SO_RCVTIMEO" SOCKET 20 All, Special, Own, 0, Child, Linux "";
    SendTimeout "SO_SNDTIMEO" SOCKET 21 All, Special, Own, 0, Child, Linux "";
    BindToDevice "SO_BINDTODEVICE" SOCKET 25 All, Special, Own, 0, Child, Fails "ENODEV: no device of the \
                                                                                 kernel carries the host's \
                                                                                 packets";
    AttachFilter "SO_ATTACH_FILTER" SOCKET 26 All, Special, Own, 0, Child, Fails "EOPNOTSUPP";
    DetachFilter "SO_DETACH_FILTER" SOCKET 27 All, Fails(ENOENT), NoGet, 0, Child, Linux "there is none";
    PeerName "SO_PEERNAME" SOCKET 28 All, Never, Own, 0, Alone, Linux "";
    Timestamp "SO_TIMESTAMP" SOCKET 29 All, Special, Own, 0, Child, Linux "";
    AcceptConn "SO_ACCEPTCONN" SOCKET 30 All, Never, Own, 0, Alone, Linux "";
    SendBufferForce "SO_SNDBUFFORCE" SOCKET 32 All, Special, NoGet, 0, Child, Linux "";
    ReceiveBufferForce "SO_RCVBUFFORCE" SOCKET 33 All, Special, NoGet, 0, Child, Linux "";
    PassSec "SO_PASSSEC" SOCKET 34 All, Fails(EOPNOTSUPP), get_fails(EOPNOTSUPP), 0, Child, Linux "";
    TimestampNs "SO_TIMESTAMPNS" SOCKET 35 All, Special, Own, 0, Child, Linux "";
    Mark "SO_MARK" SOCKET 36 All, Fails(EPERM), Stored, 0, Child, Fails "EPERM: the host has no routing \
                                                                         rules";
    Timestamping "SO_TIMESTAMPING" SOCKET 37 All, Special, Own, 0, Child, Linux "times of reception, by \
                                                                                 software";
    Protocol "SO_PROTOCOL" SOCKET 38 All, Never, Own, 0, Child, Linux "";
    Domain "SO_DOMAIN" SOCKET 39 All, Never, Own, 0, Child, Linux "";
    ReceiveOverflow "SO_RXQ_OVFL" SOCKET 40 All, Flag, Stored, 0, Child, Linux "";
    WifiStatus "SO_WIFI_STATUS" SOCKET 41 All, Flag, Stored, 0, Child, Kept "";
    PeekOffset "SO_PEEK_OFF" SOCKET 42 All, Any, Stored, -1, Child, Linux "";
    NoFcs "SO_NOFCS" SOCKET 43 All, Flag, Stored, 0, Child, Kept "";
    LockFilter "SO_LOCK_FILTER" SOCKET 44 All, Flag, Stored, 0, Child, Kept "";
    SelectErrorQueue "SO_SELECT_ERR_QUEUE" SOCKET 45 All, Flag, Stored, 0, Child, Kept "";
    BusyPoll "SO_BUSY_POLL" SOCKET 46 All, Within(0, i32::MAX), Stored, 0, Child, Kept "";
    MaxPacingRate "SO_MAX_PACING_RATE" SOCKET 47 All, Special, Own, -1, Child, Linux "";
    BpfExtensions "SO_BPF_EXTENSIONS" SOCKET 48 All, Never, Stored, 64, Child, Kept "";
    IncomingCpu "SO_INCOMING_CPU" SOCKET 49 All, Any, Own, -1, Alone, Kept "";
    AttachBpf "SO_ATTACH_BPF" SOCKET 50 All, Special, NoGet, 0, Child, Fails "EBADF";
    AttachReusePortCbpf "SO_ATTACH_REUSEPORT_CBPF" SOCKET 51 All, Fails(EINVAL), NoGet, 0, Child, Fails "EINVAL";
    AttachReusePortEbpf "SO_ATTACH_REUSEPORT_EBPF" SOCKET 52 All, Special, NoGet, 0, Child, Fails "EBADF";
    CnxAdvice "SO_CNX_ADVICE" SOCKET 53 All, Special, NoGet, 0, Child, Kept "";
    MemInfo "SO_MEMINFO" SOCKET 55 All, Never, Own, 0, Alone, Linux "";
    IncomingNapiId "SO_INCOMING_NAPI_ID" SOCKET 56 All, Never, Stored, 0, Alone, Kept "always 0";
    Cookie "SO_COOKIE" SOCKET 57 All, Never, Own, 0, Alone, Linux "";
    PeerGroups "SO_PEERGROUPS" SOCKET 59 All, Never, get_fails(ENODATA), 0, Child, Linux "";
    ZeroCopy "SO_ZEROCOPY" SOCKET 60 All, Special, Stored, 0, Child, Fails "EOPNOTSUPP: there are no \
                                                                            notifications of completion";
    TxTime "SO_TXTIME" SOCKET 61 All, Special, Own, 0, Child, Kept "";
    BindToIfIndex "SO_BINDTOIFINDEX" SOCKET 62 All, Within(0, i32::MAX), Stored, 0, Child, Linux "nothing \
                                                                                                  can be \
                                                                                                  reached by \
                                                                                                  it";
    TimestampNew "SO_TIMESTAMP_NEW" SOCKET 63 All, Special, Own, 0, Child, Linux "";
    TimestampNsNew "SO_TIMESTAMPNS_NEW" SOCKET 64 All, Special, Own, 0, Child, Linux "";
    TimestampingNew "SO_TIMESTAMPING_NEW" SOCKET 65 All, Special, Own, 0, Child, Linux "times of reception, \
                                                                                        by software";
    ReceiveTimeoutNew "SO_RCVTIMEO_NEW" SOCKET 66 All, Special, Own, 0, Child, Linux "";
    SendTimeoutNew "SO_SNDTIMEO_NEW" SOCKET 67 All, Special, Own, 0, Child, Linux "";
    DetachReusePortBpf "SO_DETACH_REUSEPORT_BPF" SOCKET 68 All, Fails(EINVAL), NoGet, 0, Child, Linux "there \
                                                                                                       is \
                                                                                                       none";
    PreferBusyPoll "SO_PREFER_BUSY_POLL" SOCKET 69 All, Flag, Stored, 0, Child, Kept "";
    BusyPollBudget "SO_BUSY_POLL_BUDGET" SOCKET 70 All, Within(0, 65_535), NoGet, 0, Child, Kept "";
    NetnsCookie "SO_NETNS_COOKIE" SOCKET 71 All, Never, Own, 0, Child, Linux "";
    BufferLock "SO_BUF_LOCK" SOCKET 72 All, Special, Own, 0, Child, Linux "";
    ReserveMemory "SO_RESERVE_MEM" SOCKET 73 All, Special, Stored, 0, Child, Fails "EOPNOTSUPP";
    TxRehash "SO_TXREHASH" SOCKET 74 Stream, Special, Stored, 1, Child, Kept "";
    ReceiveMark "SO_RCVMARK" SOCKET 75 All, Flag, Stored, 0, Child, Kept "";
    PassPidFd "SO_PASSPIDFD" SOCKET 76 All, Fails(EOPNOTSUPP), get_fails(EOPNOTSUPP), 0, Child, Linux "";
    PeerPidFd "SO_PEERPIDFD" SOCKET 77 All, Never, get_fails(ENODATA), 0, Child, Linux "";
    ReceivePriority "SO_RCVPRIORITY" SOCKET 82 All, Flag, Stored, 0, Child, Kept "";
    PassRights "SO_PASSRIGHTS" SOCKET 83 All, Fails(EOPNOTSUPP), get_fails(EOPNOTSUPP), 0, Child, Linux "";

    Tos "IP_TOS" IP 1 All, Special, Stored, 0, Child, Linux "";
    Ttl "IP_TTL" IP 2 All, Special, Stored, 64, Child, Linux "";
    HeaderIncluded "IP_HDRINCL" IP 3 All, Never, Stored, 0, Child, Linux "";
    IpOptions "IP_OPTIONS" IP 4 All, Special, Own, 0, Child, Fails "EINVAL unless empty";
    RouterAlert "IP_ROUTER_ALERT" IP 5 All, Fails(EINVAL), Stored, 0, Child, Linux "";
    ReceiveOptions "IP_RECVOPTS" IP 6 All, Flag, Stored, 0, Child, Kept "";
    ReturnOptions "IP_RETOPTS" IP 7 All, Flag, Stored, 0, Child, Kept "";
    PacketInfo "IP_PKTINFO" IP 8 All, Flag, Stored, 0, Child, Linux "";
    PacketOptions "IP_PKTOPTIONS" IP 9 Stream, Never, Own, 0, Alone, Kept "always empty";
    MtuDiscover "IP_MTU_DISCOVER" IP 10 All, Within(0, 5), Stored, 1, Child, Linux "";
    ReceiveErrors "IP_RECVERR" IP 11 All, Flag, Stored, 0, Child, Linux "errors reach SO_ERROR, and UDP \
                                                                         sockets that are not connected; the \
                                                                         queue of MSG_ERRQUEUE stays empty";
    ReceiveTtl "IP_RECVTTL" IP 12 All, Flag, Stored, 0, Child, Linux "";
    ReceiveTos "IP_RECVTOS" IP 13 All, Flag, Stored, 0, Child, Linux "";
    Mtu "IP_MTU" IP 14 All, Never, Own, 0, Alone, Linux "";
    FreeBind "IP_FREEBIND" IP 15 All, Special, Stored, 0, Child, Linux "nothing comes for an address that \
                                                                        the host does not have";
    IpsecPolicy "IP_IPSEC_POLICY" IP 16 All, Fails(EOPNOTSUPP), NoGet, 0, Child, Fails "EOPNOTSUPP";
    XfrmPolicy "IP_XFRM_POLICY" IP 17 All, Fails(EOPNOTSUPP), NoGet, 0, Child, Fails "EOPNOTSUPP";
    IpPassSec "IP_PASSSEC" IP 18 All, Flag, Stored, 0, Child, Kept "";
    Transparent "IP_TRANSPARENT" IP 19 All, Special, Stored, 0, Child, Fails "EPERM";
    OrigDstAddr "IP_RECVORIGDSTADDR" IP 20 All, Flag, Stored, 0, Child, Linux "";
    MinTtl "IP_MINTTL" IP 21 All, Special, Stored, 0, Child, Linux "";
    NoDefrag "IP_NODEFRAG" IP 22 All, Never, Stored, 0, Child, Linux "";
    Checksum "IP_CHECKSUM" IP 23 All, Flag, Stored, 0, Child, Kept "";
    BindAddressNoPort "IP_BIND_ADDRESS_NO_PORT" IP 24 All, Flag, Stored, 0, Child, Linux "";
    ReceiveFragSize "IP_RECVFRAGSIZE" IP 25 All, Special, Stored, 0, Child, Kept "";
    RecverrRfc4884 "IP_RECVERR_RFC4884" IP 26 All, Within(0, 1), Stored, 0, Child, Kept "";
    MulticastIf "IP_MULTICAST_IF" IP 32 All, Special, Own, 0, Child, Kept "";
    MulticastTtl "IP_MULTICAST_TTL" IP 33 All, Special, Stored, 1, Child, Kept "";
    MulticastLoop "IP_MULTICAST_LOOP" IP 34 All, Special, Stored, 1, Child, Kept "";
    AddMembership "IP_ADD_MEMBERSHIP" IP 35 All, Special, NoGet, 0, Child, Fails "ENODEV: the host is in no \
                                                                                  group";
    DropMembership "IP_DROP_MEMBERSHIP" IP 36 All, Special, NoGet, 0, Child, Linux "EADDRNOTAVAIL: the host \
                                                                                    is in no group";
    MulticastAll "IP_MULTICAST_ALL" IP 49 All, Special, Stored, 1, Child, Kept "";
    UnicastIf "IP_UNICAST_IF" IP 50 All, Special, Stored, 0, Child, Kept "";
    LocalPortRange "IP_LOCAL_PORT_RANGE" IP 51 All, Special, Stored, 0, Child, Kept "";
    IpProtocol "IP_PROTOCOL" IP 52 All, Never, Own, 0, Alone, Linux "";
    OriginalDst "SO_ORIGINAL_DST" IP 80 All, Never, get_fails(ENOENT), 0, Alone, Linux "nothing is \
                                                                                        redirected";

    AddrForm "IPV6_ADDRFORM" IPV6 1 All, Special, Own, 0, Child, Fails "ENOTCONN";
    V6ReceivePktInfo2292 "IPV6_2292PKTINFO" IPV6 2 All, Flag, Stored, 0, Child, Kept "";
    V6HopOpts2292 "IPV6_2292HOPOPTS" IPV6 3 All, Flag, Stored, 0, Child, Kept "";
    V6DstOpts2292 "IPV6_2292DSTOPTS" IPV6 4 All, Flag, Stored, 0, Child, Kept "";
    V6RtHdr2292 "IPV6_2292RTHDR" IPV6 5 All, Flag, Stored, 0, Child, Kept "";
    V6PktOptions2292 "IPV6_2292PKTOPTIONS" IPV6 6 All, Special, Own, 0, Child, Kept "always empty";
    V6HopLimit2292 "IPV6_2292HOPLIMIT" IPV6 8 All, Flag, Stored, 0, Child, Kept "";
    V6FlowInfo "IPV6_FLOWINFO" IPV6 11 All, Flag, Stored, 0, Child, Kept "";
    V6Hops "IPV6_UNICAST_HOPS" IPV6 16 All, Special, Stored, 64, Child, Linux "";
    V6MulticastIf "IPV6_MULTICAST_IF" IPV6 17 All, Special, Stored, 0, Child, Kept "";
    V6MulticastHops "IPV6_MULTICAST_HOPS" IPV6 18 All, Special, Stored, 1, Child, Kept "";
    V6MulticastLoop "IPV6_MULTICAST_LOOP" IPV6 19 All, Within(0, 1), Stored, 1, Child, Kept "";
    V6AddMembership "IPV6_ADD_MEMBERSHIP" IPV6 20 All, Special, NoGet, 0, Child, Fails "ENODEV: the host is \
                                                                                        in no group";
    V6DropMembership "IPV6_DROP_MEMBERSHIP" IPV6 21 All, Special, NoGet, 0, Child, Linux "EADDRNOTAVAIL: the \
                                                                                          host is in no \
                                                                                          group";
    V6RouterAlert "IPV6_ROUTER_ALERT" IPV6 22 All, Never, Stored, 0, Child, Linux "";
    V6MtuDiscover "IPV6_MTU_DISCOVER" IPV6 23 All, Within(0, 5), Stored, 1, Child, Linux "";
    V6Mtu "IPV6_MTU" IPV6 24 All, Special, Own, 0, Alone, Linux "";
    V6ReceiveErrors "IPV6_RECVERR" IPV6 25 All, Flag, Stored, 0, Child, Linux "as IP_RECVERR";
    V6Only "IPV6_V6ONLY" IPV6 26 All, Special, Stored, 0, Child, Linux "";
    V6MulticastAll "IPV6_MULTICAST_ALL" IPV6 29 All, Flag, Stored, 1, Child, Kept "";
    V6RouterAlertIsolate "IPV6_ROUTER_ALERT_ISOLATE" IPV6 30 All, Flag, Stored, 0, Child, Kept "";
    V6RecverrRfc4884 "IPV6_RECVERR_RFC4884" IPV6 31 All, Within(0, 1), Stored, 0, Child, Kept "";
    V6FlowInfoSend "IPV6_FLOWINFO_SEND" IPV6 33 All, Flag, Stored, 0, Child, Kept "";
    V6IpsecPolicy "IPV6_IPSEC_POLICY" IPV6 34 All, Fails(EOPNOTSUPP), NoGet, 0, Child, Fails "EOPNOTSUPP";
    V6XfrmPolicy "IPV6_XFRM_POLICY" IPV6 35 All, Fails(EOPNOTSUPP), NoGet, 0, Child, Fails "EOPNOTSUPP";
    V6ReceivePktInfo "IPV6_RECVPKTINFO" IPV6 49 All, Flag, Stored, 0, Child, Linux "";
    V6PktInfo "IPV6_PKTINFO" IPV6 50 All, Fails(EINVAL), Own, 0, Child, Fails "EINVAL: to be given with a \
                                                                               message";
    V6ReceiveHopLimit "IPV6_RECVHOPLIMIT" IPV6 51 All, Flag, Stored, 0, Child, Linux "";
    V6ReceiveHopOpts "IPV6_RECVHOPOPTS" IPV6 53 All, Flag, Stored, 0, Child, Kept "";
    V6HopOpts "IPV6_HOPOPTS" IPV6 54 All, Special, Own, 0, Child, Fails "EINVAL unless empty";
    V6RtHdrDstOpts "IPV6_RTHDRDSTOPTS" IPV6 55 All, Special, Own, 0, Child, Fails "EINVAL unless empty";
    V6ReceiveRtHdr "IPV6_RECVRTHDR" IPV6 56 All, Flag, Stored, 0, Child, Kept "";
    V6RtHdr "IPV6_RTHDR" IPV6 57 All, Special, Own, 0, Child, Fails "EINVAL unless empty";
    V6ReceiveDstOpts "IPV6_RECVDSTOPTS" IPV6 58 All, Flag, Stored, 0, Child, Kept "";
    V6DstOpts "IPV6_DSTOPTS" IPV6 59 All, Special, Own, 0, Child, Fails "EINVAL unless empty";
    V6ReceivePathMtu "IPV6_RECVPATHMTU" IPV6 60 All, Flag, Stored, 0, Child, Kept "";
    V6PathMtu "IPV6_PATHMTU" IPV6 61 All, Never, Own, 0, Alone, Linux "";
    V6DontFrag "IPV6_DONTFRAG" IPV6 62 All, Flag, Stored, 0, Child, Linux "";
    V6ReceiveTClass "IPV6_RECVTCLASS" IPV6 66 All, Flag, Stored, 0, Child, Linux "";
    V6TClass "IPV6_TCLASS" IPV6 67 All, Special, Stored, 0, Child, Linux "";
    V6AutoFlowLabel "IPV6_AUTOFLOWLABEL" IPV6 70 All, Flag, Stored, 1, Child, Kept "";
    V6AddrPreferences "IPV6_ADDR_PREFERENCES" IPV6 72 All, Special, Stored, 1280, Child, Kept "";
    V6MinHopCount "IPV6_MINHOPCOUNT" IPV6 73 All, Within(0, 255), Stored, 0, Child, Linux "";
    V6OrigDstAddr "IPV6_RECVORIGDSTADDR" IPV6 74 All, Flag, Stored, 0, Child, Linux "";
    V6Transparent "IPV6_TRANSPARENT" IPV6 75 All, Special, Stored, 0, Child, Fails "EPERM";
    V6UnicastIf "IPV6_UNICAST_IF" IPV6 76 All, Special, Stored, 0, Child, Kept "";
    V6ReceiveFragSize "IPV6_RECVFRAGSIZE" IPV6 77 All, Flag, Stored, 0, Child, Kept "";
    V6FreeBind "IPV6_FREEBIND" IPV6 78 All, Flag, Stored, 0, Child, Linux "as IP_FREEBIND";

    NoDelay "TCP_NODELAY" TCP 1 Stream, Flag, Stored, 0, Child, Linux "";
    MaxSeg "TCP_MAXSEG" TCP 2 Stream, Special, Own, 536, Child, Linux "";
    Cork "TCP_CORK" TCP 3 Stream, Flag, Stored, 0, Child, Linux "";
    KeepIdle "TCP_KEEPIDLE" TCP 4 Stream, Within(1, 32_767), Stored, 7200, Child, Linux "";
    KeepInterval "TCP_KEEPINTVL" TCP 5 Stream, Within(1, 32_767), Stored, 75, Child, Linux "";
    KeepCount "TCP_KEEPCNT" TCP 6 Stream, Within(1, 127), Stored, 9, Child, Linux "";
    SynCount "TCP_SYNCNT" TCP 7 Stream, Within(1, 127), Stored, 6, Child, Linux "";
    Linger2 "TCP_LINGER2" TCP 8 Stream, Special, Stored, 60, Child, Linux "";
    DeferAccept "TCP_DEFER_ACCEPT" TCP 9 Stream, Special, Stored, 0, Alone, Linux "";
    WindowClamp "TCP_WINDOW_CLAMP" TCP 10 Stream, Special, Own, 0, Child, Linux "";
    Info "TCP_INFO" TCP 11 Stream, Never, Own, 0, Alone, Linux "";
    QuickAck "TCP_QUICKACK" TCP 12 Stream, Special, Own, 1, Alone, Linux "";
    Congestion "TCP_CONGESTION" TCP 13 Stream, Special, Own, 0, Child, Linux "by the names of `farpace \
                                                                              profiles`; `bbr` is bbr3";
    Md5Sig "TCP_MD5SIG" TCP 14 Stream, Fails(EINVAL), NoGet, 0, Child, Fails "EINVAL";
    ThinLinear "TCP_THIN_LINEAR_TIMEOUTS" TCP 16 Stream, Within(0, 1), Stored, 0, Child, Kept "";
    ThinDupAck "TCP_THIN_DUPACK" TCP 17 Stream, Special, Stored, 0, Child, Kept "always 0, as in Linux";
    UserTimeout "TCP_USER_TIMEOUT" TCP 18 Stream, Within(0, i32::MAX), Stored, 0, Child, Linux "";
    Repair "TCP_REPAIR" TCP 19 Stream, Fails(EPERM), Stored, 0, Child, Fails "EPERM";
    RepairQueue "TCP_REPAIR_QUEUE" TCP 20 Stream, Fails(EPERM), get_fails(EINVAL), 0, Child, Fails "EPERM";
    QueueSeq "TCP_QUEUE_SEQ" TCP 21 Stream, Special, get_fails(EINVAL), 0, Child, Fails "EPERM";
    RepairOptions "TCP_REPAIR_OPTIONS" TCP 22 Stream, Fails(EINVAL), NoGet, 0, Child, Fails "EINVAL";
    FastOpen "TCP_FASTOPEN" TCP 23 Stream, Special, Stored, 0, Alone, Kept "Fast Open is off, as with \
                                                                            tcp_fastopen=0";
    Stamp "TCP_TIMESTAMP" TCP 24 Stream, Fails(EPERM), Own, 0, Alone, Linux "";
    NotSentLow "TCP_NOTSENT_LOWAT" TCP 25 Stream, Any, Stored, 0, Child, Linux "";
    CcInfo "TCP_CC_INFO" TCP 26 Stream, Never, Own, 0, Alone, Linux "";
    SaveSyn "TCP_SAVE_SYN" TCP 27 Stream, Within(0, 2), Stored, 0, Child, Kept "";
    SavedSyn "TCP_SAVED_SYN" TCP 28 Stream, Never, Own, 0, Alone, Kept "always empty";
    RepairWindow "TCP_REPAIR_WINDOW" TCP 29 Stream, Fails(EPERM), get_fails(EINVAL), 0, Child, Fails "EPERM";
    FastOpenConnect "TCP_FASTOPEN_CONNECT" TCP 30 Stream, Special, Stored, 0, Child, Fails "EOPNOTSUPP: Fast \
                                                                                            Open is off";
    Ulp "TCP_ULP" TCP 31 Stream, Special, Own, 0, Child, Fails "ENOENT: there is no TLS here";
    Md5SigExt "TCP_MD5SIG_EXT" TCP 32 Stream, Fails(EINVAL), NoGet, 0, Child, Fails "EINVAL";
    FastOpenKey "TCP_FASTOPEN_KEY" TCP 33 Stream, Special, Own, 0, Child, Kept "";
    FastOpenNoCookie "TCP_FASTOPEN_NO_COOKIE" TCP 34 Stream, Special, Stored, 0, Child, Kept "";
    ZeroCopyReceive "TCP_ZEROCOPY_RECEIVE" TCP 35 Stream, Never, get_fails(EINVAL), 0, Alone, Fails "EINVAL";
    Inq "TCP_INQ" TCP 36 Stream, Within(0, 1), Stored, 0, Child, Linux "";
    TxDelay "TCP_TX_DELAY" TCP 37 Stream, Special, Stored, 0, Child, Kept "";
    AoRepair "TCP_AO_REPAIR" TCP 42 Stream, Special, Own, 0, Child, Fails "EPERM";
    IsMptcp "TCP_IS_MPTCP" TCP 43 Stream, Never, Stored, 0, Alone, Linux "";
    RtoMax "TCP_RTO_MAX_MS" TCP 44 Stream, Special, Stored, 120_000, Child, Kept "";
    RtoMin "TCP_RTO_MIN_US" TCP 45 Stream, Special, Stored, 200_000, Child, Linux "where the retransmission \
                                                                                   timeout is rfc6298";
    DelAckMax "TCP_DELACK_MAX_US" TCP 46 Stream, Special, Stored, 200_000, Child, Kept "";

    UdpCork "UDP_CORK" UDP 1 Datagram, Flag, Stored, 0, Alone, Kept "";
    UdpLiteSend "UDPLITE_SEND_CSCOV" UDP 10 Datagram, Never, Stored, 0, Alone, Linux "";
    UdpLiteReceive "UDPLITE_RECV_CSCOV" UDP 11 Datagram, Never, Stored, 0, Alone, Linux "";
    UdpEncap "UDP_ENCAP" UDP 100 Datagram, Special, Stored, 0, Alone, Fails "ENOPROTOOPT but for 0";
    UdpNoCheck6Tx "UDP_NO_CHECK6_TX" UDP 101 Datagram, Flag, Stored, 0, Alone, Kept "";
    UdpNoCheck6Rx "UDP_NO_CHECK6_RX" UDP 102 Datagram, Flag, Stored, 0, Alone, Kept "";
    UdpSegment "UDP_SEGMENT" UDP 103 Datagram, Within(0, 65_535), Stored, 0, Alone, Linux "";
    UdpGro "UDP_GRO" UDP 104 Datagram, Flag, Stored, 0, Alone, Kept "datagrams come one by one";

    Settings "FP_SETTINGS" FARPACE 1 Stream, Special, Own, 0, Child, Linux "farpace's own: the engine's \
                                                                            switches, in words";
    Json "FP_INFO" FARPACE 2 Stream, Never, Own, 0, Alone, Linux "farpace's own: TCP_INFO as JSON";
}

/// Number of options.
pub const COUNT: usize = OPTIONS.len();

impl Opt {
    /// Its row.
    pub fn row(self) -> &'static OptionRow {
        // The table has the order of the enum, which is generated from it.
        &OPTIONS[self as usize]
    }
}

/// Finds the option with this number for a TCP or UDP socket.
pub fn find(level: i32, number: i32, datagram: bool) -> Option<&'static OptionRow> {
    let has = |of: Of| match of {
        Of::All => true,
        Of::Stream => !datagram,
        Of::Datagram => datagram,
    };
    OPTIONS.iter().find(|row| row.level == level && row.number == number && has(row.of))
}
