//! What stays in the kernel, and who takes it away.

use crate::error::KernelServiceError;
use farpace_kernel::{KernelControl, ends_with_owner, unregister};
use farpace_live::system::{Journal, Setup, SystemError, journals};

/// The name of our setups.
pub const NAME: &str = "kernel";
/// The folder of pinned programs in the BPF file system.
pub const FOLDER: &str = "farpace";

/// Setups of ours that hold, by a process that runs or because they were kept.
pub fn held() -> Option<Journal> {
    journals().into_iter().find(|journal| journal.name == NAME && !journal.is_left_over())
}

/// Controls that are registered without anybody who holds them: kernels before Linux 6.4 keep those of
/// processes that were killed. `clean` takes them away; what was found, in words.
///
/// # Errors
/// The kernel does not let them go.
pub fn leftovers(clean: bool) -> Result<Vec<String>, KernelServiceError> {
    // Later kernels let them go with their owners; where a setup holds they are in use.
    if ends_with_owner() || held().is_some() || !clean {
        return Ok(Vec::new());
    }
    let gone = unregister().map_err(KernelServiceError::Leftovers)?;
    Ok(gone.into_iter().map(|control: KernelControl| format!("congestion control {control}")).collect())
}

/// Takes back what was kept under a name, as often as there is something; how often.
///
/// # Errors
/// The system does not change back.
pub fn take_back(name: &str) -> Result<usize, KernelServiceError> {
    let mut count = 0;
    loop {
        let setup = match Setup::take_over(name) {
            Ok(setup) => setup,
            Err(SystemError::Unknown(_)) => return Ok(count),
            Err(error) => return Err(error.into()),
        };
        if let Err(errors) = setup.undo() {
            let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
            return Err(KernelServiceError::Refused(errors.join("; ")));
        }
        count += 1;
    }
}
