//! Unix domain sockets of Linux: dialling with a deadline, paths longer than `sun_path`, private binding.
//!
//! What is dialled is a descriptor of the socket's file, not a path that may lead elsewhere by then, and whoever listens
//! is checked ([`proof`]) before the connection is handed out. Refuses to guess: every attempt is one non-blocking
//! `connect`, and only a full queue (EAGAIN) is tried again.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

use runtap_os::random_u64;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::ConnectFailure;
use crate::endpoint::ProcessEndpoint;
use crate::exposure::Exposure;
use crate::folder::Folder;
use crate::linux::ProcDir;
use crate::linux::proof::{self, Expected};
use crate::linux::root::{self, POINT};
use crate::naming::SocketName;

/// What fits into `sun_path` with the final NUL that some kernels and runtimes want.
const LONGEST_PATH: usize = 107;
/// Names that are tried for a folder of our own.
const MAX_NAMES: u32 = 16;

/// Waits between attempts at a full queue.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);
/// Sockets of one process that are tried: what is no socket, or is not there, does not count. It has one, and where it
/// would make it comes first; more are made by somebody who wants to be in the way.
const MAX_SOCKETS: usize = 16;

fn socket() -> Result<OwnedFd, Errno> {
    rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )
}

/// A socket's file, held by a descriptor.
struct Candidate {
    file: OwnedFd,
    socket: OwnedFd,
}

impl Candidate {
    fn new(file: OwnedFd) -> Result<Self, ConnectFailure> {
        if root::kind(file.as_fd())? != FileType::Socket {
            return Err(ConnectFailure::NoSocket);
        }
        Ok(Self { file, socket: socket().map_err(io::Error::from)? })
    }

    /// Tries once. `false`: its queue is full.
    fn attempt(&self, expected: &Expected) -> Result<bool, ConnectFailure> {
        let address = SocketAddrUnix::new(root::path_of(self.file.as_fd())).map_err(io::Error::from)?;
        match rustix::net::connect(&self.socket, &address) {
            Ok(()) => proof::check(self.socket.as_fd(), expected).map(|()| true),
            Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(error) => Err(io::Error::from(error).into()),
        }
    }
}

/// One attempt after the other at one socket or several, and the time they have taken together.
struct Attempts {
    /// Those that are left.
    candidates: Vec<Candidate>,
    expected: Expected,
    /// Why the others failed: the failure to tell.
    failure: Option<ConnectFailure>,
    started: Instant,
    timeout: Duration,
    pause: Duration,
}

impl Attempts {
    fn none(expected: Expected, timeout: Duration) -> Self {
        Self {
            candidates: Vec::new(),
            expected,
            failure: None,
            started: Instant::now(),
            timeout,
            pause: FIRST_PAUSE,
        }
    }

    fn at(file: io::Result<OwnedFd>, expected: Expected, timeout: Duration) -> Self {
        let mut attempts = Self::none(expected, timeout);
        attempts.add(file);
        attempts
    }

    fn add(&mut self, file: io::Result<OwnedFd>) {
        match file.map_err(ConnectFailure::from).and_then(Candidate::new) {
            Ok(candidate) => self.candidates.push(candidate),
            Err(failure) => self.failed(failure),
        }
    }

    /// At a path that somebody named.
    fn at_path(path: &Path, expected: Expected, timeout: Duration) -> Self {
        Self::at(root::open_named(path, POINT), expected, timeout)
    }

    /// At the sockets that may be those of a process.
    fn at_process(endpoint: &ProcessEndpoint, timeout: Duration) -> Result<Self, ConnectFailure> {
        let ProcessEndpoint { pid, start_time, ref sockets } = *endpoint;
        let dir = ProcDir::open(Path::new("/proc"), pid)?;
        if dir.stat().is_none_or(|(_, start)| start != start_time) {
            // Another process has its number.
            return Err(ConnectFailure::NotFound);
        }
        // A way there may be long, and lead nowhere by now.
        let files =
            sockets.iter().take(4 * MAX_SOCKETS).map(|socket| socket.at.open(&dir, POINT | OFlags::NOFOLLOW));
        let mut attempts = Self::none(Expected::Process { pid, start_time, dir: dir.clone() }, timeout);
        for file in files {
            attempts.add(file);
            if attempts.candidates.len() == MAX_SOCKETS {
                break;
            }
        }
        Ok(attempts)
    }

    /// Remembers the first failure, but for one that shows somebody in the way.
    fn failed(&mut self, failure: ConnectFailure) {
        let tells = matches!(failure, ConnectFailure::WrongPeer { .. });
        let told = matches!(self.failure, Some(ConnectFailure::WrongPeer { .. }));
        if self.failure.is_none() || tells && !told {
            self.failure = Some(failure);
        }
    }

    /// Tries all once.
    fn attempt(&mut self) -> Result<Attempt, ConnectFailure> {
        let mut waiting = Vec::new();
        for candidate in std::mem::take(&mut self.candidates) {
            match candidate.attempt(&self.expected) {
                Ok(true) => return Ok(Attempt::Connected(candidate.socket)),
                Ok(false) => waiting.push(candidate),
                Err(failure) => self.failed(failure),
            }
        }
        self.candidates = waiting;
        if self.candidates.is_empty() {
            return Err(self.failure.take().unwrap_or(ConnectFailure::NotFound));
        }
        let waited = self.started.elapsed();
        let left = self.timeout.saturating_sub(waited);
        if left.is_zero() {
            return Err(ConnectFailure::Busy { waited });
        }
        let pause = self.pause.min(left);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        Ok(Attempt::Wait(pause))
    }

    async fn connect(mut self) -> Result<tokio::net::UnixStream, ConnectFailure> {
        loop {
            match self.attempt()? {
                Attempt::Connected(socket) => {
                    return Ok(tokio::net::UnixStream::from_std(UnixStream::from(socket))?);
                }
                Attempt::Wait(pause) => tokio::time::sleep(pause).await,
            }
        }
    }

    fn connect_blocking(mut self) -> Result<UnixStream, ConnectFailure> {
        loop {
            match self.attempt()? {
                Attempt::Connected(socket) => {
                    let stream = UnixStream::from(socket);
                    stream.set_nonblocking(false)?;
                    return Ok(stream);
                }
                Attempt::Wait(pause) => std::thread::sleep(pause),
            }
        }
    }
}

enum Attempt {
    Connected(OwnedFd),
    /// Queues are full: come back after this time.
    Wait(Duration),
}

pub(crate) async fn connect(
    path: &Path,
    timeout: Duration,
) -> Result<tokio::net::UnixStream, ConnectFailure> {
    Attempts::at_path(path, own_user(path), timeout).connect().await
}

pub(crate) async fn connect_to_anybody(
    path: &Path,
    timeout: Duration,
) -> Result<tokio::net::UnixStream, ConnectFailure> {
    Attempts::at_path(path, Expected::Anybody, timeout).connect().await
}

fn own_user(path: &Path) -> Expected {
    Expected::OwnUser { name: path.file_name().and_then(OsStr::to_str).and_then(SocketName::parse) }
}

pub(crate) fn connect_blocking(path: &Path, timeout: Duration) -> Result<UnixStream, ConnectFailure> {
    Attempts::at_path(path, own_user(path), timeout).connect_blocking()
}

/// To one of the sockets that may be a process's own, if the process listens there.
pub(crate) async fn connect_to(
    process: &ProcessEndpoint,
    timeout: Duration,
) -> Result<tokio::net::UnixStream, ConnectFailure> {
    Attempts::at_process(process, timeout)?.connect().await
}

pub(crate) fn connect_blocking_to(
    process: &ProcessEndpoint,
    timeout: Duration,
) -> Result<UnixStream, ConnectFailure> {
    Attempts::at_process(process, timeout)?.connect_blocking()
}

/// The owner of a socket's file, if nobody listens behind it.
pub(crate) fn stale_owner(folder: &Folder, name: &OsStr) -> Option<u32> {
    let file = rustix::fs::openat(folder, name, POINT | OFlags::NOFOLLOW, Mode::empty()).ok()?;
    let owner = rustix::fs::fstat(&file).ok()?.st_uid;
    let attempt = Attempts::at(Ok(file), Expected::Anybody, Duration::ZERO).attempt();
    matches!(attempt, Err(ConnectFailure::Refused)).then_some(owner)
}

/// Binds a name that is free, and listens. The mode of the socket's file is 0600 from the moment it exists, whatever the
/// umask: on Linux a socket's file takes the mode of the socket itself. For everybody it is 0666; where others could
/// exchange the file before it has that, it is given in a folder of our own.
pub(crate) fn bind(folder: &Folder, name: &OsStr, backlog: i32, everybody: bool) -> io::Result<UnixListener> {
    if everybody && folder.exposure() != Exposure::Private {
        return Draft::in_folder(folder)?.bind(backlog, everybody)?.link(name);
    }
    let socket = private_socket()?;
    rustix::net::bind(&socket, &address(folder, name)?)?;
    if everybody {
        rustix::fs::chmodat(folder, name, EVERYBODY, AtFlags::empty())?;
    }
    rustix::net::listen(&socket, backlog)?;
    Ok(UnixListener::from(socket))
}

/// The same in the place of a file, in one step: at no moment is the name free for others. `is_stale` is asked right
/// before; if it says no, the name is in use.
pub(crate) fn replace(
    folder: &Folder,
    name: &OsStr,
    backlog: i32,
    everybody: bool,
    is_stale: impl FnOnce() -> bool,
) -> io::Result<UnixListener> {
    let bound = Draft::in_folder(folder)?.bind(backlog, everybody)?;
    if is_stale() { bound.rename(name) } else { Err(io::ErrorKind::AddrInUse.into()) }
}

fn private_socket() -> io::Result<OwnedFd> {
    let socket = socket()?;
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    Ok(socket)
}

/// The kernel's table of sockets shows this text to whoever looks for the socket: the path, where it is sure to lead here
/// and fits.
fn address(folder: &Folder, name: &OsStr) -> io::Result<SocketAddrUnix> {
    let path = folder.path().join(name);
    if folder.is_named() && path.as_os_str().len() <= LONGEST_PATH {
        return Ok(SocketAddrUnix::new(path)?);
    }
    Ok(SocketAddrUnix::new(root::path_of(folder.as_fd()).join(name))?)
}

const EVERYBODY: Mode = Mode::from_raw_mode(0o666);
/// The name of a socket in a folder of its own.
const SOCKET: &str = "s";

/// A folder in another one that only we may enter, for a socket until it gets its name. Removed when it is dropped.
struct Draft<'a> {
    parent: &'a Folder,
    name: String,
    opened: OwnedFd,
}

impl<'a> Draft<'a> {
    fn in_folder(parent: &'a Folder) -> io::Result<Self> {
        for _ in 0..MAX_NAMES {
            let name = format!(".runtap-{:016x}", random_u64());
            match rustix::fs::mkdirat(parent, &name, Mode::RWXU) {
                Err(Errno::EXIST) => continue,
                made => made?,
            }
            let flags = POINT | OFlags::DIRECTORY | OFlags::NOFOLLOW;
            let opened = rustix::fs::openat(parent, &name, flags, Mode::empty())?;
            let stat = rustix::fs::fstat(&opened)?;
            let others = Mode::from_raw_mode(stat.st_mode) & (Mode::RWXG | Mode::RWXO);
            if stat.st_uid != rustix::process::geteuid().as_raw() || !others.is_empty() {
                // Somebody has exchanged it.
                return Err(io::ErrorKind::PermissionDenied.into());
            }
            return Ok(Self { parent, name, opened });
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Listens: nobody who sees the name takes the socket for a stale one.
    fn bind(self, backlog: i32, everybody: bool) -> io::Result<Bound<'a>> {
        let socket = private_socket()?;
        let address = SocketAddrUnix::new(root::path_of(self.opened.as_fd()).join(SOCKET))?;
        rustix::net::bind(&socket, &address)?;
        if everybody {
            rustix::fs::chmodat(&self.opened, SOCKET, EVERYBODY, AtFlags::empty())?;
        }
        rustix::net::listen(&socket, backlog)?;
        Ok(Bound { draft: self, socket })
    }
}

/// A socket that listens, and has no name yet outside.
struct Bound<'a> {
    draft: Draft<'a>,
    socket: OwnedFd,
}

impl Bound<'_> {
    /// Gives it a name. One that is taken stays with whoever has it.
    fn link(self, name: &OsStr) -> io::Result<UnixListener> {
        let Draft { parent, ref opened, .. } = self.draft;
        match rustix::fs::linkat(opened, SOCKET, parent, name, AtFlags::empty()) {
            Err(Errno::EXIST) => return Err(io::ErrorKind::AddrInUse.into()),
            linked => linked?,
        }
        Ok(UnixListener::from(self.socket))
    }

    /// Gives it a name, whoever has it.
    fn rename(self, name: &OsStr) -> io::Result<UnixListener> {
        let Draft { parent, ref opened, .. } = self.draft;
        rustix::fs::renameat(opened, SOCKET, parent, name)?;
        Ok(UnixListener::from(self.socket))
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        // What can't be removed is an empty folder that nobody else can use.
        let _ = rustix::fs::unlinkat(&self.opened, SOCKET, AtFlags::empty());
        let _ = rustix::fs::unlinkat(self.parent, &self.name, AtFlags::REMOVEDIR);
    }
}
