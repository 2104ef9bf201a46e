//! Thread dumps: the replies to `threaddump`, as [`ThreadDump`].
//!
//! Names of threads are printed as they are, and may contain quotes, line breaks and text that looks like the format. A header is
//! therefore accepted only if it ends with the fields of a header, and its `tid` (the address of a structure of the JVM) is in the list
//! of threads at the beginning, which precedes all names.
//!
//! ```text
//! _java_thread_list=0x…, length=2, elements={ 0x…, 0x… }
//!
//! "NAME" #1 [OSID] daemon prio=5 os_prio=0 cpu=1.43ms elapsed=16.57s tid=0x… nid=OSID waiting for monitor entry  [0x…]
//!    java.lang.Thread.State: BLOCKED (on object monitor)
//! TAB at shop.Cart.add(shop@1.0/Cart.java:31)
//! TAB - waiting to lock <0x…> (a java.lang.Object)
//!
//!    Locked ownable synchronizers:                                          with -l
//! TAB - <0x…> (a java.util.concurrent.locks.ReentrantLock$NonfairSync)
//!
//! "VM Thread" os_prio=0 cpu=1.95ms elapsed=17.33s tid=0x… nid=OSID runnable
//!
//! Found one Java-level deadlock:
//! ```
//!
//! Sources: `openjdk/jdk`, `src/hotspot/share/runtime/{threads,vframe}.cpp` and `services/threadService.cpp`, and the replies of JDK 11,
//! 17, 21 and 25.

mod deadlocks;
mod header;
mod stack;
mod text;
mod virtual_threads;

use std::collections::{BTreeMap, BTreeSet};

use runtap_model::thread_dump::{DumpedLock, DumpedThread, ThreadDump, ThreadState, ThreadWait, WaitKind};
use thiserror::Error;

use self::deadlocks::{Reported, complete_owners};
use self::header::Header;
use self::stack::{Line, StackLine};
pub use self::virtual_threads::add_virtual_threads;

/// Limits on the size of a thread dump: a thread or frame needs more memory than text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadDumpLimits {
    /// The maximum number of threads.
    pub threads: usize,
    /// The maximum number of frames of all threads.
    pub frames: usize,
}

impl Default for ThreadDumpLimits {
    fn default() -> Self {
        Self { threads: 200_000, frames: 2_000_000 }
    }
}

/// An error for a text that is not a thread dump.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ThreadDumpError {
    /// The heading is missing.
    #[error("the reply is not a thread dump: no heading 'Full thread dump' in its first {offset} bytes")]
    NoHeading {
        /// The number of bytes that were searched.
        offset: usize,
    },
    /// The list of virtual threads cannot be parsed.
    #[error("the list of virtual threads is invalid at line {line}, column {column}: {reason}")]
    VirtualThreads {
        /// The line, starting at 1.
        line: usize,
        /// The column, starting at 1.
        column: usize,
        /// The cause.
        reason: String,
    },
}

const HEADING: &str = "Full thread dump ";
/// The maximum number of bytes before the end of the heading.
const MAX_PREAMBLE: usize = 1024;

/// Parses a thread dump. Lines that are not known are ignored.
///
/// # Errors
/// Fails if the text is not a thread dump.
pub fn thread_dump(reply: &[u8], limits: &ThreadDumpLimits) -> Result<ThreadDump, ThreadDumpError> {
    let text = text::decode(reply);
    let preamble = text.get(..text.floor_char_boundary(MAX_PREAMBLE)).unwrap_or_default();
    let heading = preamble.starts_with(HEADING).then_some(0).or_else(|| {
        let at = preamble.find(&format!("\n{HEADING}"))?;
        at.checked_add(1)
    });
    let Some(heading) = heading else {
        return Err(ThreadDumpError::NoHeading { offset: preamble.len() });
    };
    let mut parser = Parser { lines: Lines { text: &text, at: heading }, ..Parser::new(*limits) };
    parser.run();
    Ok(parser.finish())
}

/// Returns the version of the JVM according to the heading of a thread dump: `Full thread dump OpenJDK 64-Bit Server VM (21.0.8+9 …`.
pub fn vm_version(reply: &[u8]) -> Option<u32> {
    let preamble = String::from_utf8_lossy(reply.get(..MAX_PREAMBLE).unwrap_or(reply));
    let heading = preamble.lines().find_map(|line| line.strip_prefix(HEADING))?;
    let (_, version) = heading.split_once('(')?;
    version.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The lines of a text.
#[derive(Debug, Clone, Default)]
struct Lines<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Iterator for Lines<'a> {
    /// A line with the offset of its start.
    type Item = (usize, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.text.get(self.at..).filter(|rest| !rest.is_empty())?;
        let line = rest.split('\n').next().unwrap_or(rest);
        let start = self.at;
        self.at = start.saturating_add(line.len()).saturating_add(1);
        Some((start, line))
    }
}

/// A section of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Stack,
    Synchronizers,
    Deadlock,
}

struct Parser<'a> {
    limits: ThreadDumpLimits,
    lines: Lines<'a>,
    section: Section,
    dump: ThreadDump,
    frames: usize,
    /// The addresses of the threads that are listed at the beginning, and those of them whose header has not been found.
    listed: BTreeSet<u64>,
    pending: BTreeSet<u64>,
    /// Whether a listed thread has no header, so that threads of the JVM are accepted nevertheless.
    is_relaxed: bool,
    /// No line that starts before this offset ends with the fields of an acceptable header.
    searched: usize,
    locks: BTreeMap<u64, usize>,
    /// The last thread that was added as a holder, for each lock.
    holders: Vec<Option<usize>>,
    reported: Reported<'a>,
}

impl Parser<'_> {
    fn new(limits: ThreadDumpLimits) -> Self {
        Self {
            limits,
            lines: Lines::default(),
            section: Section::Stack,
            dump: ThreadDump::default(),
            frames: 0,
            listed: BTreeSet::new(),
            pending: BTreeSet::new(),
            is_relaxed: false,
            searched: 0,
            locks: BTreeMap::new(),
            holders: Vec::new(),
            reported: Reported::default(),
        }
    }

    fn run(&mut self) {
        let mut in_list = false;
        while let Some((start, line)) = self.lines.next() {
            if line.starts_with("_java_thread_list=") && self.dump.threads.is_empty() {
                in_list = true;
            } else if in_list {
                in_list = !line.contains('}');
                for address in line.split([',', ' ', '}']).filter_map(header::address) {
                    if self.listed.len() < self.limits.threads && self.listed.insert(address) {
                        self.pending.insert(address);
                    }
                }
            } else if self.section == Section::Deadlock {
                self.reported.line(line);
            } else if line.starts_with('"') {
                self.header(start);
            } else if deadlocks::is_heading(line) && (self.pending.is_empty() || self.is_relaxed) {
                self.section = Section::Deadlock;
            } else if line == "   Locked ownable synchronizers:" {
                self.section = Section::Synchronizers;
            } else {
                self.stack_line(line);
            }
        }
    }

    /// Finds the end of the header that starts with a quote at `start`, and adds its thread.
    fn header(&mut self, start: usize) {
        let found = self.find_header(start).or_else(|| {
            // A listed thread without a header: accept threads of the JVM.
            (!std::mem::replace(&mut self.is_relaxed, true)).then(|| {
                self.searched = 0;
                self.find_header(start)
            })?
        });
        let Some((quote, header, next)) = found else { return };
        self.lines.at = next;
        self.section = Section::Stack;
        if self.dump.threads.len() >= self.limits.threads {
            self.dump.omitted = self.dump.omitted.saturating_add(1);
            return;
        }
        let name = self.lines.text.get(start.saturating_add(1)..quote).unwrap_or_default();
        self.dump.threads.push(header.into_thread(name));
    }

    /// Returns the offset of the quote after the name, the fields after it, and the offset of the next line.
    fn find_header(&mut self, start: usize) -> Option<(usize, Header, usize)> {
        let mut lines = Lines { text: self.lines.text, at: self.searched.max(start) };
        while let Some((at, line)) = lines.next() {
            let Some(quote) = line.rfind('"').and_then(|quote| at.checked_add(quote)) else { continue };
            let fields = lines.text.get(quote.saturating_add(1)..at.saturating_add(line.len()));
            if quote > start
                && let Some(header) = fields.and_then(Header::parse)
                && self.accept(&header)
            {
                self.searched = lines.at;
                return Some((quote, header, lines.at));
            }
        }
        self.searched = lines.text.len();
        None
    }

    fn accept(&mut self, header: &Header) -> bool {
        if header.is_java() {
            if !self.listed.is_empty() && !self.pending.remove(&header.address) {
                return false;
            }
            return true;
        }
        (self.pending.is_empty() || self.is_relaxed) && !self.listed.contains(&header.address)
    }

    fn stack_line(&mut self, line: &str) {
        // After a thread that was omitted, lines belong to no thread.
        if self.dump.omitted > 0 && self.dump.threads.len() >= self.limits.threads {
            return;
        }
        let Some(index) = self.dump.threads.len().checked_sub(1) else { return };
        let Some(line) = Line::parse(line, self.section == Section::Synchronizers) else { return };
        match line {
            Line::State(state) => self.thread(index, |thread| thread.state = Some(state)),
            Line::Sleeps(state) => self.thread(index, |thread| {
                thread.state = Some(state);
                thread.wait = Some(ThreadWait::new(WaitKind::Sleep));
            }),
            Line::Parks(state) => self.thread(index, |thread| {
                thread.state = Some(state);
                thread.wait = Some(ThreadWait::new(WaitKind::Park));
            }),
            Line::Carries(id) => self.thread(index, |thread| thread.carries = Some(id)),
            Line::Frame(frame) if self.frames < self.limits.frames => {
                self.frames = self.frames.saturating_add(1);
                self.thread(index, |thread| thread.frames.push(frame));
            }
            Line::Frame(_) => self.dump.omitted = self.dump.omitted.saturating_add(1),
            Line::Stack(line) => self.lock_line(index, line),
        }
    }

    fn thread(&mut self, index: usize, change: impl FnOnce(&mut DumpedThread)) {
        if let Some(thread) = self.dump.threads.get_mut(index) {
            change(thread);
        }
    }

    fn lock_line(&mut self, index: usize, line: StackLine<'_>) {
        match line {
            StackLine::Waits(kind, object) => {
                let lock = object.map(|(address, class)| self.lock(address, class));
                self.thread(index, |thread| {
                    // The innermost frame has the current wait; outer ones are those of `Object.wait`.
                    if thread.wait.is_some_and(|wait| wait.lock.is_some()) {
                        return;
                    }
                    // A thread that was notified waits for the monitor.
                    let is_notified =
                        kind == WaitKind::Condition && thread.state == Some(ThreadState::Blocked);
                    let kind = if is_notified { WaitKind::Lock } else { kind };
                    thread.wait = Some(ThreadWait { kind, lock });
                });
            }
            StackLine::Holds(Some((address, class))) => {
                let lock = self.lock(address, class);
                self.hold(index, lock);
            }
            StackLine::Holds(None) => {}
        }
    }

    fn hold(&mut self, index: usize, lock: usize) {
        // A waiting thread has released its lock, though the frame still shows it.
        let waits = self.dump.threads.get(index).and_then(|thread| thread.wait);
        let Some(holder) = self.holders.get_mut(lock) else { return };
        if waits.and_then(|wait| wait.lock) == Some(lock) || *holder == Some(index) {
            return;
        }
        *holder = Some(index);
        self.thread(index, |thread| thread.holds.push(lock));
        if let Some(lock) = self.dump.locks.get_mut(lock) {
            lock.owner = Some(index);
        }
    }

    /// Returns the position of an object.
    fn lock(&mut self, address: u64, class: &str) -> usize {
        let Self { locks, dump, holders, .. } = self;
        *locks.entry(address).or_insert_with(|| {
            let class = Some(class.to_owned()).filter(|class| !class.is_empty());
            dump.locks.push(DumpedLock { id: format!("{address:#x}"), class, owner: None });
            holders.push(None);
            dump.locks.len().saturating_sub(1)
        })
    }

    fn finish(self) -> ThreadDump {
        let Self { mut dump, locks, reported, .. } = self;
        complete_owners(&mut dump, &locks, &reported);
        dump.find_deadlocks();
        dump
    }
}

#[cfg(test)]
mod tests;
