//! Reversal of changes to the machine.

use super::ethtool::{Offload, set_offload};
use super::namespace::in_namespace;
use super::{SystemError, SystemInterface, namespace, sysctl, tool};
use nix::net::if_::if_nametoindex;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Reverts one change. Each may run twice, and after its object was removed: then it has no effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SystemUndo {
    /// Remove a created interface.
    Link(SystemInterface),
    /// Remove a created namespace, with everything in it.
    Namespace(String),
    /// Restore a kernel parameter.
    Sysctl {
        /// Namespace; none: that of the process.
        namespace: Option<String>,
        /// Its name, such as `net.ipv4.ip_forward`.
        name: String,
        /// The former value.
        value: String,
    },
    /// Switch offloads of an interface on again.
    Offload(SystemInterface, Vec<Offload>),
    /// Run `ip` or `tc` on an interface.
    Tool(SystemInterface, Vec<String>),
    /// Run `ip` once for several lines.
    Batch {
        /// `ip` and its options.
        program: Vec<String>,
        /// A command of `ip` each.
        lines: Vec<String>,
    },
    /// Remove a folder of a BPF file system: what is pinned there goes from the kernel.
    Pins(PathBuf),
    /// Revert a change of an interface that existed before. A later interface of the same name is another
    /// one, and stays as it is.
    OfInterface {
        /// The interface.
        interface: SystemInterface,
        /// Its index.
        index: u32,
        /// The reversal.
        undo: Box<SystemUndo>,
    },
}

impl SystemUndo {
    /// The same for only the interface that now has the name of the one that this changes.
    pub(super) fn bound_to_interface(self) -> Self {
        let interface = match &self {
            SystemUndo::Offload(interface, _) | SystemUndo::Tool(interface, _) => Some(interface.clone()),
            SystemUndo::Sysctl { namespace, name, .. } => {
                sysctl::interface_of(name).map(|name| SystemInterface { namespace: namespace.clone(), name })
            }
            _ => None,
        };
        match interface.and_then(|interface| Some((index(&interface)?, interface))) {
            Some((index, interface)) => SystemUndo::OfInterface { interface, index, undo: Box::new(self) },
            None => self,
        }
    }

    /// The interface that this removes, if any.
    pub(super) fn removes(&self) -> Option<&SystemInterface> {
        match self {
            SystemUndo::Link(interface) => Some(interface),
            _ => None,
        }
    }

    /// The named namespace that this concerns.
    pub(super) fn namespace(&self) -> Option<&str> {
        match self {
            SystemUndo::Namespace(name) => Some(name),
            SystemUndo::Pins(_) | SystemUndo::Batch { .. } => None,
            SystemUndo::Sysctl { namespace, .. } => namespace.as_deref(),
            SystemUndo::OfInterface { interface, .. } => interface.namespace.as_deref(),
            SystemUndo::Link(interface)
            | SystemUndo::Offload(interface, _)
            | SystemUndo::Tool(interface, _) => interface.namespace.as_deref(),
        }
    }

    /// What reverts the change, in words: commands, one for each entry, where it is commands.
    pub fn commands(&self) -> Vec<String> {
        match self {
            SystemUndo::Batch { program, lines } => {
                lines.iter().map(|line| format!("{} {line}", program.join(" "))).collect()
            }
            SystemUndo::OfInterface { undo, .. } => undo.commands(),
            other => vec![other.to_string()],
        }
    }

    /// Reverts the change.
    ///
    /// # Errors
    /// Any error, except that the object does not exist.
    pub(super) fn run(&self) -> Result<(), SystemError> {
        match self {
            SystemUndo::Link(interface) if exists(interface) => {
                let line = format!("link delete dev {}", interface.name);
                let done = tool::run(&tool::line("ip", interface.namespace.as_deref(), &line)).map(drop);
                // Another process may have removed it meanwhile.
                done.or_else(|error| if exists(interface) { Err(error) } else { Ok(()) })
            }
            SystemUndo::Namespace(name) => namespace::delete(name),
            SystemUndo::Pins(folder) => match std::fs::remove_dir_all(folder) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    Err(SystemError::System { what: format!("remove {}", folder.display()), error })
                }
                _ => Ok(()),
            },
            SystemUndo::Sysctl { namespace, name, value } if there(namespace.as_deref()) => {
                match in_namespace(namespace.as_deref(), || sysctl::write(name, value)) {
                    // The interface of the parameter was removed, and the parameter with it.
                    Err(SystemError::System { error, .. }) if error.kind() == io::ErrorKind::NotFound => {
                        Ok(())
                    }
                    other => other,
                }
            }
            SystemUndo::OfInterface { interface, index: before, undo }
                if index(interface) == Some(*before) =>
            {
                undo.run()
            }
            SystemUndo::Offload(interface, all) if exists(interface) => {
                in_namespace(interface.namespace.as_deref(), || {
                    let on = |what: &Offload| set_offload(&interface.name, *what, true);
                    all.iter().try_for_each(on).map_err(|error| SystemError::System {
                        what: format!("switch offloads of `{interface}` on again"),
                        error,
                    })
                })
            }
            SystemUndo::Tool(interface, arguments) if exists(interface) => match tool::run(arguments) {
                // The address, route or qdisc was removed already.
                Err(SystemError::Tool { message, .. }) if is_not_found(&message) => Ok(()),
                other => other.map(drop),
            },
            SystemUndo::Batch { program, lines } => match tool::batch(program, lines, true) {
                Err(SystemError::Tool { message, .. })
                    if message
                        .split("; ")
                        .filter(|line| !line.starts_with("Command failed"))
                        .all(is_not_found) =>
                {
                    Ok(())
                }
                other => other,
            },
            _ => Ok(()),
        }
    }
}

/// What tools say of something that is not there.
const NOT_FOUND: [&str; 8] = [
    "Cannot assign requested",
    "No such process",
    "Cannot find",
    "No such file",
    "handle of zero",
    "Parent Qdisc doesn't exist",
    "not found",
    "Invalid handle",
];

fn is_not_found(message: &str) -> bool {
    NOT_FOUND.iter().any(|words| message.contains(words))
}

fn there(namespace: Option<&str>) -> bool {
    namespace.is_none_or(|name| namespace::path(name).exists())
}

/// The index of the interface; none: it does not exist.
fn index(interface: &SystemInterface) -> Option<u32> {
    let find = || Ok(if_nametoindex(interface.name.as_str()).ok());
    let namespace = interface.namespace.as_deref();
    there(namespace).then(|| in_namespace(namespace, find).ok().flatten()).flatten()
}

/// True if the interface exists.
pub(super) fn exists(interface: &SystemInterface) -> bool {
    let find = || Ok(if_nametoindex(interface.name.as_str()).is_ok());
    there(interface.namespace.as_deref())
        && in_namespace(interface.namespace.as_deref(), find).unwrap_or(true)
}

impl fmt::Display for SystemUndo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SystemUndo::Link(interface) => write!(f, "interface {interface}"),
            SystemUndo::Namespace(name) => write!(f, "network namespace {name}"),
            SystemUndo::Sysctl { namespace: None, name, value } => write!(f, "{name}, which was {value}"),
            SystemUndo::Sysctl { namespace: Some(namespace), name, value } => {
                write!(f, "{name} in {namespace}, which was {value}")
            }
            SystemUndo::Offload(interface, all) => {
                let all: Vec<_> = all.iter().map(|what| what.name()).collect();
                write!(f, "{} of {interface}, which was on", all.join(", "))
            }
            SystemUndo::Tool(_, arguments) => f.write_str(&arguments.join(" ")),
            SystemUndo::Batch { .. } => f.write_str(&self.commands().join("; ")),
            SystemUndo::OfInterface { undo, .. } => undo.fmt(f),
            SystemUndo::Pins(folder) => write!(f, "BPF programs in {}", folder.display()),
        }
    }
}
