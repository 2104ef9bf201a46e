//! Who waits at its start for which port: by the variable that it was started with, and by how far it has come.
//! Looks only; [`Port::resume_all`](super::Port::resume_all) is what frees them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use runtap_diag_proto::diagnostic_ports::{self, DiagnosticPort};
use runtap_discover::{Environment, FileView, Options, Startup};
use runtap_transport::{BindError, BindOptions, Exposure, Folder, Listener};

use super::Port;

/// A port for which a process waits: where the process has it, whoever that process is.
#[derive(Debug, Clone)]
pub struct SuspendPort {
    /// What it is called from here.
    path: PathBuf,
    /// Gone where the process itself can't get to.
    folder: Option<Folder>,
    /// The same place has the same one, by whatever path.
    place: Option<Place>,
    /// The user of the process.
    uid: u32,
    /// Whether that user may make something in the folder.
    writable: bool,
    /// Whether the folder is one of ours, at the same path.
    ours: bool,
}

/// A name in a folder, by its device and inode. The socket itself may be gone, its folder is not.
type Place = (u64, u64, OsString);

impl SuspendPort {
    /// `None` for what is no name in a folder that is there.
    fn of(view: &FileView, theirs: &Path, uid: u32) -> io::Result<Option<Self>> {
        let Some(name) = theirs.file_name() else { return Ok(None) };
        let (folder, writable) = match view.passable_folder(theirs) {
            Ok((folder, writable)) => (Some(folder), writable),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => (None, false),
            Err(error) => return Err(error),
        };
        let ours = folder.as_ref().and_then(|folder| of_ours(theirs, folder));
        let path = ours.as_ref().map_or_else(|| view.shown(theirs), |ours| ours.path().join(name));
        let (is_ours, folder) = (ours.is_some(), ours.or(folder));
        let place = folder.as_ref().and_then(|folder| identity(folder).ok());
        let place = place.map(|(device, inode)| (device, inode, name.to_owned()));
        Ok(Some(Self { path, folder, place, uid, writable, ours: is_ours }))
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
        self.uid == us() && self.folder.as_ref().is_some_and(Folder::is_behind_foreign_link)
    }

    fn owner(&self) -> Option<u32> {
        let (_, _, name) = self.place.as_ref()?;
        self.folder.as_ref()?.stat(name).ok().map(|stat| stat.st_uid)
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
        let Some((folder, (_, _, name))) = self.folder.as_ref().zip(self.place.as_ref()).filter(|_| allowed)
        else {
            return Err(refused(
                "the user of the process has no right to what is there, so nothing is replaced",
            ));
        };
        if self.leads_astray() {
            return Err(refused("a link on the way there belongs to another user, who can lay it elsewhere"));
        }
        let options = BindOptions::default().everybody(true).stale_of(self.uid).keeps_name(true);
        Ok(Port::on(Listener::bind_in(folder, name, options)?))
    }
}

/// The folder of a port in which only we can have made anything: by the way that we go there ourselves. That the process
/// goes to the same folder by that path is no matter of course: it may have another root.
fn of_ours(theirs: &Path, found: &Folder) -> Option<Folder> {
    let path = theirs.parent().filter(|path| path.is_absolute())?;
    let folder = Folder::open(path).ok()?;
    let ours = folder.exposure() == Exposure::Private && folder.owner().is_ok_and(|owner| owner == us());
    let same = identity(&folder).ok()? == identity(found).ok()?;
    (ours && same).then_some(folder)
}

/// Device and inode.
fn identity(folder: &Folder) -> io::Result<(u64, u64)> {
    let stat = rustix::fs::fstat(folder)?;
    Ok((stat.st_dev, stat.st_ino))
}

fn us() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The ports without which the runtime of process `pid` does not go on. Empty for one that was not told to wait, and where
/// its environment may not be read; those that it was resumed over already are among them. Each place is there once.
///
/// # Errors
/// When we may not look into the process.
pub fn waited_for(pid: u32) -> io::Result<Vec<SuspendPort>> {
    let Ok((Environment { ports: Some(value), .. }, uid)) = runtap_discover::environment(pid) else {
        return Ok(Vec::new());
    };
    let view = runtap_discover::file_view(pid)?;
    let (mut ports, mut places) = (Vec::new(), BTreeSet::new());
    for port in awaited(value.as_bytes()) {
        let theirs = PathBuf::from(OsString::from_vec(port.address.to_vec()));
        let port = SuspendPort::of(&view, &theirs, uid)?;
        // A place that is not known is nobody else's.
        let is_new = |port: &SuspendPort| port.place.clone().is_none_or(|place| places.insert(place));
        ports.extend(port.filter(is_new));
    }
    Ok(ports)
}

/// The ports of a process's variable that are looked at, each once. Nobody has as many as are left out, but somebody may
/// name ten thousand, each by a path that takes long to follow.
pub fn awaited(value: &[u8]) -> impl Iterator<Item = DiagnosticPort<'_>> {
    const MOST: usize = 16;
    let mut known = BTreeSet::new();
    let all = diagnostic_ports::parse(value).filter(DiagnosticPort::is_waited_for);
    all.filter(move |port| known.insert(port.address)).take(MOST)
}

/// All processes that wait for one of these ports, each with the index of every port that it waits for. Looks at every
/// process, once; how long that takes is up to them.
pub fn waiting_for(ports: &[SuspendPort]) -> BTreeSet<(u32, usize)> {
    let indexed = ports.iter().enumerate();
    let awaited: BTreeMap<&Place, usize> =
        indexed.filter_map(|(index, port)| Some((port.place.as_ref()?, index))).collect();
    let mut waiting = BTreeSet::new();
    for process in runtap_discover::processes(Options::default()) {
        let pid = process.pid;
        // Most of them run: then nothing more is looked at.
        if runtap_discover::startup(pid) != Startup::Waiting {
            continue;
        }
        // One that can't be looked into waits somewhere else, as far as we know.
        let theirs = waited_for(pid).unwrap_or_default();
        let indexes = theirs.iter().filter_map(|port| awaited.get(port.place.as_ref()?));
        waiting.extend(indexes.map(|index| (pid, *index)));
    }
    waiting
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_any_number_of_ports_a_few_are_looked_at() {
        let addresses = |value: &[u8]| -> Vec<String> {
            awaited(value).map(|port| String::from_utf8_lossy(port.address).into_owned()).collect()
        };
        assert_eq!(addresses(b"/a;/b,nosuspend;/c;/a"), ["/a", "/c"]);
        assert_eq!(addresses("/p;".repeat(32_000).as_bytes()), ["/p"]);
        let many: Vec<String> = (0..2_300).map(|n| format!("/n/{n}")).collect();
        assert_eq!(addresses(many.join(";").as_bytes()).len(), 16);
    }
}
