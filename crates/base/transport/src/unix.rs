//! Unix domain sockets on Linux: connecting within a deadline, paths longer than `sun_path`, and private binding.
//!
//! Connects through a descriptor of the socket file, which cannot be redirected, and verifies the listener ([`proof`])
//! before returning the connection. Each attempt is one non-blocking `connect`; only a full queue (`EAGAIN`) is
//! retried.

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

/// Maximum length that fits into `sun_path` with a terminating NUL, which some kernels and runtimes require.
const LONGEST_PATH: usize = 107;
/// Maximum number of names tried for a private directory.
const MAX_NAMES: u32 = 16;

/// Pauses between attempts to connect if the queue is full.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);
/// Maximum number of sockets tried per process, not counting files that are not sockets. A process has one, and its
/// expected path is tried first; more are only created by an attacker.
const MAX_SOCKETS: usize = 16;

fn socket() -> Result<OwnedFd, Errno> {
    rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )
}

/// An open socket file.
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

    /// Tries to connect once. Returns false if the queue is full.
    fn attempt(&self, expected: &Expected) -> Result<bool, ConnectFailure> {
        let address = SocketAddrUnix::new(root::path_of(self.file.as_fd())).map_err(io::Error::from)?;
        match rustix::net::connect(&self.socket, &address) {
            Ok(()) => proof::check(self.socket.as_fd(), expected).map(|()| true),
            Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(error) => Err(io::Error::from(error).into()),
        }
    }
}

/// Attempts to connect to one or more sockets within a time-out.
struct Attempts {
    /// The remaining sockets.
    candidates: Vec<Candidate>,
    expected: Expected,
    /// The failure to report.
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

    /// Connects to a path specified by the user.
    fn at_path(path: &Path, expected: Expected, timeout: Duration) -> Self {
        Self::at(root::open_named(path, POINT), expected, timeout)
    }

    /// Connects to the sockets that may belong to a process.
    fn at_process(endpoint: &ProcessEndpoint, timeout: Duration) -> Result<Self, ConnectFailure> {
        let ProcessEndpoint { pid, start_time, ref sockets } = *endpoint;
        let dir = ProcDir::open(Path::new("/proc"), pid)?;
        if dir.stat().is_none_or(|(_, start)| start != start_time) {
            // The process id was reused.
            return Err(ConnectFailure::NotFound);
        }
        // Limits the number of paths, because resolving them may take long.
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

    /// Stores the first failure, but prefers one that shows an unexpected process.
    fn failed(&mut self, failure: ConnectFailure) {
        let tells = matches!(failure, ConnectFailure::WrongPeer { .. });
        let told = matches!(self.failure, Some(ConnectFailure::WrongPeer { .. }));
        if self.failure.is_none() || tells && !told {
            self.failure = Some(failure);
        }
    }

    /// Tries every socket once.
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
    /// All queues are full: try again after this time.
    Wait(Duration),
}

pub(crate) async fn connect(
    path: &Path,
    timeout: Duration,
) -> Result<tokio::net::UnixStream, ConnectFailure> {
    Attempts::at_path(path, own_user(path), timeout).connect().await
}

pub(crate) async fn connect_unverified(
    path: &Path,
    timeout: Duration,
) -> Result<tokio::net::UnixStream, ConnectFailure> {
    Attempts::at_path(path, Expected::Any, timeout).connect().await
}

fn own_user(path: &Path) -> Expected {
    Expected::OwnUser { name: path.file_name().and_then(OsStr::to_str).and_then(SocketName::parse) }
}

pub(crate) fn connect_blocking(path: &Path, timeout: Duration) -> Result<UnixStream, ConnectFailure> {
    Attempts::at_path(path, own_user(path), timeout).connect_blocking()
}

/// Connects to one of the sockets that may belong to a process; the listener must be that process.
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

/// Returns the owner of a socket file if no process listens on the socket.
pub(crate) fn stale_owner(folder: &Folder, name: &OsStr) -> Option<u32> {
    let file = rustix::fs::openat(folder, name, POINT | OFlags::NOFOLLOW, Mode::empty()).ok()?;
    let owner = rustix::fs::fstat(&file).ok()?.st_uid;
    let attempt = Attempts::at(Ok(file), Expected::Any, Duration::ZERO).attempt();
    matches!(attempt, Err(ConnectFailure::Refused)).then_some(owner)
}

/// Binds an unused name and listens. The socket file has mode 0600 from the moment it exists, whatever the umask is,
/// because on Linux it gets the mode of the socket. If `everybody` may connect the mode is 0666; it is set in a private
/// directory if other users could otherwise replace the file before.
pub(crate) fn bind(folder: &Folder, name: &OsStr, backlog: i32, everybody: bool) -> io::Result<UnixListener> {
    if everybody && folder.exposure() != Exposure::Private {
        return PrivateDir::in_folder(folder)?.bind(backlog, everybody)?.link(name);
    }
    let socket = private_socket()?;
    rustix::net::bind(&socket, &address(folder, name)?)?;
    if everybody {
        rustix::fs::chmodat(folder, name, EVERYBODY, AtFlags::empty())?;
    }
    rustix::net::listen(&socket, backlog)?;
    Ok(UnixListener::from(socket))
}

/// Binds and replaces an existing file in one step, so that other users can never take the name. `is_stale` is called
/// right before; if it returns false, the name is in use.
pub(crate) fn replace(
    folder: &Folder,
    name: &OsStr,
    backlog: i32,
    everybody: bool,
    is_stale: impl FnOnce() -> bool,
) -> io::Result<UnixListener> {
    let bound = PrivateDir::in_folder(folder)?.bind(backlog, everybody)?;
    if is_stale() { bound.rename(name) } else { Err(io::ErrorKind::AddrInUse.into()) }
}

fn private_socket() -> io::Result<OwnedFd> {
    let socket = socket()?;
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    Ok(socket)
}

/// Returns the address to bind. The kernel's table of sockets shows it to programs that search for the socket, so it is
/// the path if that fits and is sure to lead to the directory.
fn address(folder: &Folder, name: &OsStr) -> io::Result<SocketAddrUnix> {
    let path = folder.path().join(name);
    if folder.is_named() && path.as_os_str().len() <= LONGEST_PATH {
        return Ok(SocketAddrUnix::new(path)?);
    }
    Ok(SocketAddrUnix::new(root::path_of(folder.as_fd()).join(name))?)
}

const EVERYBODY: Mode = Mode::from_raw_mode(0o666);
/// Name of a socket in its private directory.
const SOCKET: &str = "s";

/// A private subdirectory for a socket that does not have its final name yet. Removed on drop.
struct PrivateDir<'a> {
    parent: &'a Folder,
    name: String,
    opened: OwnedFd,
}

impl<'a> PrivateDir<'a> {
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
                // The directory was replaced by another user.
                return Err(io::ErrorKind::PermissionDenied.into());
            }
            return Ok(Self { parent, name, opened });
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Binds and listens, so that the socket is never mistaken for a stale one.
    fn bind(self, backlog: i32, everybody: bool) -> io::Result<BoundSocket<'a>> {
        let socket = private_socket()?;
        let address = SocketAddrUnix::new(root::path_of(self.opened.as_fd()).join(SOCKET))?;
        rustix::net::bind(&socket, &address)?;
        if everybody {
            rustix::fs::chmodat(&self.opened, SOCKET, EVERYBODY, AtFlags::empty())?;
        }
        rustix::net::listen(&socket, backlog)?;
        Ok(BoundSocket { dir: self, socket })
    }
}

/// A listening socket that does not have its final name yet.
struct BoundSocket<'a> {
    dir: PrivateDir<'a>,
    socket: OwnedFd,
}

impl BoundSocket<'_> {
    /// Gives the socket its final name. Fails if the name is in use.
    fn link(self, name: &OsStr) -> io::Result<UnixListener> {
        let PrivateDir { parent, ref opened, .. } = self.dir;
        match rustix::fs::linkat(opened, SOCKET, parent, name, AtFlags::empty()) {
            Err(Errno::EXIST) => return Err(io::ErrorKind::AddrInUse.into()),
            linked => linked?,
        }
        Ok(UnixListener::from(self.socket))
    }

    /// Gives the socket its final name, replacing an existing file.
    fn rename(self, name: &OsStr) -> io::Result<UnixListener> {
        let PrivateDir { parent, ref opened, .. } = self.dir;
        rustix::fs::renameat(opened, SOCKET, parent, name)?;
        Ok(UnixListener::from(self.socket))
    }
}

impl Drop for PrivateDir<'_> {
    fn drop(&mut self) {
        // What cannot be removed is an empty directory that only this user can access.
        let _ = rustix::fs::unlinkat(&self.opened, SOCKET, AtFlags::empty());
        let _ = rustix::fs::unlinkat(self.parent, &self.name, AtFlags::REMOVEDIR);
    }
}
