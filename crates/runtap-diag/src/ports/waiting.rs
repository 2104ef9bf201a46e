//! Who waits at its start for which port: by the variable that it was started with, and by how far it has come.
//! Looks only; [`Port::resume_all`](super::Port::resume_all) is what frees them.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use runtap_diag_proto::diagnostic_ports;
use runtap_transport::discover::{self, Facts, FileView, Options, Startup};
use runtap_transport::{BindError, BindOptions, Folder, Listener};

use super::Port;

/// A port for which a process waits: where the process has it, whoever that process is.
#[derive(Debug, Clone)]
pub struct SuspendPort {
    /// What it is called from here.
    path: PathBuf,
    /// Gone where the process itself can't get to.
    folder: Option<Folder>,
    name: OsString,
    /// The user of the process.
    uid: u32,
    /// Whether that user may make something in the folder.
    writable: bool,
}

impl SuspendPort {
    /// `None` for what is no name in a folder that is there.
    fn of(view: &FileView, theirs: &Path, uid: u32) -> io::Result<Option<Self>> {
        let Some(name) = theirs.file_name() else { return Ok(None) };
        let (name, path) = (name.to_owned(), view.shown(theirs));
        match view.passable_folder(theirs) {
            Ok((folder, writable)) => Ok(Some(Self { path, folder: Some(folder), name, uid, writable })),
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound => Ok(None),
                io::ErrorKind::PermissionDenied => {
                    Ok(Some(Self { path, folder: None, name, uid, writable: false }))
                }
                _ => Err(error),
            },
        }
    }

    /// What it is called from here.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a socket of our own user is there: one of ours has made it, and may have been killed.
    pub fn is_made_by_us(&self) -> bool {
        self.owner() == Some(rustix::process::geteuid().as_raw())
    }

    fn owner(&self) -> Option<u32> {
        self.folder.as_ref()?.stat(&self.name).ok().map(|stat| stat.st_uid)
    }

    /// Listens there, for processes of every user: those who wait may be anybody's. A variable of the process names the
    /// port, which gives it no right to have something of ours made or replaced: that is done only where its user could do
    /// it, and where `trusted` says that a stale socket of our own user may be replaced.
    ///
    /// # Errors
    /// `PermissionDenied` in [`BindError::Io`] where its user has no right; the other ones of binding.
    pub fn bind(&self, trusted: bool) -> Result<Port, BindError> {
        let me = rustix::process::geteuid().as_raw();
        let ours = trusted && self.is_made_by_us();
        let foreign = self.owner().is_some_and(|owner| owner != self.uid);
        let allowed = self.uid == me || ours || self.writable && !foreign;
        let Some(folder) = self.folder.as_ref().filter(|_| allowed) else {
            let source = io::Error::new(
                io::ErrorKind::PermissionDenied,
                "the user of the process has no right to what is there, so nothing is replaced",
            );
            return Err(BindError::Io { path: self.path.clone(), source });
        };
        let options = BindOptions::default().everybody(true).stale_of(self.uid);
        Ok(Port::on(Listener::bind_in(folder, &self.name, options)?))
    }

    /// Whether both are the same place. The socket itself may be gone, its folder is not.
    fn is_same(&self, other: &Self) -> bool {
        let identity = |port: &Self| {
            let stat = rustix::fs::fstat(port.folder.as_ref()?).ok()?;
            Some((stat.st_dev, stat.st_ino))
        };
        self.name == other.name && identity(self).is_some_and(|it| Some(it) == identity(other))
    }
}

/// The ports without which a runtime does not go on. Empty for one that was not told to wait, and where its environment
/// may not be read; those that it was resumed over already are among them.
///
/// # Errors
/// When we may not look into the process.
pub fn waited_for(facts: &Facts) -> io::Result<Vec<SuspendPort>> {
    let Some(value) = facts.environment.as_ref().and_then(|environment| environment.ports.as_deref()) else {
        return Ok(Vec::new());
    };
    let view = discover::file_view(facts.pid)?;
    let mut ports = Vec::new();
    for port in
        diagnostic_ports::parse(value.as_bytes()).filter(diagnostic_ports::DiagnosticPort::is_waited_for)
    {
        let theirs = PathBuf::from(OsString::from_vec(port.address.to_vec()));
        ports.extend(SuspendPort::of(&view, &theirs, facts.uid)?);
    }
    Ok(ports)
}

/// All processes that wait for a port.
pub fn waiting_for(port: &SuspendPort) -> Vec<u32> {
    let processes = discover::processes(Options::default()).into_iter();
    let waits = |pid: &u32| {
        let facts = discover::facts(*pid);
        facts.startup == Startup::Waiting
            && waited_for(&facts).is_ok_and(|ports| ports.iter().any(|other| other.is_same(port)))
    };
    processes.map(|process| process.pid).filter(waits).collect()
}
