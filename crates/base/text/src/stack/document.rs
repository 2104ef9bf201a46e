//! The document `runtap.stack/1`.

use runtap_model::thread_dump::{DumpedFrame, DumpedLock, DumpedThread, ThreadDump, ThreadState};
use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

use super::StackList;
use super::async_chains::async_row;

#[derive(Serialize)]
struct ThreadRow<'a> {
    tid: Option<u64>,
    name: Option<&'a str>,
    kind: &'static str,
    id: Option<u64>,
    state: Option<&'static str>,
    daemon: Option<bool>,
    priority: Option<i32>,
    cpu_ns: Option<u64>,
    elapsed_ns: Option<u64>,
    carries: Option<u64>,
    waits_for: Option<WaitRow<'a>>,
    holds: Vec<&'a str>,
    frames: Vec<FrameRow<'a>>,
}

#[derive(Serialize)]
struct WaitRow<'a> {
    kind: &'static str,
    lock: Option<&'a str>,
    #[serde(rename = "type")]
    class: Option<&'a str>,
    owner: Option<usize>,
}

#[derive(Serialize)]
struct FrameRow<'a> {
    name: &'a str,
    module: Option<&'a str>,
    il_offset: Option<u32>,
    native_offset: Option<u64>,
    file: Option<&'a str>,
    line: Option<u32>,
    native: Option<bool>,
}

#[derive(Serialize)]
struct LockRow<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    class: Option<&'a str>,
    owner: Option<usize>,
    waiters: Vec<usize>,
}

#[derive(Serialize)]
struct DeadlockRow<'a> {
    threads: &'a [usize],
}

#[derive(Serialize)]
struct GroupRow {
    count: usize,
    threads: Vec<usize>,
}

impl Serialize for StackList<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let dump = self.dump;
        let groups = self.is_merged.then(|| {
            let groups = dump.groups().into_iter();
            groups
                .map(|group| GroupRow { count: group.threads.len(), threads: group.threads })
                .collect::<Vec<_>>()
        });
        let deadlocks: Vec<_> = dump.deadlocks.iter().map(|threads| DeadlockRow { threads }).collect();
        let threads = dump.threads.iter().enumerate();
        let mut document = serializer.serialize_struct("StackList", 11)?;
        document.serialize_field("schema", "runtap.stack/1")?;
        document.serialize_field("pid", &self.pid)?;
        document.serialize_field("kind", self.kind)?;
        document.serialize_field("name", &self.name)?;
        document.serialize_field(
            "threads",
            &threads.map(|(index, thread)| thread_row(dump, index, thread)).collect::<Vec<_>>(),
        )?;
        document.serialize_field("locks", &lock_rows(dump))?;
        document.serialize_field("deadlocks", &deadlocks)?;
        document.serialize_field("merged", &groups)?;
        document.serialize_field("virtual_threads", &self.has_virtual_threads)?;
        document.serialize_field("async", &dump.async_chains.as_ref().map(async_row))?;
        document.serialize_field("omitted", &dump.omitted)?;
        document.end()
    }
}

fn thread_row<'a>(dump: &'a ThreadDump, index: usize, thread: &'a DumpedThread) -> ThreadRow<'a> {
    let lock = |index: &usize| dump.locks.get(*index);
    ThreadRow {
        tid: thread.tid,
        name: thread.name.as_deref(),
        kind: thread.kind.name(),
        id: thread.id,
        state: thread.state.map(ThreadState::name),
        daemon: thread.is_daemon,
        priority: thread.priority,
        cpu_ns: thread.cpu_ns,
        elapsed_ns: thread.elapsed_ns,
        carries: thread.carries,
        waits_for: thread.wait.map(|wait| {
            let lock = wait.lock.as_ref().and_then(lock);
            WaitRow {
                kind: wait.kind.name(),
                lock: lock.map(|lock| lock.id.as_str()),
                class: lock.and_then(|lock| lock.class.as_deref()),
                owner: dump.blocker(index),
            }
        }),
        holds: thread.holds.iter().filter_map(lock).map(|lock| lock.id.as_str()).collect(),
        frames: thread.frames.iter().map(frame_row).collect(),
    }
}

fn frame_row(frame: &DumpedFrame) -> FrameRow<'_> {
    FrameRow {
        name: &frame.name,
        module: frame.module.as_deref(),
        il_offset: frame.il_offset,
        native_offset: frame.native_offset,
        file: frame.file.as_deref(),
        line: frame.line,
        native: frame.is_native,
    }
}

fn lock_rows<'a>(dump: &'a ThreadDump) -> Vec<LockRow<'a>> {
    let row = |lock: &'a DumpedLock| LockRow {
        id: &lock.id,
        class: lock.class.as_deref(),
        owner: lock.owner,
        waiters: Vec::new(),
    };
    let mut rows: Vec<LockRow<'a>> = dump.locks.iter().map(row).collect();
    for (index, thread) in dump.threads.iter().enumerate() {
        if let Some(row) = thread.wait.and_then(|wait| wait.lock).and_then(|lock| rows.get_mut(lock)) {
            row.waiters.push(index);
        }
    }
    rows
}
