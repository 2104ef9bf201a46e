//! Who waits at its start for which port: by the variable that it was started with, and by how far it has come.
//! Looks only; [`Port::resume_all`](super::Port::resume_all) is what frees them.

use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use runtap_diag_proto::diagnostic_ports;
use runtap_transport::discover::{self, Facts, Options, Startup};

/// The ports without which a runtime does not go on, as paths that we can listen on. Empty for one that was not told to
/// wait, and where its environment may not be read; those that it was resumed over already are among them.
///
/// # Errors
/// When we may not look into the process.
pub fn waited_for(facts: &Facts) -> io::Result<Vec<PathBuf>> {
    let Some(value) = facts.environment.as_ref().and_then(|environment| environment.ports.as_deref()) else {
        return Ok(Vec::new());
    };
    let view = discover::file_view(facts.pid)?;
    let mut paths = Vec::new();
    for port in
        diagnostic_ports::parse(value.as_bytes()).filter(diagnostic_ports::DiagnosticPort::is_waited_for)
    {
        let theirs = PathBuf::from(std::ffi::OsString::from_vec(port.address.to_vec()));
        paths.push(view.to_host(&theirs)?);
    }
    Ok(paths)
}

/// All processes that wait for `port`, a path of ours.
pub fn waiting_for(port: &Path) -> Vec<u32> {
    let processes = discover::processes(Options::default()).into_iter();
    let waits = |pid: &u32| {
        let facts = discover::facts(*pid);
        facts.startup == Startup::Waiting
            && waited_for(&facts).is_ok_and(|ports| ports.iter().any(|other| is_same(other, port)))
    };
    processes.map(|process| process.pid).filter(waits).collect()
}

/// Whether two paths name the same place. The socket itself may be gone, its folder is not.
fn is_same(a: &Path, b: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let place = |path: &Path| {
        let meta = std::fs::metadata(path.parent()?).ok()?;
        Some((meta.dev(), meta.ino(), path.file_name()?.to_owned()))
    };
    a == b || place(a).is_some_and(|a| Some(a) == place(b))
}
