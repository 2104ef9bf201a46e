//! The state of this process's threads from `/proc`.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};

const TASKS: &str = "/proc/self/task";

/// Returns the ids of all threads.
pub(super) fn threads() -> io::Result<Vec<libc::pid_t>> {
    let mut threads = Vec::new();
    for entry in fs::read_dir(TASKS)? {
        // A thread that exits meanwhile is not an error.
        let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<libc::pid_t>().ok();
        threads.extend(entry.ok().and_then(number));
    }
    Ok(threads)
}

/// Detects changes of the number of threads, at a fraction of the cost of [`threads`].
#[derive(Debug)]
pub(super) struct Count(Option<File>);

impl Count {
    /// Opens the directory once, because opening it takes longer than the query.
    pub(super) fn open() -> Self {
        Self(File::open(TASKS).ok())
    }

    /// Returns a number that changes with the number of threads. `None` if the kernel does not provide it.
    pub(super) fn now(&self) -> Option<u64> {
        Some(self.0.as_ref()?.metadata().ok()?.nlink())
    }
}

/// Returns whether a thread blocks a signal. `None` if unknown.
pub(super) fn blocks(thread: libc::pid_t, signal: i32) -> Option<bool> {
    let status = fs::read_to_string(format!("{TASKS}/{thread}/status")).ok()?;
    let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:"))?;
    let mask = u64::from_str_radix(mask.trim(), 16).ok()?;
    let bit = u32::try_from(signal).ok()?.checked_sub(1)?;
    Some(mask.checked_shr(bit)? & 1 == 1)
}

/// The activity of a thread, according to its file `syscall`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activity {
    /// The thread runs, or is ready to run.
    Running,
    /// The thread waits in the kernel.
    Waiting(Wait),
    /// The activity is unknown.
    Unknown,
}

/// The wait of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wait {
    /// The number of the system call; negative if there is none, as for a page fault.
    pub(super) call: i64,
    /// A `futex` call that may have a time limit: a signal ends it with EINTR, even with `SA_RESTART`.
    pub(super) limited: bool,
    pub(super) stack: u64,
    pub(super) instruction: u64,
}

impl Wait {
    /// Returns whether a signal with `SA_RESTART` is not noticed: for waits that may end spuriously, so that every caller
    /// waits again, and for those that the kernel restarts. Sleeping and polling end early, as do waiting for a `futex` and
    /// reading from a socket with a time limit.
    pub(super) fn survives_a_signal(self) -> bool {
        let restarted = [libc::SYS_futex, libc::SYS_wait4, libc::SYS_waitid, libc::SYS_flock];
        restarted.contains(&self.call) && !self.limited
    }
}

/// The file with a thread's activity. Kept open unless there are many, because opening it takes longer than
/// reading it.
#[derive(Debug)]
pub(super) struct ActivityFile {
    thread: libc::pid_t,
    file: Option<File>,
}

impl ActivityFile {
    pub(super) fn of(thread: libc::pid_t, keep_open: bool) -> Self {
        Self { thread, file: keep_open.then(|| Self::open(thread)).flatten() }
    }

    fn open(thread: libc::pid_t) -> Option<File> {
        File::open(format!("{TASKS}/{thread}/syscall")).ok()
    }

    /// Returns the current activity of the thread.
    pub(super) fn now(&self) -> Activity {
        match &self.file {
            Some(file) => read(file),
            None => Self::open(self.thread).map_or(Activity::Unknown, |file| read(&file)),
        }
    }
}

fn read(file: &File) -> Activity {
    // A number, six arguments and two addresses.
    let mut line = [0; 256];
    let length = file.read_at(&mut line, 0).unwrap_or_default();
    let line = line.get(..length).and_then(|line| std::str::from_utf8(line).ok());
    line.map_or(Activity::Unknown, parse)
}

fn parse(line: &str) -> Activity {
    if line.starts_with("running") {
        return Activity::Running;
    }
    let mut words = line.split_ascii_whitespace();
    let call = words.next().and_then(|word| word.parse().ok());
    let hexadecimal = |word: &str| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok();
    let (instruction, stack) =
        (words.next_back().and_then(hexadecimal), words.next_back().and_then(hexadecimal));
    match (call, stack, instruction) {
        (Some(call), Some(stack), Some(instruction)) => {
            let limited = call == libc::SYS_futex && words.nth(3).and_then(hexadecimal) != Some(0);
            Activity::Waiting(Wait { call, limited, stack, instruction })
        }
        _ => Activity::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel_are_parsed() {
        assert_eq!(parse("running\n"), Activity::Running);
        let wait = |call| {
            Activity::Waiting(Wait { call, limited: false, stack: 0x7ffc_1234, instruction: 0x7f00_5678 })
        };
        assert_eq!(parse("230 0x0 0x0 0x7ffd 0x7ffe 0x0 0x0 0x7ffc1234 0x7f005678\n"), wait(230));
        assert_eq!(parse("-1 0x7ffc1234 0x7f005678\n"), wait(-1));
        // Only waits that the kernel restarts may be signalled: not a `futex` with a time limit, its fourth argument.
        let survives = |line: &str| match parse(line) {
            Activity::Waiting(wait) => wait.survives_a_signal(),
            other => panic!("{line}: {other:?}"),
        };
        let futex = libc::SYS_futex;
        for (limit, restarted) in [("0x0", true), ("0x7ffd1000", false), ("?", false)] {
            let line = format!("{futex} 0x7f01 0x189 0x2 {limit} 0x0 0xffffffff 0x7ffc1234 0x7f005678\n");
            assert_eq!(survives(&line), restarted, "{line}");
        }
        assert!(!survives(&format!("{futex} 0x7ffc1234 0x7f005678\n")));
        assert!(survives(&format!(
            "{} 0x1 0x7ffd 0x0 0x7ffe 0x0 0x0 0x7ffc1234 0x7f005678",
            libc::SYS_wait4
        )));
        assert!(!survives("-1 0x7ffc1234 0x7f005678\n"));
        for line in ["", "0", "-1 0x1", "x 0x1 0x2", "1 2 3"] {
            assert_eq!(parse(line), Activity::Unknown, "{line}");
        }
    }

    #[test]
    fn this_thread_is_among_the_threads_and_runs() {
        let this = super::super::memory::current_thread();
        assert!(threads().unwrap().contains(&this));
        for keep_open in [true, false] {
            let activity_file = ActivityFile::of(this, keep_open);
            assert!(matches!(activity_file.now(), Activity::Running | Activity::Waiting(_)));
            assert_eq!(activity_file.now(), activity_file.now());
        }
        assert_eq!(ActivityFile::of(5_000_000, true).now(), Activity::Unknown);
    }

    #[test]
    fn the_count_changes_with_the_number_of_threads() {
        let count = Count::open();
        let (told, wait) = std::sync::mpsc::channel::<()>();
        let (begun, begins) = std::sync::mpsc::channel();
        // Threads of other tests start and exit meanwhile; 40 more outweigh them.
        let before = count.now().unwrap();
        assert!(before > 2);
        let wait = std::sync::Mutex::new(wait);
        std::thread::scope(|scope| {
            for _ in 0..40 {
                let begun = begun.clone();
                let wait = &wait;
                scope.spawn(move || {
                    begun.send(()).unwrap();
                    // Until the other end is dropped.
                    let _ = wait.lock().map(|wait| wait.recv());
                });
            }
            for _ in 0..40 {
                begins.recv().unwrap();
            }
            let with = count.now().unwrap();
            drop(told);
            assert!(with > before + 20, "{before} before, {with} with 40 more");
        });
    }

    #[test]
    fn a_threads_mask_is_read() {
        let this = super::super::memory::current_thread();
        let signals = [libc::SIGUSR1, libc::SIGXCPU, 64];
        for signal in signals {
            assert_eq!(blocks(this, signal), Some(false), "{signal}");
        }
        super::super::signal::block(libc::SIGXCPU, true);
        assert_eq!(signals.map(|signal| blocks(this, signal)), [false, true, false].map(Some));
        super::super::signal::block(libc::SIGXCPU, false);
        assert_eq!([0, 65, -1].map(|signal| blocks(this, signal)), [None; 3]);
        assert_eq!(blocks(5_000_000, libc::SIGXCPU), None);
    }
}
