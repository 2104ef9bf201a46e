//! Problems of the machine, on Linux.

use std::path::{Path, PathBuf};

use crate::doctor::Finding;
use runtap_discover::System;
use runtap_os::in_a_thread;
use runtap_transport::Folder;

use crate::error::Error;

/// Returns the problems of the machine.
pub(super) async fn machine(system: System) -> Result<Vec<Finding>, Error> {
    let look = move || {
        let machine = system.machine();
        let leftovers: Vec<PathBuf> =
            machine.leftovers.iter().filter(|path| is_dead(path)).cloned().collect();
        (machine, leftovers)
    };
    let (machine, leftovers) = in_a_thread(look).await?;
    Ok(crate::doctor::machine(&machine, &leftovers))
}

/// Whether certainly nothing listens on a socket, so that its file may be deleted. Does not follow symbolic links.
fn is_dead(path: &Path) -> bool {
    let (folder, name) = (path.parent().map(Folder::open), path.file_name());
    matches!((folder, name), (Some(Ok(folder)), Some(name)) if folder.is_dead_socket(name))
}
