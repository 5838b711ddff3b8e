//! A systemd unit with a watchdog, and a configuration.

use super::config::{GatewayFile, example};
use anyhow::{Context, Result, bail};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Where the configuration and the unit are, below the root.
const CONFIG: &str = "etc/farpace/gateway.toml";
const UNIT: &str = "etc/systemd/system/farpace-gateway.service";

/// A file of an installed gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstallFile {
    /// Where it is.
    pub path: PathBuf,
    /// What it says.
    pub text: String,
    mode: u32,
}

/// The files of an installed gateway below `root`, that systemd starts with `program`: the configuration for
/// these sides, and the unit.
///
/// # Errors
/// Sides that make no gateway, or a program that systemd could not start.
pub fn files(
    root: &Path,
    program: &Path,
    lan: &[String],
    wan: &[String],
    peer: Option<&Path>,
    via: &[String],
) -> Result<[InstallFile; 2]> {
    let config = example(lan, wan, peer, via);
    GatewayFile::parse(&config)?.check()?;
    let unit = unit(program)?;
    Ok([
        InstallFile { path: root.join(CONFIG), text: config, mode: 0o600 },
        InstallFile { path: root.join(UNIT), text: unit, mode: 0o644 },
    ])
}

impl InstallFile {
    /// Writes it, and the directories that it is in.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self) -> Result<()> {
        write(&self.path, &self.text, self.mode)
    }
}

fn write(path: &Path, text: &str, mode: u32) -> Result<()> {
    let shown = path.display().to_string();
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let mut file = OpenOptions::new();
    file.write(true).create(true).truncate(true).mode(mode);
    let written = file.open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.with_context(|| format!("cannot write {shown}"))
}

/// The unit of systemd.
fn unit(program: &Path) -> Result<String> {
    let program = program.to_str().context("the path of this program is no text")?;
    if program.contains(|c: char| c.is_whitespace() || c == '%' || c == '"') {
        bail!("systemd could not start `{program}`: install it at a path without blanks, quotes and %");
    }
    Ok(format!(
        "\
[Unit]
Description=Split-TCP gateway
Documentation=man:farpace-gateway(1)
Wants=network-online.target
After=network-online.target
# It is needed as long as the router is: systemd does not give up after some failures.
StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=main
ExecStart={program} gateway up --config /{CONFIG}
ExecReload=/bin/kill -HUP $MAINPID
# What a killed gateway has left. Without it connections pass by the kernel all the same.
ExecStopPost={program} doctor --clean
SuccessExitStatus=0 1
WatchdogSec=2
Restart=always
RestartSec=1
# It hands its connections over. Its watchdog ends by itself behind it, and resets hosts of connections
# that a killed gateway has left: systemd must not kill it first.
KillMode=process
TimeoutStopSec=40
RuntimeDirectory=farpace
RuntimeDirectoryMode=0700
RuntimeDirectoryPreserve=yes
# For captures.
LogsDirectory=farpace
LogsDirectoryMode=0700
CapabilityBoundingSet=CAP_NET_ADMIN CAP_NET_RAW
AmbientCapabilities=
NoNewPrivileges=yes
ProtectSystem=strict
ReadWritePaths=/run
ProtectHome=yes
PrivateTmp=yes
ProtectClock=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK AF_PACKET
DeviceAllow=/dev/net/tun rw
DevicePolicy=closed
LimitNOFILE=4096

[Install]
WantedBy=multi-user.target
"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Breaks: a hung gateway is not killed by systemd, or keeps more rights than it needs.
    #[test]
    fn the_unit_has_a_watchdog_and_few_rights() {
        let unit = unit(Path::new("/usr/bin/farpace")).unwrap();
        for line in [
            "ExecStart=/usr/bin/farpace gateway up --config /etc/farpace/gateway.toml",
            "WatchdogSec=2",
            "KillMode=process",
            "StartLimitIntervalSec=0",
            "CapabilityBoundingSet=CAP_NET_ADMIN CAP_NET_RAW",
            "NoNewPrivileges=yes",
        ] {
            assert!(unit.lines().any(|own| own == line), "{line}");
        }
        assert!(super::unit(Path::new("/opt/far pace/farpace")).is_err());
    }
}
