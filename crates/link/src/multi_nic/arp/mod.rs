//! Extended ARP: hosts announce lists of their NICs, and learn those of neighbours.
//!
//! An [`ArpAnnouncer`] is between the address resolution of a stack and the wire. It adds the list of all
//! NICs ([`farpace_wire::Extension`]) to ARP and neighbour discovery messages of the stack, and learns the
//! NICs of neighbours from received messages. The stack does not notice, nor does a neighbour without this
//! extension.
//!
//! Lists are not authenticated, like ARP itself: any host on the LAN can forge both. The rules prevent harm
//! from errors, accidents, delayed lists, and hosts that cannot receive the replies.
//!
//! | concept | file |
//! |---|---|
//! | ARP and neighbour discovery in one form | `message` |
//! | known neighbours, accepted lists | `cache` |
//! | why lists are refused; counters | `stats` |
//! | sending lists | `announcer` |
//! | learning from observed traffic | `observer` |
//! | IPv4 address conflict detection (RFC 5227) | `conflict_detection` |

mod announcer;
mod cache;
mod conflict_detection;
mod message;
mod observer;
mod stats;

pub use announcer::{AnnouncerAction, ArpAnnouncer, MAX_OWN_ADDRESSES, REPEAT_DELAYS};
pub use cache::{
    ANSWER_TIMEOUT, Cache, Learned, MAX_NEIGHBOURS, MAX_PENDING_LISTS, MultiNicHost, NEIGHBOUR_TIMEOUT,
};
pub use conflict_detection::{ConflictAction, ConflictDetection};
pub use observer::{ArpObserver, MAX_OBSERVED_PATHS, ObservedHost, Probed};
pub use stats::{ArpRefusal, ArpStats};
