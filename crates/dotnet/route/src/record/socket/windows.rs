//! A pipe with a unique or a chosen name. Tools can't find the pipe by the id of the recorded process, which owns the pipe with
//! that name.

use std::path::{Path, PathBuf};

use runtap_os::random_u64;
use runtap_transport::naming::SocketName;
use runtap_transport::{BindOptions, Listener};

use super::{RecorderSocket, SocketError};

pub(super) fn listen(
    at: Option<&Path>,
    _name: Option<SocketName>,
) -> Result<(RecorderSocket, Listener), SocketError> {
    let own = || PathBuf::from(format!("runtap-{:016x}", random_u64()));
    let listener = Listener::bind(at.map_or_else(own, Path::to_owned), BindOptions::default())?;
    Ok((RecorderSocket { path: listener.path().to_owned(), private_directory: None }, listener))
}

pub(super) fn directory(_path: &Path) -> Option<&Path> {
    None
}
