//! The threads of a program with their stacks: text, and the document `runtap.stack/1`.

mod async_chains;
mod document;

use std::io;
use std::time::Duration;

use runtap_model::thread_dump::{
    DumpedFrame, DumpedThread, ThreadDump, ThreadKind, ThreadState, ThreadWait, WaitKind,
};

use crate::units::{Span, Things};
use crate::{Clean, Print, TextOptions, WARNING, cut};

/// The number of threads with equal stacks that are named.
const NAMED_THREADS: usize = 6;

/// The threads of a program.
#[derive(Debug, Clone, Copy)]
pub struct StackList<'a> {
    /// The process id. `None` if unknown.
    pub pid: Option<u32>,
    /// `dotnet` or `jvm`.
    pub kind: &'static str,
    /// The name of the program. `None` if unknown.
    pub name: Option<&'a str>,
    /// The threads.
    pub dump: &'a ThreadDump,
    /// Whether threads with equal stacks are shown together.
    pub is_merged: bool,
    /// Whether virtual threads are included. `None` if the runtime has none.
    pub has_virtual_threads: Option<bool>,
}

impl Print for StackList<'_> {
    fn print(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        let Self { dump, .. } = *self;
        let page = Page { list: self, options };
        writeln!(out, "{}", page.line(self.title()))?;
        for deadlock in &dump.deadlocks {
            writeln!(out)?;
            page.deadlock(deadlock, out)?;
        }
        if self.is_merged {
            for group in dump.groups() {
                writeln!(out)?;
                page.group(&group.threads, out)?;
            }
        } else {
            for (index, thread) in dump.threads.iter().enumerate() {
                writeln!(out)?;
                page.thread(index, thread, out)?;
            }
        }
        let Some(chains) = &dump.async_chains else { return Ok(()) };
        writeln!(out)?;
        async_chains::print(chains, &page, out)
    }
}

impl StackList<'_> {
    fn title(&self) -> String {
        let threads = Things(self.dump.threads.len() as u64, "thread");
        let pid = self.pid.map_or_else(|| "Process".to_owned(), |pid| format!("Process {pid}"));
        let name = self.name.map(|name| format!(" ({})", Clean(name))).unwrap_or_default();
        let deadlocks = match self.dump.deadlocks.len() {
            0 => String::new(),
            count => format!(", {}", Things(count as u64, "deadlock")),
        };
        format!("{pid}{name}: {threads}{deadlocks}")
    }
}

/// What the parts of the text have in common.
struct Page<'a> {
    list: &'a StackList<'a>,
    options: &'a TextOptions<'a>,
}

impl Page<'_> {
    fn line(&self, line: String) -> String {
        cut(line, self.options.width)
    }

    /// Returns the name of a thread and its id.
    fn name(&self, index: usize) -> String {
        let Some(thread) = self.list.dump.threads.get(index) else { return "unknown thread".to_owned() };
        let name = match &thread.name {
            Some(name) => format!("\"{}\"", Clean(name)),
            None => "unnamed".to_owned(),
        };
        match (thread.tid, thread.id) {
            (Some(tid), _) => format!("{name} (tid {tid})"),
            (None, Some(id)) => format!("{name} (#{id})"),
            (None, None) => name,
        }
    }

    /// Returns the type and the identity of an object.
    fn lock(&self, index: usize) -> String {
        let Some(lock) = self.list.dump.locks.get(index) else { return "an unknown object".to_owned() };
        let id = Clean(&lock.id);
        lock.class.as_deref().map_or_else(|| id.to_string(), |class| format!("{} {id}", Clean(class)))
    }

    fn deadlock(&self, threads: &[usize], out: &mut dyn io::Write) -> io::Result<()> {
        let warning = if self.options.styled { WARNING } else { anstyle::Style::new() };
        let count = Things(threads.len() as u64, "thread");
        let waits = if threads.len() == 1 { "waits for itself" } else { "wait for each other" };
        writeln!(out, "{warning}Deadlock{warning:#}: {count} {waits}")?;
        for (place, index) in threads.iter().enumerate() {
            let next = threads.get(place + 1).or_else(|| threads.first()).copied().unwrap_or_default();
            let wait = self.list.dump.threads.get(*index).and_then(|thread| thread.wait);
            let lock = wait.and_then(|wait| wait.lock).map_or_else(String::new, |lock| self.lock(lock));
            writeln!(out, "{}", self.line(format!("  {}", self.name(*index))))?;
            writeln!(out, "{}", self.line(format!("    waits for {lock},")))?;
            writeln!(out, "{}", self.line(format!("    held by {}", self.name(next))))?;
        }
        Ok(())
    }

    fn thread(&self, index: usize, thread: &DumpedThread, out: &mut dyn io::Write) -> io::Result<()> {
        self.heading(&self.name(index), thread, Some(thread), out)?;
        self.waits(thread, out)?;
        for lock in &thread.holds {
            writeln!(out, "{}", self.line(format!("  holds {}", self.lock(*lock))))?;
        }
        self.frames(&thread.frames, out)
    }

    fn group(&self, threads: &[usize], out: &mut dyn io::Write) -> io::Result<()> {
        let Some(thread) = threads.first().and_then(|first| self.list.dump.threads.get(*first)) else {
            return Ok(());
        };
        if let [only] = threads {
            self.heading(&self.name(*only), thread, Some(thread), out)?;
            self.waits(thread, out)?;
        } else {
            self.heading(&Things(threads.len() as u64, "thread").to_string(), thread, None, out)?;
            for index in threads.iter().take(NAMED_THREADS) {
                writeln!(out, "{}", self.line(format!("  {}", self.name(*index))))?;
            }
            if let Some(more) = threads.len().checked_sub(NAMED_THREADS).filter(|more| *more > 0) {
                writeln!(out, "  and {more} more")?;
            }
            if let Some(wait) = thread.wait {
                writeln!(out, "  {}", wait_text(wait.kind))?;
            }
        }
        self.frames(&thread.frames, out)
    }

    /// Writes the line above a stack. `only` is the thread if the stack belongs to no other one.
    fn heading(
        &self,
        title: &str,
        thread: &DumpedThread,
        only: Option<&DumpedThread>,
        out: &mut dyn io::Write,
    ) -> io::Result<()> {
        let mut line = title.to_owned();
        if matches!(thread.kind, ThreadKind::Virtual | ThreadKind::Runtime) {
            line.push_str(", ");
            line.push_str(thread.kind.name());
        }
        if let Some(state) = thread.state {
            line.push_str(", ");
            line.push_str(state_text(state));
        }
        if let Some(thread) = only {
            if thread.is_daemon == Some(true) && thread.kind == ThreadKind::Platform {
                line.push_str(", daemon");
            }
            if let Some(carried) = thread.carries {
                line = format!("{line}, runs virtual thread #{carried}");
            }
            if let Some(cpu_ns) = thread.cpu_ns {
                line = format!("{line}, cpu {}", Span(Duration::from_nanos(cpu_ns)));
            }
        }
        let heading = self.options.heading();
        writeln!(out, "{heading}{}{heading:#}", self.line(line))
    }

    fn waits(&self, thread: &DumpedThread, out: &mut dyn io::Write) -> io::Result<()> {
        let Some(ThreadWait { kind, lock }) = thread.wait else { return Ok(()) };
        let owner = lock.and_then(|lock| self.list.dump.locks.get(lock)?.owner);
        let owner = owner.filter(|_| kind != WaitKind::Condition);
        let unknown =
            if kind == WaitKind::Lock && owner.is_none() { ", whose owner is not reported" } else { "" };
        writeln!(out, "  {}{unknown}", wait_text(kind))?;
        if let Some(lock) = lock {
            writeln!(out, "{}", self.line(format!("    {}", self.lock(lock))))?;
        }
        match owner {
            Some(owner) => writeln!(out, "{}", self.line(format!("    held by {}", self.name(owner)))),
            None => Ok(()),
        }
    }

    fn frames(&self, frames: &[DumpedFrame], out: &mut dyn io::Write) -> io::Result<()> {
        frames.iter().try_for_each(|frame| writeln!(out, "    {}", self.frame(frame)))
    }

    /// Returns the text of a frame. If it is too long, the name is truncated and not the place.
    fn frame(&self, frame: &DumpedFrame) -> String {
        let separator = if self.list.kind == "jvm" { '/' } else { '!' };
        let module = frame.module.as_deref().map(|module| format!("{}{separator}", Clean(module)));
        let mut name = format!("{}{}", module.unwrap_or_default(), Clean(&frame.name));
        let place = match (&frame.file, frame.line) {
            (Some(file), Some(line)) => format!(" ({}:{line})", Clean(file)),
            (Some(file), None) => format!(" ({})", Clean(file)),
            (None, _) if frame.is_native == Some(true) => " (native)".to_owned(),
            (None, _) => match (frame.il_offset, frame.native_offset) {
                (Some(offset), _) => format!(" +IL {offset:#x}"),
                (None, Some(offset)) => format!(" +{offset:#x}"),
                (None, None) => String::new(),
            },
        };
        if let Some(width) = self.options.width {
            let room = width.saturating_sub(4 + place.chars().count());
            name = cut(name, Some(room.max(20)));
        }
        self.line_after_indent(name + &place)
    }

    fn line_after_indent(&self, line: String) -> String {
        cut(line, self.options.width.map(|width| width.saturating_sub(4)))
    }
}

fn state_text(state: ThreadState) -> &'static str {
    match state {
        ThreadState::New => "not started",
        ThreadState::Runnable => "runnable",
        ThreadState::Blocked => "blocked",
        ThreadState::Waiting => "waiting",
        ThreadState::TimedWaiting => "waiting with a time-out",
        ThreadState::Terminated => "terminated",
        ThreadState::Managed => "in managed code",
        ThreadState::Native => "in native code",
    }
}

fn wait_text(kind: WaitKind) -> &'static str {
    match kind {
        WaitKind::Lock => "waits for a lock",
        WaitKind::Condition => "waits for a notification",
        WaitKind::Event => "waits for an event",
        WaitKind::Semaphore => "waits for a semaphore",
        WaitKind::Task => "waits for a task",
        WaitKind::Thread => "waits for the end of a thread",
        WaitKind::Sleep => "sleeps",
        WaitKind::Park => "is parked",
        WaitKind::Io => "waits for input or output",
        WaitKind::Work => "waits for work",
        WaitKind::ClassInit => "waits for the initialization of a class",
        WaitKind::Native => "waits in native code, perhaps for a lock",
    }
}

#[cfg(test)]
mod tests;
