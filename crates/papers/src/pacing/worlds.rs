//! What the paper on pacing leaves open. It has no world yet.

use crate::plausible::PlausibleKey;

/// What it leaves open.
pub const PLAUSIBLE: &[PlausibleKey] = &[
    PlausibleKey {
        part: "token-bucket",
        key: "burst",
        range: "64kB..2MB*log",
        reason: "the bucket of the token bucket is not printed; the paper's bursts of 180 ms of a \
                 full bucket need about 1 MB",
    },
    PlausibleKey {
        part: "paced-nic",
        key: "limit",
        range: "1000 packets..20000 packets*log",
        reason: "the limit of the queue is not printed; 1000 packets are the default, and 10,000 the \
                 tuned value of other papers",
    },
    PlausibleKey {
        part: "unpaced-nic",
        key: "queue",
        range: "1000 packets..20000 packets*log",
        reason: "as for the paced queue",
    },
    PlausibleKey {
        part: "receiver",
        key: "delayed_ack",
        range: "linux-2.6,linux,none",
        reason: "the receiver's version is not printed",
    },
    PlausibleKey {
        part: "sender-host",
        key: "transmit_queue",
        range: "false,true",
        reason: "Linux 2.6.11 keeps what its transmit queue refuses and brings its window down; whether the \
                 paper counts that as a loss is not printed",
    },
];
