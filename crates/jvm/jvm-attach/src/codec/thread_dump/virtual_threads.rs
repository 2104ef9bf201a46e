//! Virtual threads, from the file that `Thread.dump_to_file -format=json` writes (JDK 21 and later).
//!
//! The file lists platform threads too, and only JDK 24 and later mark virtual threads. In other files, a thread is virtual if it is not
//! among the known platform threads, and its outermost frame is the one of a virtual thread (a thread without frames has not started or
//! has ended).

use runtap_model::order;
use runtap_model::thread_dump::{
    DumpedFrame, DumpedThread, ThreadDump, ThreadKind, ThreadState, ThreadWait, WaitKind,
};
use serde::Deserialize;

use super::stack::frame;
use super::{ThreadDumpError, ThreadDumpLimits};

#[derive(Deserialize)]
struct File {
    #[serde(rename = "threadDump")]
    thread_dump: Dump,
}

#[derive(Deserialize)]
struct Dump {
    #[serde(rename = "threadContainers")]
    containers: Vec<Container>,
}

#[derive(Deserialize)]
struct Container {
    #[serde(default)]
    threads: Vec<FileThread>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FileThread {
    /// A number, or a text with a number.
    tid: serde_json::Value,
    #[serde(default)]
    name: String,
    #[serde(default)]
    state: Option<String>,
    #[serde(default, rename = "virtual")]
    is_virtual: Option<bool>,
    #[serde(default)]
    stack: Vec<String>,
    #[serde(default)]
    blocked_on: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    waiting_on: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    park_blocker: Option<serde::de::IgnoredAny>,
}

/// The outermost methods of virtual threads.
const ROOTS: [&str; 2] = ["java.lang.VirtualThread.run", "java.lang.ThreadBuilders$BoundVirtualThread.run"];

/// Adds the virtual threads in a file to a dump of the platform threads. Returns their number.
///
/// # Errors
/// Fails if the file cannot be parsed.
pub fn add_virtual_threads(
    dump: &mut ThreadDump,
    file: &[u8],
    limits: &ThreadDumpLimits,
) -> Result<usize, ThreadDumpError> {
    let parsed: File = serde_json::from_slice(file).map_err(|error| ThreadDumpError::VirtualThreads {
        line: error.line(),
        column: error.column(),
        reason: error.to_string(),
    })?;
    let platform = order::to_set(dump.threads.iter().filter_map(|thread| thread.id));
    let mut frames: usize = dump.threads.iter().map(|thread| thread.frames.len()).sum();
    let mut count: usize = 0;
    for thread in parsed.thread_dump.containers.into_iter().flat_map(|container| container.threads) {
        let id = thread.tid.as_u64().or_else(|| thread.tid.as_str()?.parse().ok());
        if id.is_some_and(|id| platform.contains(&id)) {
            continue;
        }
        let stack: Vec<DumpedFrame> = thread.stack.iter().map(|element| parse_element(element)).collect();
        let is_root = |frame: &DumpedFrame| ROOTS.contains(&frame.name.as_str());
        // Files with states mark virtual threads.
        let seems_virtual = || thread.state.is_none() && stack.last().is_none_or(is_root);
        if !thread.is_virtual.unwrap_or_else(seems_virtual) {
            continue;
        }
        frames = frames.saturating_add(stack.len());
        if dump.threads.len() >= limits.threads || frames > limits.frames {
            dump.omitted = dump.omitted.saturating_add(1);
            continue;
        }
        count = count.saturating_add(1);
        dump.threads.push(DumpedThread {
            kind: ThreadKind::Virtual,
            id,
            name: Some(thread.name).filter(|name| !name.is_empty()),
            state: thread.state.as_deref().and_then(ThreadState::of_java),
            // All virtual threads are.
            is_daemon: Some(true),
            wait: match (thread.blocked_on, thread.waiting_on, thread.park_blocker) {
                (Some(_), ..) => Some(ThreadWait::new(WaitKind::Lock)),
                (_, Some(_), _) => Some(ThreadWait::new(WaitKind::Condition)),
                (_, _, Some(_)) => Some(ThreadWait::new(WaitKind::Park)),
                _ => None,
            },
            frames: stack,
            ..DumpedThread::default()
        });
    }
    Ok(count)
}

/// Parses `LOADER/MODULE@VERSION/CLASS.METHOD(SOURCE)`, in which the loader and the module may be missing.
fn parse_element(text: &str) -> DumpedFrame {
    let (name, source) = text.rsplit_once('(').unwrap_or((text, ""));
    let source = source.strip_suffix(')').unwrap_or(source);
    let mut parts: Vec<&str> = name.split('/').collect();
    let mut method = parts.pop().unwrap_or_default();
    // The name of a hidden class contains a slash before its address.
    if method.starts_with("0x") && !parts.is_empty() {
        let class = parts.pop().unwrap_or_default();
        let length = class.len().saturating_add(1).saturating_add(method.len());
        method = name.get(name.len().saturating_sub(length)..).unwrap_or(method);
    }
    let module = parts.pop().map(|module| module.split('@').next().unwrap_or(module));
    frame(method, module, source)
}
