//! Named pipes for threads, with what `UnixListener` and `UnixStream` of the standard library have elsewhere: one thread
//! reads while another writes, and a third ends both. Refuses to know what is said.
//!
//! Each call starts its work and waits for the end of it (`OVERLAPPED` with an event of its own): on a handle without that, a
//! read that waits keeps every write waiting.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::windows::fs::OpenOptionsExt as _;
use std::os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle, OwnedHandle};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use windows_sys::Win32::Foundation::{
    ERROR_BROKEN_PIPE, ERROR_IO_PENDING, ERROR_NO_DATA, ERROR_OPERATION_ABORTED, ERROR_PIPE_BUSY,
    ERROR_PIPE_CONNECTED, ERROR_PIPE_NOT_CONNECTED, WAIT_OBJECT_0,
};
use windows_sys::Win32::Storage::FileSystem::{FILE_FLAG_OVERLAPPED, ReadFile, WriteFile};
use windows_sys::Win32::System::IO::{CancelIoEx, GetOverlappedResult, OVERLAPPED};
use windows_sys::Win32::System::Pipes::{ConnectNamedPipe, WaitNamedPipeW};
use windows_sys::Win32::System::Threading::{CreateEventW, INFINITE, WaitForSingleObject};

use crate::windows::handle::{owned, worked};
use crate::windows::pipe;
use crate::windows::text::wide;

/// How long a client waits at a time for an instance that is free.
const A_WHILE: u32 = 1000;
/// How often it does.
const TRIES: u32 = 30;

/// A pipe that is listened on. Clones are the same one.
#[derive(Debug, Clone)]
pub struct LocalListener {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    nonblocking: AtomicBool,
    /// What the next client gets. Locked while it is waited for.
    waiting: Mutex<Option<LocalStream>>,
    /// The same, for who ends that.
    awaited: Mutex<Option<LocalStream>>,
}

/// One end of a connection. Clones are the same one.
#[derive(Debug, Clone)]
pub struct LocalStream {
    end: Arc<End>,
}

#[derive(Debug)]
struct End {
    handle: OwnedHandle,
    shut: AtomicBool,
    /// How long a read may take, in milliseconds.
    patience: AtomicU32,
}

impl LocalListener {
    /// Makes a pipe of this path (`\\.\pipe\NAME`) for our user, the system and administrators.
    ///
    /// # Errors
    /// The name is taken, or is none.
    pub fn bind(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref().to_owned();
        let first = LocalStream::of(pipe::listen_blocking(path.as_os_str(), true)?);
        let shared = Shared {
            path,
            nonblocking: AtomicBool::new(false),
            waiting: Mutex::new(Some(first)),
            awaited: Mutex::default(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The next client, and its process where the system tells.
    ///
    /// # Errors
    /// The system gives no further instance; nobody has dialled and it is not to wait.
    pub fn accept(&self) -> io::Result<(LocalStream, Option<u32>)> {
        let mut waiting = self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.shared.path.as_os_str();
        let stream = match waiting.as_ref() {
            Some(stream) => {
                stream.end.patience.store(INFINITE, Ordering::SeqCst);
                stream.clone()
            }
            None => waiting.insert(LocalStream::of(pipe::listen_blocking(path, false)?)).clone(),
        };
        *self.awaited() = Some(stream.clone());
        if self.shared.nonblocking.load(Ordering::SeqCst) {
            stream.end.patience.store(0, Ordering::SeqCst);
        }
        let connected = stream.end.connected();
        *self.awaited() = None;
        connected?;
        stream.end.patience.store(INFINITE, Ordering::SeqCst);
        // Before this one is served, so that the name is there at any time.
        *waiting = pipe::listen_blocking(path, false).ok().map(LocalStream::of);
        let process = pipe::client_process(stream.as_handle()).ok();
        Ok((stream, process))
    }

    /// Has a thread that waits for a client wait no more (`WouldBlock`), and makes that so for those that come.
    #[expect(unsafe_code, reason = "a call of the system")]
    pub fn wake(&self) {
        self.shared.nonblocking.store(true, Ordering::SeqCst);
        if let Some(stream) = &*self.awaited() {
            stream.end.patience.store(0, Ordering::SeqCst);
            // SAFETY: the handle is open; whoever waits hears that there is no client.
            unsafe { CancelIoEx(stream.end.handle.as_raw_handle(), ptr::null()) };
        }
    }

    fn awaited(&self) -> MutexGuard<'_, Option<LocalStream>> {
        self.shared.awaited.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same listener once more.
    ///
    /// # Errors
    /// None here.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(self.clone())
    }

    /// Whether accepting fails where nobody has dialled.
    ///
    /// # Errors
    /// None here.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.shared.nonblocking.store(nonblocking, Ordering::SeqCst);
        Ok(())
    }
}

impl LocalStream {
    fn of(handle: OwnedHandle) -> Self {
        Self {
            end: Arc::new(End { handle, shut: AtomicBool::new(false), patience: AtomicU32::new(INFINITE) }),
        }
    }

    /// Dials a pipe by its path.
    ///
    /// # Errors
    /// Nobody listens there, or has no instance free for long.
    pub fn connect(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        let mut tries = 0;
        loop {
            let opened =
                OpenOptions::new().read(true).write(true).custom_flags(FILE_FLAG_OVERLAPPED).open(path);
            match opened {
                Ok(file) => return Ok(Self::of(file.into())),
                Err(error) if is(&error, ERROR_PIPE_BUSY) && tries < TRIES => wait(path)?,
                Err(error) => return Err(error),
            }
            tries += 1;
        }
    }

    /// The same end once more.
    ///
    /// # Errors
    /// None here.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(self.clone())
    }

    /// How long reading may take at this end; `None`: for ever. What takes longer is `WouldBlock`.
    ///
    /// # Errors
    /// For no time at all.
    pub fn set_read_timeout(&self, patience: Option<Duration>) -> io::Result<()> {
        if patience == Some(Duration::ZERO) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let milliseconds = patience.and_then(|patience| u32::try_from(patience.as_millis()).ok());
        self.end.patience.store(milliseconds.map_or(INFINITE, |time| time.max(1)), Ordering::SeqCst);
        Ok(())
    }

    /// It waits, as it does always.
    ///
    /// # Errors
    /// For what it can't do.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        if nonblocking { Err(io::ErrorKind::Unsupported.into()) } else { Ok(()) }
    }

    /// Ends what is under way at this end, and lets nothing begin; the other side sees it when the last clone is gone.
    ///
    /// # Errors
    /// For one direction alone, which pipes can't.
    #[expect(unsafe_code, reason = "a call of the system")]
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        if how != Shutdown::Both {
            return Err(io::ErrorKind::Unsupported.into());
        }
        self.end.shut.store(true, Ordering::SeqCst);
        // SAFETY: the handle is open; what is under way ends with an error, and whoever waits for it hears that.
        unsafe { CancelIoEx(self.end.handle.as_raw_handle(), ptr::null()) };
        Ok(())
    }

    /// Whether nothing more will come: the other side has closed, and all that it has said was read.
    pub fn is_at_end(&self) -> bool {
        pipe::available(self.end.handle.as_handle()).is_err()
    }
}

impl AsHandle for LocalStream {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        self.end.handle.as_handle()
    }
}

impl End {
    fn patience(&self) -> u32 {
        self.patience.load(Ordering::SeqCst)
    }

    /// Waits for a client.
    #[expect(unsafe_code, reason = "a call of the system")]
    fn connected(&self) -> io::Result<()> {
        let handle = self.handle.as_raw_handle();
        // SAFETY: the handle is open, and the structure is there until the work is over.
        let connected = self.overlapped(|| self.patience(), |work| unsafe { ConnectNamedPipe(handle, work) });
        match connected {
            // It came before we asked, or has gone already: what it has said can be read.
            Err(error) if is(&error, ERROR_PIPE_CONNECTED) || is(&error, ERROR_NO_DATA) => Ok(()),
            Err(error) if is(&error, ERROR_OPERATION_ABORTED) => Err(io::ErrorKind::WouldBlock.into()),
            connected => connected.map(drop),
        }
    }

    /// Starts some work, and waits for its end: how many bytes were moved. What takes longer than `patience` milliseconds
    /// is taken back, and is `WouldBlock`.
    #[expect(unsafe_code, reason = "calls of the system with a structure that lives until the work is over")]
    fn overlapped(
        &self,
        patience: impl FnOnce() -> u32,
        start: impl FnOnce(*mut OVERLAPPED) -> i32,
    ) -> io::Result<usize> {
        // SAFETY: takes nothing of ours, and gives a new handle or null.
        let event = unsafe { owned(CreateEventW(ptr::null(), 1, 0, ptr::null())) }?;
        let mut work = OVERLAPPED { hEvent: event.as_raw_handle(), ..Default::default() };
        let work: *mut OVERLAPPED = &raw mut work;
        if start(work) == 0 {
            let error = io::Error::last_os_error();
            if !is(&error, ERROR_IO_PENDING) {
                return Err(error);
            }
        }
        let handle = self.handle.as_raw_handle();
        // Whoever ends this has either seen the work, or is seen here.
        let is_shut = self.shut.load(Ordering::SeqCst);
        // SAFETY: the event is open.
        let is_late =
            !is_shut && unsafe { WaitForSingleObject(event.as_raw_handle(), patience()) } != WAIT_OBJECT_0;
        if is_shut || is_late {
            // SAFETY: the handle is open, and the work is that which was begun above.
            unsafe { CancelIoEx(handle, work) };
        }
        let mut moved = 0;
        // SAFETY: the same; this returns when the work is over, and not before.
        match worked(unsafe { GetOverlappedResult(handle, work, &raw mut moved, 1) }) {
            Err(error) if is_late && is(&error, ERROR_OPERATION_ABORTED) => {
                Err(io::ErrorKind::WouldBlock.into())
            }
            // It may have been done at the last moment.
            done => done.and_then(|()| usize::try_from(moved).map_err(io::Error::other)),
        }
    }

    #[expect(unsafe_code, reason = "a call of the system, which fills a buffer")]
    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.shut.load(Ordering::SeqCst) {
            return Ok(0);
        }
        let (handle, room) = (self.handle.as_raw_handle(), u32::try_from(buffer.len()).unwrap_or(u32::MAX));
        let start = |work| {
            // SAFETY: the handle is open, there is room for `room` bytes, and both it and the structure are there until
            // the work is over.
            unsafe { ReadFile(handle, buffer.as_mut_ptr(), room, ptr::null_mut(), work) }
        };
        match self.overlapped(|| self.patience(), start) {
            Err(error) if is_end(&error) || self.shut.load(Ordering::SeqCst) => Ok(0),
            read => read,
        }
    }

    #[expect(unsafe_code, reason = "a call of the system, which reads a buffer")]
    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        if self.shut.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let (handle, size) = (self.handle.as_raw_handle(), u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        let start = |work| {
            // SAFETY: the handle is open, there are `size` bytes, and both they and the structure are there until the
            // work is over.
            unsafe { WriteFile(handle, bytes.as_ptr(), size, ptr::null_mut(), work) }
        };
        match self.overlapped(|| INFINITE, start) {
            Err(error) if is_end(&error) => Err(io::ErrorKind::BrokenPipe.into()),
            written => written,
        }
    }
}

impl Read for &LocalStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.end.read(buffer)
    }
}

impl Write for &LocalStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.end.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for LocalStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.end.read(buffer)
    }
}

impl Write for LocalStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.end.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Waits for an instance that is free.
#[expect(unsafe_code, reason = "a call of the system with a text")]
fn wait(path: &Path) -> io::Result<()> {
    let path = wide(path.as_os_str())?;
    // SAFETY: the text ends with a zero.
    match worked(unsafe { WaitNamedPipeW(path.as_ptr(), A_WHILE) }) {
        Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(()),
        waited => waited,
    }
}

fn is(error: &io::Error, code: u32) -> bool {
    error.raw_os_error().map(i32::cast_unsigned) == Some(code)
}

fn is_end(error: &io::Error) -> bool {
    [ERROR_BROKEN_PIPE, ERROR_PIPE_NOT_CONNECTED, ERROR_NO_DATA].iter().any(|code| is(error, *code))
}

#[cfg(test)]
mod tests;
