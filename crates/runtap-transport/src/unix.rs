//! Unix domain sockets of Linux: dialling with a deadline, paths longer than `sun_path`, private binding.
//!
//! Refuses to guess: every attempt is one non-blocking `connect`, and only a full queue (EAGAIN) is tried again.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::ConnectFailure;

/// What fits into `sun_path` with the final NUL that some kernels and runtimes want.
const LONGEST_PATH: usize = 107;

/// Waits between attempts at a full queue.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// An address for `path`. A path that is too long goes through a descriptor of its directory, which has to live
/// as long as the address is used.
struct Address {
    address: SocketAddrUnix,
    _directory: Option<OwnedFd>,
}

impl Address {
    fn new(path: &Path) -> io::Result<Self> {
        if path.as_os_str().is_empty() {
            // An empty `sun_path` would ask the kernel for an address of its own choice.
            return Err(io::ErrorKind::NotFound.into());
        }
        if path.as_os_str().as_bytes().len() <= LONGEST_PATH {
            return Ok(Self { address: SocketAddrUnix::new(path)?, _directory: None });
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        let directory =
            rustix::fs::open(parent, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let short: PathBuf = ["/proc/self/fd", &directory.as_raw_fd().to_string()].iter().collect();
        let address = SocketAddrUnix::new(short.join(name))?;
        Ok(Self { address, _directory: Some(directory) })
    }
}

fn socket() -> Result<OwnedFd, Errno> {
    rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )
}

/// One attempt after the other, and the time they have taken together.
struct Attempts {
    address: Address,
    socket: OwnedFd,
    started: Instant,
    timeout: Duration,
    pause: Duration,
}

impl Attempts {
    fn new(path: &Path, timeout: Duration) -> io::Result<Self> {
        Ok(Self {
            address: Address::new(path)?,
            socket: socket()?,
            started: Instant::now(),
            timeout,
            pause: FIRST_PAUSE,
        })
    }

    /// Tries once. `Ok(Some(pause))`: the queue is full, come back after `pause`.
    fn attempt(&mut self) -> Result<Option<Duration>, ConnectFailure> {
        match rustix::net::connect(&self.socket, &self.address.address) {
            Ok(()) => Ok(None),
            Err(Errno::AGAIN | Errno::INTR) => {
                let waited = self.started.elapsed();
                let left = self.timeout.saturating_sub(waited);
                if left.is_zero() {
                    return Err(ConnectFailure::Busy { waited });
                }
                let pause = self.pause.min(left);
                self.pause = (self.pause * 2).min(LONGEST_PAUSE);
                Ok(Some(pause))
            }
            Err(error) => Err(io::Error::from(error).into()),
        }
    }
}

pub(crate) async fn connect(
    path: &Path,
    timeout: Duration,
) -> Result<tokio::net::UnixStream, ConnectFailure> {
    let mut attempts = Attempts::new(path, timeout)?;
    while let Some(pause) = attempts.attempt()? {
        tokio::time::sleep(pause).await;
    }
    Ok(tokio::net::UnixStream::from_std(UnixStream::from(attempts.socket))?)
}

pub(crate) fn connect_blocking(path: &Path, timeout: Duration) -> Result<UnixStream, ConnectFailure> {
    let mut attempts = Attempts::new(path, timeout)?;
    while let Some(pause) = attempts.attempt()? {
        std::thread::sleep(pause);
    }
    let stream = UnixStream::from(attempts.socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// Binds and listens. The file has mode 0600 from the moment it exists, whatever the umask: on Linux a socket's
/// file takes the mode of the socket itself. Then everybody is let in, if that is wanted.
pub(crate) fn bind(path: &Path, backlog: i32, everybody: bool) -> io::Result<UnixListener> {
    let address = Address::new(path)?;
    let socket = socket()?;
    let private = Mode::RUSR | Mode::WUSR;
    rustix::fs::fchmod(&socket, private)?;
    rustix::net::bind(&socket, &address.address)?;
    if everybody {
        let_everybody_in(path)?;
    }
    rustix::net::listen(&socket, backlog)?;
    Ok(UnixListener::from(socket))
}

/// The umask would take the right to write from the mode of the socket itself. What is at the path may not be ours any
/// more, in a folder of somebody else's: only a socket is touched.
fn let_everybody_in(path: &Path) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode);
    if kind != FileType::Socket {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let link: PathBuf = ["/proc/self/fd", &file.as_raw_fd().to_string()].iter().collect();
    Ok(rustix::fs::chmod(link, Mode::from_raw_mode(0o666))?)
}
