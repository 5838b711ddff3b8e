//! A table of nftables that ends with this process.

use super::{SystemError, tool};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Places of `nft` outside of the search path of ordinary users.
const NFT: [&str; 3] = ["nft", "/usr/sbin/nft", "/sbin/nft"];
/// `nft` has set a table after that, however busy the processor is.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// Time between two calls of `waiting`.
const STEP_MS: u8 = 100;

/// A table of nftables that a process of `nft` owns: it vanishes with this value, and when this process is
/// killed.
#[derive(Debug)]
pub struct OwnedTable(Child);

impl OwnedTable {
    /// Adds the table `inet NAME` with these chains (older nft wants a separator after each). When this
    /// returns, packets pass them. Until then `waiting` is called between its steps, and each 100 ms.
    ///
    /// # Errors
    /// `nft` is not installed, or refuses, or does not set the table within 10 s.
    pub fn add(name: &str, chains: &str, waiting: &mut dyn FnMut()) -> Result<Self, SystemError> {
        waiting();
        let add = format!("add table inet {name} {{ flags owner; {chains}; }}\n");
        tool::feed(&tool::words("nft --check -f -"), &add)?;
        // It does one after the other: what it lists is set.
        let text = format!("{add}list table inet {name}\n");
        let failed = |error| SystemError::System { what: "run `nft`".to_owned(), error };
        for program in NFT {
            let mut command = Command::new(program);
            command.arg("-i").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
            // Ctrl-C must not reach it: connections drain first.
            command.process_group(0);
            let mut table = match command.spawn() {
                Ok(child) => OwnedTable(child),
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(failed(error)),
            };
            // The table is owned by its netlink socket, and its standard input ends with this process.
            let input = table.0.stdin.as_mut().ok_or_else(|| failed(io::ErrorKind::BrokenPipe.into()))?;
            input.write_all(text.as_bytes()).and_then(|()| input.flush()).map_err(failed)?;
            table.wait(waiting).map_err(failed)?;
            return Ok(table);
        }
        Err(SystemError::NoTool("nft".to_owned()))
    }

    /// Waits until the table is listed.
    fn wait(&mut self, waiting: &mut dyn FnMut()) -> io::Result<()> {
        let output = self.0.stdout.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        let end = Instant::now() + MAX_WAIT;
        while Instant::now() < end {
            waiting();
            let mut ready = [PollFd::new(output.as_fd(), PollFlags::POLLIN)];
            match poll(&mut ready, PollTimeout::from(STEP_MS)) {
                Ok(0) | Err(nix::errno::Errno::EINTR) => {}
                // Nothing: it has ended.
                Ok(_) if output.read(&mut [0; 64])? == 0 => return Err(io::ErrorKind::BrokenPipe.into()),
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }
}

impl Drop for OwnedTable {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
