//! Processes: a list of all, and what can be known of one from outside. Refuses to end one, and to read its memory.

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

/// What `GetExitCodeProcess` says of a process that runs.
const STILL_ACTIVE: u32 = 259;
/// Longest path in UTF-16 units, with its zero.
const LONGEST_PATH: usize = 1 << 15;

/// A process in the list of all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its id.
    pub pid: u32,
    /// Who has started it. That process may be gone, and its id another one's.
    pub parent: u32,
    /// The name of its program's file.
    pub name: String,
}

/// All processes, those of other users too.
///
/// # Errors
/// The system gives no list.
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

/// When a process was started: units of 100 ns since 1601. With its id that is one process for good.
///
/// # Errors
/// It is gone, or not for us to look at.
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

/// What its threads have used of the processors so far, in the kernel too.
///
/// # Errors
/// It is gone, or not for us to look at.
pub fn processor_time(pid: u32) -> io::Result<Duration> {
    let [_, _, kernel, user] = times(&process(pid)?)?;
    Ok(Duration::from_nanos(kernel.saturating_add(user).saturating_mul(100)))
}

/// Start, end, and time in the kernel and outside of it, in units of 100 ns.
#[expect(unsafe_code, reason = "a call of the system, which fills structures")]
fn times(process: &OwnedHandle) -> io::Result<[u64; 4]> {
    let mut times = [FILETIME::default(); 4];
    let [start, end, kernel, user] = &mut times;
    // SAFETY: the process is open, and there is room for four times.
    worked(unsafe { GetProcessTimes(process.as_raw_handle(), start, end, kernel, user) })?;
    Ok(times.map(|time| u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime)))
}

/// The path of its program.
///
/// # Errors
/// It is gone, or not for us to look at.
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

/// The id of this thread.
#[expect(unsafe_code, reason = "a call of the system without arguments")]
pub fn current_thread_id() -> u32 {
    // SAFETY: it takes nothing, and can't fail.
    unsafe { GetCurrentThreadId() }
}

/// A process that is waited for.
#[derive(Debug)]
pub struct Running(OwnedHandle);

impl Running {
    /// Opens it.
    ///
    /// # Errors
    /// It is gone, or not for us to look at.
    pub fn open(pid: u32) -> io::Result<Self> {
        opened(pid, PROCESS_SYNCHRONIZE).map(Self)
    }

    /// Waits for its end, and says whether that has come.
    ///
    /// # Errors
    /// It can't be waited for.
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

/// Whether a process is of our own user.
///
/// # Errors
/// It is gone, or its user is not for us to know: as a rule that of another one.
pub fn is_ours(pid: u32) -> io::Result<bool> {
    Ok(sid_of(pid)? == sid_of(std::process::id())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_listed_and_ours() {
        let me = std::process::id();
        let entry = list().unwrap().into_iter().find(|entry| entry.pid == me).unwrap();
        let program = program(me).unwrap();
        assert!(program.to_string_lossy().ends_with(&entry.name), "{program:?} {entry:?}");
        assert!(is_ours(me).unwrap());
        assert_eq!(start_time(me).unwrap(), start_time(me).unwrap());
    }

    #[test]
    fn the_end_is_waited_for() {
        let running = Running::open(std::process::id()).unwrap();
        assert!(!running.ends_within(Duration::from_millis(1)).unwrap());
        Running::open(u32::MAX).unwrap_err();
    }

    #[test]
    fn nobody_has_an_odd_id() {
        // Ids are multiples of four.
        start_time(u32::MAX).unwrap_err();
        is_ours(u32::MAX).unwrap_err();
    }
}
