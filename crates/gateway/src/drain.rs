//! How a gateway that is about to end hands its connections over.

/// What is not acknowledged while a gateway drains, and whether connections are handed over. New connections
/// pass in each case.
///
/// Of a pair, each gateway holds bytes for the other one. If both acknowledged nothing, neither would become
/// empty; nor would one that acknowledges what the hosts of the other site send themselves. So the gateway
/// that ends waits with [`Hold`](Drain::Hold), its peer hands over with [`FromLan`](Drain::FromLan), and the
/// one that ends follows with [`All`](Drain::All).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drain {
    /// Data of the LAN side is not acknowledged; connections are not handed over.
    Hold,
    /// Data of the LAN side is not acknowledged; connections are handed over.
    FromLan,
    /// No data is acknowledged; connections are handed over.
    All,
}
