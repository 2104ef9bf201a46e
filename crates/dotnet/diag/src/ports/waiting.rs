//! Finds the processes that are suspended at startup and the ports that they wait for, by their environment and state.
//! [`Port::resume_all`](super::Port::resume_all) resumes them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use runtap_diag_proto::diagnostic_ports::{self, DiagnosticPort};
use runtap_discover::{Environment, FileView, Options, Startup};
use runtap_transport::{BindError, BindOptions, Exposure, Folder, Listener};

use super::Port;

/// A port for which a process waits, as the process specifies it.
#[derive(Debug, Clone)]
pub struct SuspendPort {
    /// The path from the caller's view.
    path: PathBuf,
    /// The directory of the port. `None` if it is not accessible.
    folder: Option<Folder>,
    /// The identity of the place, independent of the path.
    identity: Option<PortIdentity>,
    /// The user of the process.
    uid: u32,
    /// Whether the user may create files in the directory.
    writable: bool,
    /// Whether the directory is writable only for the caller, and at an equal path for both.
    own: bool,
}

/// A name in a directory, which is identified by its device and inode. The directory exists, but the socket may not.
type PortIdentity = (u64, u64, OsString);

impl SuspendPort {
    /// Creates a port. `None` if the path is not a name in an existing directory.
    fn of(view: &FileView, theirs: &Path, uid: u32) -> io::Result<Option<Self>> {
        let Some(name) = theirs.file_name() else { return Ok(None) };
        let (folder, writable) = match view.passable_folder(theirs) {
            Ok((folder, writable)) => (Some(folder), writable),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => (None, false),
            Err(error) => return Err(error),
        };
        let own = folder.as_ref().and_then(|folder| own_folder(theirs, folder));
        let path = own.as_ref().map_or_else(|| view.shown(theirs), |own| own.path().join(name));
        let (is_own, folder) = (own.is_some(), own.or(folder));
        let identity = folder.as_ref().and_then(|folder| folder_identity(folder).ok());
        let identity = identity.map(|(device, inode)| (device, inode, name.to_owned()));
        Ok(Some(Self { path, folder, identity, uid, writable, own: is_own }))
    }

    /// Returns the path from the caller's view.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether only the caller (and root) can have created files in its directory or the links on the way there. Any
    /// socket there then belongs to the caller, perhaps to a process that was killed.
    pub fn is_in_own_folder(&self) -> bool {
        self.own
    }

    /// Returns whether the path, named by a process of the caller's user, contains a link of another user, which could lead
    /// to an unintended socket of the caller. A process's own links lead only to places where it has rights itself.
    pub fn has_foreign_link(&self) -> bool {
        self.uid == own_uid() && self.folder.as_ref().is_some_and(Folder::is_behind_foreign_link)
    }

    fn owner(&self) -> Option<u32> {
        let (_, _, name) = self.identity.as_ref()?;
        self.folder.as_ref()?.stat(name).ok().map(|stat| stat.st_uid)
    }

    /// Listens there, for processes of all users, because any user's processes may wait. A process names the port in a
    /// variable, which gives it no right to create or replace the caller's files: that is done only where its user could do
    /// it, and if `trusted` allows replacing a stale socket [in a directory of the caller](Self::is_in_own_folder).
    ///
    /// # Errors
    /// `PermissionDenied` in [`BindError::Io`] if the user of the process has no right, or if the path contains
    /// [a foreign link](Self::has_foreign_link); otherwise the errors of binding.
    pub fn bind(&self, trusted: bool) -> Result<Port, BindError> {
        let refused = |why| {
            let source = io::Error::new(io::ErrorKind::PermissionDenied, why);
            BindError::Io { path: self.path.clone(), source }
        };
        let own = trusted && self.own;
        let foreign = self.owner().is_some_and(|owner| owner != self.uid);
        let allowed = self.uid == own_uid() || own || self.writable && !foreign;
        let Some((folder, (_, _, name))) =
            self.folder.as_ref().zip(self.identity.as_ref()).filter(|_| allowed)
        else {
            return Err(refused(
                "the user of the process has no right to the existing file, so it is not replaced",
            ));
        };
        if self.has_foreign_link() {
            return Err(refused("a symbolic link in the path belongs to another user, who could change it"));
        }
        let options = BindOptions::default().everybody(true).stale_of(self.uid).keeps_name(true);
        Ok(Port::on(Listener::bind_in(folder, name, options)?))
    }
}

/// Returns the directory of a port if only the caller can have created files in it, by the caller's own path. The process
/// may see another directory at that path, because it may have another root.
fn own_folder(theirs: &Path, found: &Folder) -> Option<Folder> {
    let path = theirs.parent().filter(|path| path.is_absolute())?;
    let folder = Folder::open(path).ok()?;
    let own = folder.exposure() == Exposure::Private && folder.owner().is_ok_and(|owner| owner == own_uid());
    let same = folder_identity(&folder).ok()? == folder_identity(found).ok()?;
    (own && same).then_some(folder)
}

/// Returns the device and inode.
fn folder_identity(folder: &Folder) -> io::Result<(u64, u64)> {
    let stat = rustix::fs::fstat(folder)?;
    Ok((stat.st_dev, stat.st_ino))
}

fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Returns the ports that the runtime of process `pid` waits for before it runs. Empty if the process was not configured
/// to wait, or if its environment is not readable; includes ports over which it was resumed already. Each place occurs
/// once.
///
/// # Errors
/// If the process may not be inspected.
pub fn waited_for(pid: u32) -> io::Result<Vec<SuspendPort>> {
    let Ok((Environment { ports: Some(value), .. }, uid)) = runtap_discover::environment(pid) else {
        return Ok(Vec::new());
    };
    let view = runtap_discover::file_view(pid)?;
    let (mut ports, mut places) = (Vec::new(), BTreeSet::new());
    for port in awaited(value.as_bytes()) {
        let theirs = PathBuf::from(OsString::from_vec(port.address.to_vec()));
        let port = SuspendPort::of(&view, &theirs, uid)?;
        // An unknown place is different from all others.
        let is_new =
            |port: &SuspendPort| port.identity.clone().is_none_or(|identity| places.insert(identity));
        ports.extend(port.filter(is_new));
    }
    Ok(ports)
}

/// Returns the ports in a process's variable that are inspected, each once. The number is limited, because a process may
/// name ten thousand ports with paths that take long to resolve.
pub fn awaited(value: &[u8]) -> impl Iterator<Item = DiagnosticPort<'_>> {
    const MAX_PORTS: usize = 16;
    let mut known = BTreeSet::new();
    let all = diagnostic_ports::parse(value).filter(DiagnosticPort::is_waited_for);
    all.filter(move |port| known.insert(port.address)).take(MAX_PORTS)
}

/// Returns all processes that wait for one of these ports, each with the index of every port that it waits for. Inspects
/// every process once.
pub fn waiting_for(ports: &[SuspendPort]) -> BTreeSet<(u32, usize)> {
    let indexed = ports.iter().enumerate();
    let awaited: BTreeMap<&PortIdentity, usize> =
        indexed.filter_map(|(index, port)| Some((port.identity.as_ref()?, index))).collect();
    let mut waiting = BTreeSet::new();
    for process in runtap_discover::processes(Options::default()) {
        let pid = process.pid;
        // Most processes run: stop inspecting them here.
        if runtap_discover::startup(pid) != Startup::Waiting {
            continue;
        }
        // A process that cannot be inspected is assumed to wait for another port.
        let theirs = waited_for(pid).unwrap_or_default();
        let indexes = theirs.iter().filter_map(|port| awaited.get(port.identity.as_ref()?));
        waiting.extend(indexes.map(|index| (pid, *index)));
    }
    waiting
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_inspected_ports_is_limited() {
        let addresses = |value: &[u8]| -> Vec<String> {
            awaited(value).map(|port| String::from_utf8_lossy(port.address).into_owned()).collect()
        };
        assert_eq!(addresses(b"/a;/b,nosuspend;/c;/a"), ["/a", "/c"]);
        assert_eq!(addresses("/p;".repeat(32_000).as_bytes()), ["/p"]);
        let many: Vec<String> = (0..2_300).map(|n| format!("/n/{n}")).collect();
        assert_eq!(addresses(many.join(";").as_bytes()).len(), 16);
    }
}
