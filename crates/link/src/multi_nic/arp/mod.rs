//! What machines with several cards tell each other, and what they believe.
//!
//! A [`ArpAnnouncer`] stands between a stack's address resolution and the wire. To the ARP packets and the messages of neighbour
//! discovery that the stack sends it adds the list of all cards ([`farpace_wire::Extension`]); from those that come in it learns
//! the cards of neighbours. The stack notices nothing, and neither does a neighbour that does not know of this.
//!
//! Nobody signs these lists, as nobody signs ARP: whoever is on the LAN can lie about both. The rules here keep mistakes, accidents,
//! lists that were overtaken by newer ones, and those who do not even listen from doing harm.
//!
//! | concept | file |
//! |---|---|
//! | ARP and neighbour discovery in one form | `message` |
//! | what is believed of neighbours | `cache` |
//! | why a list is refused, and how often that was | `stats` |
//! | what is said, and when it is said without being asked | `speaker` |
//! | what somebody who only listens learns | `onlooker` |
//! | an IPv4 address is probed for and defended (RFC 5227) | `claim` |

mod announcer;
mod cache;
mod conflict_detection;
mod message;
mod observer;
mod stats;

pub use announcer::{ANNOUNCE_AGAIN, AnnouncerAction, ArpAnnouncer, MAX_OWN_ADDRESSES};
pub use cache::{ASK_TIME, Cache, Learned, MAX_NEIGHBOURS, MAX_SET_ASIDE, MultiNicHost, NEIGHBOUR_TIME};
pub use conflict_detection::{ConflictAction, ConflictDetection};
pub use observer::{ArpObserver, MAX_LANES, ObservedHost, Probed};
pub use stats::{ArpRefusal, ArpStats};
