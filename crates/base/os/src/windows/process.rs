//! Running processes, and their properties.

use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::path::PathBuf;
use std::time::Duration;

use windows_sys::Win32::Foundation::{FILETIME, WAIT_OBJECT_0, WAIT_TIMEOUT};
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, PROCESSENTRY32W, Process32FirstW, Process32NextW, TH32CS_SNAPPROCESS,
};
use windows_sys::Win32::System::Threading::{
    GetCurrentThreadId, GetExitCodeProcess, GetProcessTimes, INFINITE, PROCESS_SYNCHRONIZE,
    QueryFullProcessImageNameW, WaitForSingleObject,
};

use crate::windows::handle::{opened, owned, process, worked};
use crate::windows::text::from_wide;
use crate::windows::user::sid_of;

/// Exit code of a running process.
const STILL_ACTIVE: u32 = 259;
/// Maximum length of a path in UTF-16 units, including the terminating zero.
const LONGEST_PATH: usize = 1 << 15;

/// An entry of the process list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Process id.
    pub pid: u32,
    /// Id of the process that started it, which may have exited and whose id may have been reused.
    pub parent: u32,
    /// File name of the program.
    pub name: String,
}

/// Lists the processes of all users.
///
/// # Errors
/// If the list cannot be created.
#[expect(unsafe_code, reason = "calls of the system, which fill a structure")]
pub fn list() -> io::Result<Vec<Entry>> {
    // SAFETY: takes numbers only, and gives a new handle or INVALID_HANDLE_VALUE.
    let snapshot = unsafe { owned(CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0)) }?;
    let mut entry = PROCESSENTRY32W {
        dwSize: u32::try_from(size_of::<PROCESSENTRY32W>()).map_err(io::Error::other)?,
        ..Default::default()
    };
    let mut all = Vec::new();
    // SAFETY: the snapshot is open, and the structure says how large it is.
    let mut more = unsafe { Process32FirstW(snapshot.as_raw_handle(), &raw mut entry) };
    while more != 0 {
        let name = from_wide(&entry.szExeFile).to_string_lossy().into_owned();
        all.push(Entry { pid: entry.th32ProcessID, parent: entry.th32ParentProcessID, name });
        // SAFETY: as above.
        more = unsafe { Process32NextW(snapshot.as_raw_handle(), &raw mut entry) };
    }
    Ok(all)
}

/// Returns the start time of a process in units of 100 ns since 1601. Together with the id it identifies a process
/// uniquely.
///
/// # Errors
/// If the process has exited or may not be accessed.
#[expect(unsafe_code, reason = "calls of the system, which fill structures")]
pub fn start_time(pid: u32) -> io::Result<u64> {
    let process = process(pid)?;
    let mut code = 0;
    // SAFETY: the process is open, and there is room for the number.
    worked(unsafe { GetExitCodeProcess(process.as_raw_handle(), &raw mut code) })?;
    if code != STILL_ACTIVE {
        return Err(io::ErrorKind::NotFound.into());
    }
    let [start, ..] = times(&process)?;
    Ok(start)
}

/// Returns the processor time that a process has used, in user and kernel mode.
///
/// # Errors
/// If the process has exited or may not be accessed.
pub fn processor_time(pid: u32) -> io::Result<Duration> {
    let [_, _, kernel, user] = times(&process(pid)?)?;
    Ok(Duration::from_nanos(kernel.saturating_add(user).saturating_mul(100)))
}

/// Returns the start time, exit time, kernel time and user time of a process in units of 100 ns.
#[expect(unsafe_code, reason = "a call of the system, which fills structures")]
fn times(process: &OwnedHandle) -> io::Result<[u64; 4]> {
    let mut times = [FILETIME::default(); 4];
    let [start, end, kernel, user] = &mut times;
    // SAFETY: the process is open, and there is room for four times.
    worked(unsafe { GetProcessTimes(process.as_raw_handle(), start, end, kernel, user) })?;
    Ok(times.map(|time| u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime)))
}

/// Returns the path of a process's program.
///
/// # Errors
/// If the process has exited or may not be accessed.
#[expect(unsafe_code, reason = "a call of the system, which fills a buffer")]
pub fn program(pid: u32) -> io::Result<PathBuf> {
    let process = process(pid)?;
    let mut room = vec![0u16; LONGEST_PATH];
    let mut units = u32::try_from(room.len()).map_err(io::Error::other)?;
    // SAFETY: the process is open, there is room for `units` units, and it comes back how many are used.
    worked(unsafe {
        QueryFullProcessImageNameW(process.as_raw_handle(), 0, room.as_mut_ptr(), &raw mut units)
    })?;
    Ok(from_wide(&room).into())
}

/// Returns the id of the current thread.
#[expect(unsafe_code, reason = "a call of the system without arguments")]
pub fn current_thread_id() -> u32 {
    // SAFETY: it takes nothing, and can't fail.
    unsafe { GetCurrentThreadId() }
}

/// A process that can be waited for.
#[derive(Debug)]
pub struct Running(OwnedHandle);

impl Running {
    /// Opens a process.
    ///
    /// # Errors
    /// If the process has exited or may not be accessed.
    pub fn open(pid: u32) -> io::Result<Self> {
        opened(pid, PROCESS_SYNCHRONIZE).map(Self)
    }

    /// Waits until the process exits or `time` has passed, and returns whether it has exited.
    ///
    /// # Errors
    /// If the wait fails.
    #[expect(unsafe_code, reason = "a call of the system")]
    pub fn ends_within(&self, time: Duration) -> io::Result<bool> {
        let milliseconds = u32::try_from(time.as_millis()).unwrap_or(INFINITE);
        // SAFETY: the handle is open.
        match unsafe { WaitForSingleObject(self.0.as_raw_handle(), milliseconds) } {
            WAIT_OBJECT_0 => Ok(true),
            WAIT_TIMEOUT => Ok(false),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Returns whether a process belongs to the current user.
///
/// # Errors
/// If the process has exited, or its user cannot be read, which usually means that it is another user.
pub fn is_ours(pid: u32) -> io::Result<bool> {
    Ok(sid_of(pid)? == sid_of(std::process::id())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_listed_and_of_the_current_user() {
        let me = std::process::id();
        let entry = list().unwrap().into_iter().find(|entry| entry.pid == me).unwrap();
        let program = program(me).unwrap();
        assert!(program.to_string_lossy().ends_with(&entry.name), "{program:?} {entry:?}");
        assert!(is_ours(me).unwrap());
        assert_eq!(start_time(me).unwrap(), start_time(me).unwrap());
    }

    #[test]
    fn a_running_process_has_not_exited() {
        let running = Running::open(std::process::id()).unwrap();
        assert!(!running.ends_within(Duration::from_millis(1)).unwrap());
        Running::open(u32::MAX).unwrap_err();
    }

    #[test]
    fn an_odd_id_is_invalid() {
        // Process ids are multiples of four.
        start_time(u32::MAX).unwrap_err();
        is_ours(u32::MAX).unwrap_err();
    }
}
