//! Changes to the machine that are reverted later: interfaces, addresses, namespaces, parameters, offloads.
//!
//! Start reading at [`Setup`]. Before each change, a file ([`Journal`]) records how to revert it. So `farpace
//! doctor --clean` can revert the changes even after the process was killed.

pub(crate) mod ethtool;
mod interface_lock;
mod journal;
mod memory;
mod namespace;
mod owned_table;
mod route_query;
mod routing;
pub mod sysctl;
mod tool;
mod traffic;
mod undo;

use ethtool::set_offload;
pub use ethtool::{Offload, offload};
pub use interface_lock::{InterfaceLock, LockedDevice};
pub use journal::{Journal, clean, journals, state_folder};
pub use memory::default_memory;
pub use namespace::{Namespace, in_namespace};
pub use owned_table::OwnedTable;
pub use route_query::{ForwardedRoute, RouteQuery};
pub use routing::{
    IpFamily, legacy_rules, packet_filter, packet_filter_rules, restore_default_route, route_of_own,
    routes_of, routing_rules, set_own_mtu,
};
pub use traffic::{InterfaceFacts, RootQueue, interface_facts, line_rate, root_queue};
pub use undo::SystemUndo;

use crate::device::is_interface_name;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use thiserror::Error;

/// Why a change or its reversal fails.
#[derive(Debug, Error)]
pub enum SystemError {
    /// The system refuses.
    #[error("cannot {what}: {error}")]
    System {
        /// The operation.
        what: String,
        /// The error of the system.
        error: io::Error,
    },
    /// A tool reports an error.
    #[error("`{command}`: {message}")]
    Tool {
        /// The command.
        command: String,
        /// Its standard error.
        message: String,
    },
    /// A tool is missing.
    #[error(
        "the command `{0}` is missing: install the package iproute2 (iproute on Fedora), for nft nftables"
    )]
    NoTool(String),
    /// It exists already, and may belong to another program.
    #[error("there is already {0}: choose another name, or remove it")]
    InUse(String),
    /// Another process uses it.
    #[error("`{what}` is in use by {holder}: {why}")]
    Locked {
        /// An interface or an address.
        what: String,
        /// The process.
        holder: String,
        /// The harm, and what to do.
        why: &'static str,
    },
    /// The same interface twice.
    #[error("`{0}` is given twice")]
    Twice(String),
    /// An invalid name of an interface or namespace.
    #[error("`{0}` cannot be a name here: 1 to 15 characters, no `/`, no `:`, no `%`, no blanks")]
    BadName(String),
    /// There is no setup of this name.
    #[error("nothing was set up under the name `{0}`")]
    Unknown(String),
}

impl SystemError {
    /// True if privileges are missing.
    pub fn is_for_lack_of_rights(&self) -> bool {
        match self {
            SystemError::System { error, .. } => error.kind() == io::ErrorKind::PermissionDenied,
            SystemError::Tool { message, .. } => {
                message.contains("not permitted") || message.contains("Permission denied")
            }
            _ => false,
        }
    }
}

/// An interface in a network namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SystemInterface {
    /// Name of the namespace; none: that of the process.
    pub namespace: Option<String>,
    /// Name of the interface.
    pub name: String,
}

impl SystemInterface {
    /// An interface in the namespace of the process.
    pub fn here(name: &str) -> Self {
        SystemInterface { namespace: None, name: name.to_owned() }
    }
    /// An interface in a named namespace.
    pub fn within(namespace: &str, name: &str) -> Self {
        SystemInterface { namespace: Some(namespace.to_owned()), name: name.to_owned() }
    }
    /// True if it exists.
    pub fn exists(&self) -> bool {
        undo::exists(self)
    }
}

impl fmt::Display for SystemInterface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} in {namespace}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// Setups of this process that have not been reverted, for [`undo_all`].
static OPEN: Mutex<Vec<Arc<Mutex<Journal>>>> = Mutex::new(Vec::new());

/// Changes to the machine. Dropping it reverts them, as far as the system permits.
///
/// Programs that exit on a signal without dropping their values call [`undo_all`] before.
#[derive(Debug)]
pub struct Setup {
    journal: Arc<Mutex<Journal>>,
    done: bool,
}

impl Setup {
    /// An empty setup for the purpose `name`.
    ///
    /// # Errors
    /// The journal cannot be written: [`state_folder`] requires root.
    pub fn begin(name: &str) -> Result<Self, SystemError> {
        Ok(Setup::of(Journal::create(&state_folder(), name)?))
    }

    fn of(journal: Journal) -> Self {
        let journal = Arc::new(Mutex::new(journal));
        OPEN.lock().unwrap_or_else(PoisonError::into_inner).push(journal.clone());
        Setup { journal, done: false }
    }

    /// The setup of this name, of a process that has ended or has [kept](Setup::keep) it.
    ///
    /// # Errors
    /// There is none.
    pub fn take_over(name: &str) -> Result<Self, SystemError> {
        let fits = |journal: &Journal| journal.name == name && (journal.kept || !journal.is_alive());
        let found = journals().into_iter().find(fits);
        found.map(Setup::of).ok_or_else(|| SystemError::Unknown(name.to_owned()))
    }

    /// How to revert each change, the first first.
    pub fn steps(&self) -> Vec<SystemUndo> {
        self.locked(|journal| journal.steps.clone())
    }

    fn locked<T>(&self, work: impl FnOnce(&mut Journal) -> T) -> T {
        work(&mut self.journal.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Records how to revert a change, then makes it.
    fn step<T>(
        &self,
        undo: SystemUndo,
        work: impl FnOnce() -> Result<T, SystemError>,
    ) -> Result<T, SystemError> {
        let undo = undo.bound_to_interface();
        self.locked(|journal| {
            journal.steps.push(undo);
            let done = journal.write().and_then(|()| work());
            if done.is_err() {
                journal.steps.pop();
                let _ = journal.write();
            }
            done
        })
    }

    fn ip(&self, undo: SystemUndo, namespace: Option<&str>, line: &str) -> Result<(), SystemError> {
        self.step(undo, || tool::run(&tool::line("ip", namespace, line)).map(drop))
    }

    /// Creates a directory in a BPF file system for pinned objects, which are removed with it.
    ///
    /// # Errors
    /// See [`SystemError`].
    pub fn pins(&self, folder: &Path) -> Result<(), SystemError> {
        if folder.exists() {
            return Err(SystemError::InUse(format!("a folder {}", folder.display())));
        }
        self.step(SystemUndo::Pins(folder.to_owned()), || {
            std::fs::create_dir(folder)
                .map_err(|error| SystemError::System { what: format!("make {}", folder.display()), error })
        })
    }

    /// Creates a network namespace, with its loopback interface up.
    ///
    /// # Errors
    /// See [`SystemError`].
    pub fn namespace(&self, name: &str) -> Result<(), SystemError> {
        if !is_interface_name(name) {
            return Err(SystemError::BadName(name.to_owned()));
        }
        if namespace::path(name).exists() {
            return Err(SystemError::InUse(format!("a network namespace `{name}`")));
        }
        self.step(SystemUndo::Namespace(name.to_owned()), || namespace::make(name))?;
        tool::run(&tool::line("ip", Some(name), "link set lo up")).map(drop)
    }

    fn must_be_new(&self, interface: &SystemInterface) -> Result<(), SystemError> {
        if !is_interface_name(&interface.name) {
            return Err(SystemError::BadName(interface.name.clone()));
        }
        if interface.exists() {
            return Err(SystemError::InUse(format!("an interface `{interface}`")));
        }
        Ok(())
    }

    /// Creates a veth pair. Both interfaces are down.
    ///
    /// # Errors
    /// See [`SystemError`].
    pub fn veth(&self, a: &SystemInterface, b: &SystemInterface) -> Result<(), SystemError> {
        self.must_be_new(a)?;
        self.must_be_new(b)?;
        let end = |end: &SystemInterface| match &end.namespace {
            Some(namespace) => format!("{} netns {namespace}", end.name),
            None => end.name.clone(),
        };
        // The other end is removed with it.
        self.ip(
            SystemUndo::Link(a.clone()),
            None,
            &format!("link add name {} type veth peer name {}", end(a), end(b)),
        )
    }

    /// Creates a bridge of the kernel, up, with these ports.
    ///
    /// # Errors
    /// See [`SystemError`].
    pub fn bridge(&self, bridge: &SystemInterface, ports: &[&str]) -> Result<(), SystemError> {
        self.must_be_new(bridge)?;
        let namespace = bridge.namespace.as_deref();
        self.ip(
            SystemUndo::Link(bridge.clone()),
            namespace,
            &format!("link add name {} type bridge", bridge.name),
        )?;
        for port in ports {
            let port = SystemInterface { namespace: bridge.namespace.clone(), name: (*port).to_owned() };
            let undo = self.tool_undo(&port, "ip", &format!("link set dev {} nomaster", port.name));
            self.ip(undo, namespace, &format!("link set dev {} master {}", port.name, bridge.name))?;
        }
        self.up(bridge)
    }

    fn tool_undo(&self, interface: &SystemInterface, program: &str, line: &str) -> SystemUndo {
        SystemUndo::Tool(interface.clone(), tool::line(program, interface.namespace.as_deref(), line))
    }

    /// Adds an address with its prefix length to an interface. It is usable at once, without duplicate
    /// address detection.
    ///
    /// # Errors
    /// See [`SystemError`].
    pub fn address(&self, interface: &SystemInterface, address: IpAddr, bits: u8) -> Result<(), SystemError> {
        let what = format!("{address}/{bits} dev {}", interface.name);
        let nodad = if address.is_ipv6() { " nodad" } else { "" };
        let undo = self.tool_undo(interface, "ip", &format!("address delete {what}"));
        self.ip(undo, interface.namespace.as_deref(), &format!("address add {what}{nodad}"))
    }

    /// Adds a route to a prefix, or the default route if `to` is `default`, through a router or directly
    /// through an interface.
    ///
    /// # Errors
    /// See [`SystemError`].
    pub fn route(
        &self,
        interface: &SystemInterface,
        to: &str,
        via: Option<IpAddr>,
    ) -> Result<(), SystemError> {
        let via = via.map_or(String::new(), |via| format!(" via {via}"));
        let family = if to.contains(':') || via.contains(':') { "-6 " } else { "" };
        let what = format!("{to}{via} dev {}", interface.name);
        let undo = self.tool_undo(interface, "ip", &format!("{family}route delete {what}"));
        self.ip(undo, interface.namespace.as_deref(), &format!("{family}route add {what}"))
    }

    /// Brings an interface up.
    ///
    /// # Errors
    /// See [`SystemError`].
    pub fn up(&self, interface: &SystemInterface) -> Result<(), SystemError> {
        let namespace = interface.namespace.as_deref();
        let up = format!("link set dev {} up", interface.name);
        let shown = tool::run(&tool::line("ip", namespace, &format!("-o link show dev {}", interface.name)))?;
        let was_up =
            shown.split(['<', '>']).nth(1).is_some_and(|flags| flags.split(',').any(|flag| flag == "UP"));
        if was_up {
            return Ok(());
        }
        let undo = self.tool_undo(interface, "ip", &format!("link set dev {} down", interface.name));
        self.ip(undo, namespace, &up)
    }

    /// Sets the MTU of an interface, in bytes.
    ///
    /// # Errors
    /// See [`SystemError`].
    pub fn mtu(&self, interface: &SystemInterface, mtu: u16) -> Result<(), SystemError> {
        let namespace = interface.namespace.as_deref();
        let shown = tool::run(&tool::line("ip", namespace, &format!("-o link show dev {}", interface.name)))?;
        let before = shown.split_whitespace().skip_while(|word| *word != "mtu").nth(1).unwrap_or("1500");
        let undo = self.tool_undo(interface, "ip", &format!("link set dev {} mtu {before}", interface.name));
        self.ip(undo, namespace, &format!("link set dev {} mtu {mtu}", interface.name))
    }

    /// Switches off the offloads of an interface, so that packets pass unchanged. Returns the offloads that
    /// were on before. Offloads that the interface cannot switch off stay on, for instance GSO for
    /// super-segments of programs.
    ///
    /// # Errors
    /// See [`SystemError`].
    pub fn offload_off(&self, interface: &SystemInterface) -> Result<Vec<Offload>, SystemError> {
        let what =
            |error| SystemError::System { what: format!("switch offloads of `{interface}` off"), error };
        let namespace = interface.namespace.as_deref();
        let on = in_namespace(namespace, || {
            let is_on = |which: &Offload| offload(&interface.name, *which).map(|on| on.then_some(*which));
            Offload::ALL.iter().map(is_on).collect::<io::Result<Vec<_>>>().map_err(what)
        })?;
        let on: Vec<_> = on.into_iter().flatten().collect();
        if !on.is_empty() {
            self.step(SystemUndo::Offload(interface.clone(), on.clone()), || {
                in_namespace(namespace, || {
                    on.iter().try_for_each(|which| set_offload(&interface.name, *which, false)).map_err(what)
                })
            })?;
        }
        Ok(on)
    }

    /// Sets a kernel parameter, such as `net.ipv4.ip_forward`, in a namespace.
    ///
    /// # Errors
    /// See [`SystemError`].
    pub fn sysctl(&self, namespace: Option<&str>, name: &str, value: &str) -> Result<(), SystemError> {
        let before = in_namespace(namespace, || sysctl::read(name))?;
        if before == value {
            return Ok(());
        }
        let undo = SystemUndo::Sysctl {
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
            value: before,
        };
        self.step(undo, || in_namespace(namespace, || sysctl::write(name, value)))
    }

    /// Sets the root queueing discipline of an interface, in the syntax of `tc`: `tbf rate 100mbit burst 32k
    /// limit 1m`.
    ///
    /// # Errors
    /// See [`SystemError`].
    pub fn qdisc(&self, interface: &SystemInterface, words: &str) -> Result<(), SystemError> {
        let undo = self.tool_undo(interface, "tc", &format!("qdisc delete dev {} root", interface.name));
        let line = format!("qdisc add dev {} root {words}", interface.name);
        self.step(undo, || tool::run(&tool::line("tc", interface.namespace.as_deref(), &line)).map(drop))
    }

    /// Reverts all changes now.
    ///
    /// # Errors
    /// Changes that could not be reverted; `farpace doctor --clean` tries again.
    pub fn undo(mut self) -> Result<(), Vec<SystemError>> {
        self.done = true;
        self.forget();
        self.locked(|journal| journal.undo(&[]))
    }

    /// As [`undo`](Setup::undo), for a process that goes on: what could not be reverted stays here, and can
    /// be tried again.
    ///
    /// # Errors
    /// Changes that could not be reverted.
    pub fn try_undo(&mut self) -> Result<(), Vec<SystemError>> {
        self.locked(|journal| journal.undo(&[]))
    }

    /// Keeps all changes after the process has ended; [`take_over`](Setup::take_over) resumes the setup.
    ///
    /// # Errors
    /// The journal cannot be written; all changes are reverted.
    pub fn keep(mut self) -> Result<(), SystemError> {
        self.locked(|journal| {
            journal.kept = true;
            journal.write()
        })?;
        self.done = true;
        self.forget();
        Ok(())
    }

    fn forget(&self) {
        OPEN.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|other| !Arc::ptr_eq(other, &self.journal));
    }
}

impl Drop for Setup {
    fn drop(&mut self) {
        if !self.done {
            self.forget();
            // Errors cannot be returned here; the journal keeps the changes that could not be reverted.
            let _ = self.locked(|journal| journal.undo(&[]));
        }
    }
}

/// Reverts all changes of this process that are not [kept](Setup::keep), for exits without dropping values.
pub fn undo_all() {
    let open = std::mem::take(&mut *OPEN.lock().unwrap_or_else(PoisonError::into_inner));
    for journal in open {
        let _ = journal.lock().unwrap_or_else(PoisonError::into_inner).undo(&[]);
    }
}
