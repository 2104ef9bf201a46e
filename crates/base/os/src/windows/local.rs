//! Named pipes for threads, with an interface like the standard library's `UnixListener` and `UnixStream`: one thread
//! can read while another writes, and a third can shut down both.
//!
//! Calls are overlapped, each with an event of its own, and wait for completion. On a handle without overlapped I/O, a
//! pending read blocks all writes.

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

/// How long a client waits for a free instance per attempt, in milliseconds.
const A_WHILE: u32 = 1000;
/// Maximum number of attempts.
const TRIES: u32 = 30;

/// A listener on a named pipe. Clones share the pipe.
#[derive(Debug, Clone)]
pub struct LocalListener {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    nonblocking: AtomicBool,
    /// The instance for the next client. Locked while waiting for the client.
    waiting: Mutex<Option<LocalStream>>,
    /// The instance being waited on, for the thread that cancels the wait.
    awaited: Mutex<Option<LocalStream>>,
}

/// One end of a connection. Clones share the connection.
#[derive(Debug, Clone)]
pub struct LocalStream {
    end: Arc<End>,
}

#[derive(Debug)]
struct End {
    handle: OwnedHandle,
    shut: AtomicBool,
    /// Read time-out in milliseconds.
    patience: AtomicU32,
}

impl LocalListener {
    /// Creates a pipe with this path (`\\.\pipe\NAME`), accessible to the current user, the system and administrators.
    ///
    /// # Errors
    /// If the name is invalid or in use.
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

    /// Accepts a connection; also returns the client's process id, `None` if unknown.
    ///
    /// # Errors
    /// If no further instance can be created, or the listener is non-blocking and no client is connecting.
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
        // Created before the connection is returned, so that the pipe exists at all times.
        *waiting = pipe::listen_blocking(path, false).ok().map(LocalStream::of);
        let process = pipe::client_process(stream.as_handle()).ok();
        Ok((stream, process))
    }

    /// Makes pending and future calls of [`accept`](Self::accept) fail with `WouldBlock` if no client is connecting.
    #[expect(unsafe_code, reason = "a call of the system")]
    pub fn wake(&self) {
        self.shared.nonblocking.store(true, Ordering::SeqCst);
        if let Some(stream) = &*self.awaited() {
            stream.end.patience.store(0, Ordering::SeqCst);
            // SAFETY: the handle is open. The cancelled wait returns an error to its thread.
            unsafe { CancelIoEx(stream.end.handle.as_raw_handle(), ptr::null()) };
        }
    }

    fn awaited(&self) -> MutexGuard<'_, Option<LocalStream>> {
        self.shared.awaited.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns another handle to the listener.
    ///
    /// # Errors
    /// Never.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(self.clone())
    }

    /// Sets whether [`accept`](Self::accept) fails if no client is connecting.
    ///
    /// # Errors
    /// Never.
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

    /// Connects to a pipe.
    ///
    /// # Errors
    /// If the pipe does not exist, or all its instances stay busy.
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

    /// Returns another handle to the connection.
    ///
    /// # Errors
    /// Never.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(self.clone())
    }

    /// Sets the read time-out; `None` disables it. Reads that take longer fail with `WouldBlock`.
    ///
    /// # Errors
    /// If the time-out is zero.
    pub fn set_read_timeout(&self, patience: Option<Duration>) -> io::Result<()> {
        if patience == Some(Duration::ZERO) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let milliseconds = patience.and_then(|patience| u32::try_from(patience.as_millis()).ok());
        self.end.patience.store(milliseconds.map_or(INFINITE, |time| time.max(1)), Ordering::SeqCst);
        Ok(())
    }

    /// Does nothing for `false`: connections are always blocking.
    ///
    /// # Errors
    /// For `true`, which is not supported.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        if nonblocking { Err(io::ErrorKind::Unsupported.into()) } else { Ok(()) }
    }

    /// Cancels pending calls and makes future ones fail. The peer sees the end of the stream when the last clone is
    /// dropped.
    ///
    /// # Errors
    /// For a single direction, which pipes do not support.
    #[expect(unsafe_code, reason = "a call of the system")]
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        if how != Shutdown::Both {
            return Err(io::ErrorKind::Unsupported.into());
        }
        self.end.shut.store(true, Ordering::SeqCst);
        // SAFETY: the handle is open. Cancelled calls return an error to their threads.
        unsafe { CancelIoEx(self.end.handle.as_raw_handle(), ptr::null()) };
        Ok(())
    }

    /// Returns whether the peer has closed the connection and all data has been read.
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

    /// Waits for a client to connect.
    #[expect(unsafe_code, reason = "a call of the system")]
    fn connected(&self) -> io::Result<()> {
        let handle = self.handle.as_raw_handle();
        // SAFETY: the handle is open, and the structure is there until the work is over.
        let connected = self.overlapped(|| self.patience(), |work| unsafe { ConnectNamedPipe(handle, work) });
        match connected {
            // The client connected before the call, or has already disconnected; its data can be read.
            Err(error) if is(&error, ERROR_PIPE_CONNECTED) || is(&error, ERROR_NO_DATA) => Ok(()),
            Err(error) if is(&error, ERROR_OPERATION_ABORTED) => Err(io::ErrorKind::WouldBlock.into()),
            connected => connected.map(drop),
        }
    }

    /// Starts an operation, waits for its completion and returns the number of bytes transferred. After `patience`
    /// milliseconds it is cancelled and fails with `WouldBlock`.
    #[expect(unsafe_code, reason = "calls of the system with a structure that lives until the work is over")]
    fn overlapped(
        &self,
        patience: impl FnOnce() -> u32,
        start: impl FnOnce(*mut OVERLAPPED) -> i32,
    ) -> io::Result<usize> {
        // SAFETY: all pointers are null; the result is a new handle or null.
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
        // A concurrent `shutdown` either cancels the operation or is seen here.
        let is_shut = self.shut.load(Ordering::SeqCst);
        // SAFETY: the event is open.
        let is_late =
            !is_shut && unsafe { WaitForSingleObject(event.as_raw_handle(), patience()) } != WAIT_OBJECT_0;
        if is_shut || is_late {
            // SAFETY: the handle is open, and the operation is the one started above.
            unsafe { CancelIoEx(handle, work) };
        }
        let mut moved = 0;
        // SAFETY: the same; this returns when the work is over, and not before.
        match worked(unsafe { GetOverlappedResult(handle, work, &raw mut moved, 1) }) {
            Err(error) if is_late && is(&error, ERROR_OPERATION_ABORTED) => {
                Err(io::ErrorKind::WouldBlock.into())
            }
            // It may have completed before it was cancelled.
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

/// Waits until an instance of the pipe is free.
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
