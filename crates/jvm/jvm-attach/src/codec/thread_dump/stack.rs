//! The lines of a stack: frames, objects and the state of the thread.

use runtap_model::thread_dump::{DumpedFrame, ThreadState, WaitKind};

use super::header::address;

/// An object: its address and its class. `None` if the JVM does not show it.
pub(super) type Object<'a> = Option<(u64, &'a str)>;

/// A line below a header.
#[derive(Debug, PartialEq)]
pub(super) enum Line<'a> {
    State(ThreadState),
    /// The state of a thread that sleeps.
    Sleeps(ThreadState),
    /// The state of a thread that is parked.
    Parks(ThreadState),
    /// The thread runs the virtual thread with this id.
    Carries(u64),
    Frame(DumpedFrame),
    Stack(StackLine<'a>),
}

/// A line about an object.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum StackLine<'a> {
    Holds(Object<'a>),
    Waits(WaitKind, Object<'a>),
}

impl<'a> Line<'a> {
    /// Parses a line. `is_synchronizer` is whether it is in the list of synchronizers. `None` for other lines.
    pub(super) fn parse(line: &'a str, is_synchronizer: bool) -> Option<Self> {
        if let Some(state) = line.strip_prefix("   java.lang.Thread.State: ") {
            let (name, detail) = state.split_once(' ').unwrap_or((state, ""));
            let state = ThreadState::of_java(name)?;
            return Some(match detail {
                "(sleeping)" => Self::Sleeps(state),
                "(parking)" => Self::Parks(state),
                _ => Self::State(state),
            });
        }
        if let Some(id) = line.strip_prefix("   Carrying virtual thread #") {
            return id.trim_end().parse().ok().map(Self::Carries);
        }
        if let Some(frame) = line.strip_prefix("\tat ") {
            return parse_frame(frame).map(Self::Frame);
        }
        let object_line = line.strip_prefix("\t- ")?;
        if is_synchronizer {
            return object(object_line).map(|object| Self::Stack(StackLine::Holds(Some(object))));
        }
        parse_object_line(object_line).map(Self::Stack)
    }
}

fn parse_object_line(line: &str) -> Option<StackLine<'_>> {
    let waits = |kind, rest| Some(StackLine::Waits(kind, object(rest)));
    if let Some(rest) = line.strip_prefix("locked ") {
        return Some(StackLine::Holds(object(rest)));
    }
    if let Some(rest) = line.strip_prefix("waiting to lock ") {
        return waits(WaitKind::Lock, rest);
    }
    // JDK 11 shows this for all threads in `Object.wait`.
    if let Some(rest) = line.strip_prefix("waiting to re-lock in wait() ") {
        return waits(WaitKind::Condition, rest);
    }
    if let Some(rest) = line.strip_prefix("parking to wait for ") {
        let kind = match object(rest.trim_start()) {
            Some((_, class)) => park_kind(class),
            None => WaitKind::Park,
        };
        return waits(kind, rest.trim_start());
    }
    let rest = line.strip_prefix("waiting on ")?;
    if rest.starts_with("the Class initialization monitor") {
        return Some(StackLine::Waits(WaitKind::ClassInit, None));
    }
    waits(WaitKind::Condition, rest)
}

/// Returns what a thread waits for that is parked with this blocker.
pub(super) fn park_kind(class: &str) -> WaitKind {
    let Some(name) = class.strip_prefix("java.util.concurrent.") else { return WaitKind::Park };
    if name.ends_with("ConditionObject") || name.ends_with("ConditionNode") {
        return WaitKind::Condition;
    }
    let has_owner = ["locks.ReentrantLock$", "locks.ReentrantReadWriteLock$"];
    if has_owner.iter().any(|prefix| name.starts_with(prefix)) {
        return WaitKind::Lock;
    }
    match name.split('$').next().unwrap_or_default() {
        "Semaphore" => WaitKind::Semaphore,
        "CountDownLatch" | "Phaser" | "CyclicBarrier" => WaitKind::Event,
        "FutureTask" | "CompletableFuture" => WaitKind::Task,
        "ForkJoinPool" | "SynchronousQueue" => WaitKind::Work,
        _ => WaitKind::Park,
    }
}

/// Parses `<0x…> (a CLASS)`.
fn object(text: &str) -> Option<(u64, &str)> {
    let (id, rest) = text.strip_prefix('<')?.split_once('>')?;
    let class = rest.strip_prefix(" (a ").and_then(|rest| rest.strip_suffix(')')).unwrap_or_default();
    Some((address(id)?, class))
}

/// Parses `CLASS.METHOD(MODULE@VERSION/SOURCE)`.
fn parse_frame(text: &str) -> Option<DumpedFrame> {
    let (name, rest) = text.rsplit_once('(')?;
    let place = rest.strip_suffix(')')?;
    let (module, source) =
        place.split_once('/').map_or((None, place), |(module, source)| (Some(module), source));
    let module = module.map(|module| module.split('@').next().unwrap_or(module));
    Some(frame(name, module, source))
}

/// Creates a frame from the name of its method, its module, and its source as Java shows it: `File.java:31`, `Native Method`.
pub(super) fn frame(name: &str, module: Option<&str>, source: &str) -> DumpedFrame {
    let (file, line) = match source.rsplit_once(':') {
        Some((file, line)) => match line.parse() {
            Ok(line) => (file, Some(line)),
            Err(_) => (source, None),
        },
        None => (source, None),
    };
    let is_file = !matches!(source, "Native Method" | "Unknown Source" | "Redefined" | "");
    DumpedFrame {
        name: name.to_owned(),
        module: module.filter(|module| !module.is_empty()).map(str::to_owned),
        file: is_file.then(|| file.to_owned()),
        line,
        is_native: Some(source == "Native Method"),
        ..DumpedFrame::default()
    }
}
