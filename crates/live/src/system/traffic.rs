//! What leaves by an interface: queueing disciplines, filters at its egress, and the length of
//! super-segments.

use super::undo::SystemUndo;
use super::{Setup, SystemError, SystemInterface, tool};
use farpace_units::Rate;
use serde::Deserialize;
use std::net::IpAddr;
use std::{fs, io};

/// What the system tells of an interface.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct InterfaceFacts {
    /// Its number.
    #[serde(rename = "ifindex")]
    pub index: u32,
    /// What its frames are: `ether`, `loopback`, `none`.
    #[serde(rename = "link_type")]
    pub frames: String,
    /// Longest packet, in bytes.
    pub mtu: u32,
    /// Queues of frames that leave.
    #[serde(rename = "num_tx_queues")]
    pub queues: u32,
    /// Frames that a super-segment may be cut into.
    #[serde(rename = "gso_max_segs")]
    pub super_segment: u32,
}

/// The queueing discipline at the root of an interface.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RootQueue {
    /// Its kind, like `fq`.
    pub kind: String,
    /// Its number, like `8001:`; `0:` for one that the system has put there by itself.
    pub handle: String,
    #[serde(default)]
    root: bool,
}

impl RootQueue {
    /// The system has put it there by itself, and would again.
    pub fn is_default(&self) -> bool {
        self.handle == "0:"
    }
}

fn read<'a, T: Deserialize<'a>>(arguments: &[String], text: &'a str) -> Result<Vec<T>, SystemError> {
    serde_json::from_str(text).map_err(|error| SystemError::System {
        what: format!("read what `{}` says", arguments.join(" ")),
        error: io::Error::other(error),
    })
}

/// What the system tells of an interface.
///
/// # Errors
/// There is no such interface.
pub fn interface_facts(interface: &SystemInterface) -> Result<InterfaceFacts, SystemError> {
    let line = format!("-d -j link show dev {}", interface.name);
    let arguments = tool::line("ip", interface.namespace.as_deref(), &line);
    let text = tool::run(&arguments)?;
    read(&arguments, &text)?.into_iter().next().ok_or_else(|| SystemError::Unknown(interface.to_string()))
}

/// The queueing discipline at the root of an interface; none: there is none that is known.
///
/// # Errors
/// There is no such interface.
pub fn root_queue(interface: &SystemInterface) -> Result<Option<RootQueue>, SystemError> {
    let arguments =
        tool::line("tc", interface.namespace.as_deref(), &format!("-j qdisc show dev {}", interface.name));
    let text = tool::run(&arguments)?;
    Ok(read::<RootQueue>(&arguments, &text)?.into_iter().find(|queue| queue.root))
}

/// What the driver says of the line; none, if it does not.
pub fn line_rate(interface: &str) -> Option<Rate> {
    let text = fs::read_to_string(format!("/sys/class/net/{interface}/speed")).ok()?;
    text.trim().parse().ok().filter(|mbit| *mbit > 0).map(Rate::from_mbit)
}

impl Setup {
    /// A new interface of this kind, down.
    ///
    /// # Errors
    /// See [`SystemError`].
    pub fn interface(&self, interface: &SystemInterface, kind: &str) -> Result<(), SystemError> {
        self.must_be_new(interface)?;
        let line = format!("link add name {} type {kind}", interface.name);
        self.ip(SystemUndo::Link(interface.clone()), interface.namespace.as_deref(), &line)
    }

    /// The hardware address of a neighbour, which is not asked for it.
    ///
    /// # Errors
    /// See [`SystemError`].
    pub fn neighbour(
        &self,
        interface: &SystemInterface,
        address: IpAddr,
        mac: &str,
    ) -> Result<(), SystemError> {
        let what = format!("{address} lladdr {mac} dev {}", interface.name);
        let undo = self.tool_undo(interface, "ip", &format!("neighbour delete {what}"));
        self.ip(undo, interface.namespace.as_deref(), &format!("neighbour replace {what}"))
    }

    /// More lines of `tc`, one after the other, for what goes with something that was set before.
    ///
    /// # Errors
    /// The first line that is refused.
    pub fn tc_lines(&self, interface: &SystemInterface, lines: &[String]) -> Result<(), SystemError> {
        let arguments = tool::line("tc", interface.namespace.as_deref(), "-batch -");
        tool::feed(&arguments, &(lines.join("\n") + "\n")).map(drop)
    }

    /// How many frames a super-segment that leaves by an interface may be cut into.
    ///
    /// # Errors
    /// See [`SystemError`].
    pub fn super_segment(&self, interface: &SystemInterface, frames: u32) -> Result<(), SystemError> {
        let before = interface_facts(interface)?.super_segment;
        let line = |frames: u32| format!("link set dev {} gso_max_segs {frames}", interface.name);
        let undo = self.tool_undo(interface, "ip", &line(before));
        self.ip(undo, interface.namespace.as_deref(), &line(frames))
    }

    /// A hook for filters at the egress of an interface (`clsact`), if it has none, and what `attach` puts
    /// there with this priority.
    ///
    /// # Errors
    /// See [`SystemError`]; what `attach` says.
    pub fn egress_filter<E: From<SystemError>>(
        &self,
        interface: &SystemInterface,
        priority: u16,
        attach: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        let (name, namespace) = (&interface.name, interface.namespace.as_deref());
        let shown = tool::run(&tool::line("tc", namespace, &format!("qdisc show dev {name}")))?;
        if !shown.lines().any(|line| line.starts_with("qdisc clsact")) {
            let undo = self.tool_undo(interface, "tc", &format!("qdisc delete dev {name} clsact"));
            let line = tool::line("tc", namespace, &format!("qdisc add dev {name} clsact"));
            self.step(undo, || tool::run(&line).map(drop))?;
        }
        let undo = format!("filter delete dev {name} egress pref {priority}");
        let undo: SystemUndo = self.tool_undo(interface, "tc", &undo);
        let mut said = None;
        let done = self.step(undo, || {
            attach().map_err(|error| {
                said = Some(error);
                SystemError::System { what: "attach a filter".into(), error: io::ErrorKind::Other.into() }
            })
        });
        match (said, done) {
            (Some(error), _) => Err(error),
            (None, done) => Ok(done?),
        }
    }
}
