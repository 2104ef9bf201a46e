//! The port of a command that is started, where there is none.

use std::path::Path;

use runtap_diag::ports::Port;

use crate::Error;

/// The folder of a port of ours: there is none.
#[derive(Debug)]
pub(crate) struct PortDirectory;

/// Fails: it can't be done here.
pub(crate) fn make() -> Result<(PortDirectory, Port), Error> {
    Ok((PortDirectory, Port::bind(Path::new("runtap"))?))
}
