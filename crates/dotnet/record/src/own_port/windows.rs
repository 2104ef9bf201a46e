//! The port of a command that is started: a pipe with a name that nobody can foresee, for our user alone.

use std::path::PathBuf;

use runtap_diag::ports::Port;
use runtap_os::random_u64;

use crate::Error;

/// What belongs to a port besides its name: nothing.
#[derive(Debug)]
pub(crate) struct PortDirectory;

/// Listens under a new name.
pub(crate) fn make() -> Result<(PortDirectory, Port), Error> {
    Ok((PortDirectory, Port::bind(PathBuf::from(format!("runtap-{:016x}", random_u64())))?))
}
