//! Creates the port for a launched command: a pipe with an unpredictable name that only the current user can access.

use std::path::PathBuf;

use runtap_diag::ports::Port;
use runtap_os::random_u64;

use crate::Error;

/// The directory of a port. Not needed on this system.
#[derive(Debug)]
pub(crate) struct PortDirectory;

/// Listens under a new name.
pub(crate) fn make() -> Result<(PortDirectory, Port), Error> {
    Ok((PortDirectory, Port::bind(PathBuf::from(format!("runtap-{:016x}", random_u64())))?))
}
