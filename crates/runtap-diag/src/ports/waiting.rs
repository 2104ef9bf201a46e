//! Who waits at its start for which port: by the variable that it was started with, and by how far it has come.
//! Looks only; [`Port::resume_all`](super::Port::resume_all) is what frees them.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use runtap_diag_proto::diagnostic_ports;
use runtap_transport::discover::{self, Facts, FileView, Options, Startup};
use runtap_transport::{BindError, BindOptions, Exposure, Folder, Listener};

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
    /// Whether the folder is one of ours, at the same path.
    ours: bool,
}

impl SuspendPort {
    /// `None` for what is no name in a folder that is there.
    fn of(view: &FileView, theirs: &Path, uid: u32) -> io::Result<Option<Self>> {
        let Some(name) = theirs.file_name() else { return Ok(None) };
        let name = name.to_owned();
        match view.passable_folder(theirs) {
            Ok((folder, writable)) => Ok(Some(if let Some(folder) = of_ours(theirs, &folder) {
                let path = folder.path().join(&name);
                Self { path, folder: Some(folder), name, uid, writable, ours: true }
            } else {
                let path = view.shown(theirs);
                Self { path, folder: Some(folder), name, uid, writable, ours: false }
            })),
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound => Ok(None),
                io::ErrorKind::PermissionDenied => {
                    let path = view.shown(theirs);
                    Ok(Some(Self { path, folder: None, name, uid, writable: false, ours: false }))
                }
                _ => Err(error),
            },
        }
    }

    /// What it is called from here.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether only we (and root) can have made anything in its folder, or laid the way there: then what is there is ours
    /// or of one of ours that was killed, whoever names it.
    pub fn is_in_folder_of_ours(&self) -> bool {
        self.ours
    }

    /// Whether the way of a process of our own user has a link of somebody else: it could lead to something of ours that is
    /// not meant. A link of its own user leads the process of another one nowhere where it has no rights itself.
    pub fn leads_astray(&self) -> bool {
        self.uid == us() && self.folder.as_ref().is_some_and(Folder::is_behind_link_of_others)
    }

    fn owner(&self) -> Option<u32> {
        self.folder.as_ref()?.stat(&self.name).ok().map(|stat| stat.st_uid)
    }

    /// Listens there, for processes of every user: those who wait may be anybody's. A variable of the process names the
    /// port, which gives it no right to have something of ours made or replaced: that is done only where its user could do
    /// it, and where `trusted` says that a stale socket [in a folder of ours](Self::is_in_folder_of_ours) may be replaced.
    ///
    /// # Errors
    /// `PermissionDenied` in [`BindError::Io`] where its user has no right, and where the way [leads
    /// astray](Self::leads_astray); the other ones of binding.
    pub fn bind(&self, trusted: bool) -> Result<Port, BindError> {
        let refused = |why| {
            let source = io::Error::new(io::ErrorKind::PermissionDenied, why);
            BindError::Io { path: self.path.clone(), source }
        };
        let ours = trusted && self.ours;
        let foreign = self.owner().is_some_and(|owner| owner != self.uid);
        let allowed = self.uid == us() || ours || self.writable && !foreign;
        let Some(folder) = self.folder.as_ref().filter(|_| allowed) else {
            return Err(refused(
                "the user of the process has no right to what is there, so nothing is replaced",
            ));
        };
        if self.leads_astray() {
            return Err(refused("a link on the way there belongs to another user, who can lay it elsewhere"));
        }
        let options = BindOptions::default().everybody(true).stale_of(self.uid).keeps_name(true);
        Ok(Port::on(Listener::bind_in(folder, &self.name, options)?))
    }

    /// Whether both are the same place. The socket itself may be gone, its folder is not.
    fn is_same(&self, other: &Self) -> bool {
        let (Some(one), Some(another)) = (&self.folder, &other.folder) else { return false };
        self.name == other.name && is_same(one, another)
    }
}

/// The folder of a port in which only we can have made anything: by the way that we go there ourselves. That the process
/// goes to the same folder by that path is no matter of course: it may have another root.
fn of_ours(theirs: &Path, found: &Folder) -> Option<Folder> {
    let path = theirs.parent().filter(|path| path.is_absolute())?;
    let folder = Folder::open(path).ok()?;
    let ours = folder.exposure() == Exposure::Private && folder.owner().is_ok_and(|owner| owner == us());
    (ours && is_same(&folder, found)).then_some(folder)
}

fn is_same(one: &Folder, other: &Folder) -> bool {
    let identity = |folder: &Folder| rustix::fs::fstat(folder).map(|stat| (stat.st_dev, stat.st_ino));
    identity(one).is_ok_and(|it| Ok(it) == identity(other))
}

fn us() -> u32 {
    rustix::process::geteuid().as_raw()
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
        // Most of them run: then nothing more is looked at.
        discover::startup(*pid) == Startup::Waiting
            && waited_for(&discover::facts(*pid))
                .is_ok_and(|ports| ports.iter().any(|other| other.is_same(port)))
    };
    processes.map(|process| process.pid).filter(waits).collect()
}
