//! Threads from streams with known samples.

use runtap_nettrace::{EventToWrite, Metadata, Reader, TraceHeader, Version, Writer};
use runtap_wire::Writer as Bytes;

use super::*;

/// A stream of samples, methods and a map, in this order.
struct Stream {
    writer: Writer,
    sample: u32,
    method: u32,
    map: u32,
    time: u64,
}

impl Stream {
    fn new() -> Self {
        let mut writer = Writer::with_version(&TraceHeader::new(0, 0, 1), Version::Nettrace6);
        let mut define = |provider, id| writer.define_event(&Metadata::new(provider, id, "E")).unwrap();
        let sample = define(clr::SAMPLE_PROFILER, 0);
        let (method, map) = (define(clr::RUNDOWN, 144), define(clr::RUNDOWN, 150));
        Self { writer, sample, method, map, time: 0 }
    }

    fn event(&mut self, metadata_id: u32, thread_id: u64, stack: &[u64], payload: &[u8]) {
        self.time += 1;
        let timestamp = self.time;
        let event =
            EventToWrite { metadata_id, thread_id, timestamp, stack, payload, ..EventToWrite::default() };
        self.writer.event(&event).unwrap();
    }

    fn sample(&mut self, thread: u64, kind: u32, stack: &[u64]) {
        self.event(self.sample, thread, stack, &kind.to_le_bytes());
    }

    fn method(&mut self, id: u64, start: u64, name: &str) {
        let mut w = Bytes::new();
        w.u64(id).u64(1).u64(start).u32(0x100).u32(0x0600_0001).u32(8);
        w.utf16z("App").utf16z(name).utf16z("void  (int32)").u16(0).u64(0);
        self.event(self.method, 9, &[], &w.into_bytes());
    }

    fn map(&mut self, id: u64, entries: &[(u32, u32)]) {
        let mut w = Bytes::new();
        w.u64(id).u64(0).u8(0).u16(u16::try_from(entries.len()).unwrap());
        for (il, _) in entries {
            w.u32(*il);
        }
        for (_, native) in entries {
            w.u32(*native);
        }
        w.u16(0).u64(0);
        self.event(self.map, 9, &[], &w.into_bytes());
    }

    fn dump(self) -> ThreadDump {
        let (mut builder, mut reader) = (ThreadDumpBuilder::new(), Reader::new());
        let bytes = self.writer.finish();
        reader.items(&bytes).for_each(|item| builder.item(&item)).unwrap();
        builder.finish(|tid| (tid == 5).then(|| "worker".to_owned()))
    }
}

#[test]
fn the_first_sample_of_each_thread_counts() {
    let mut stream = Stream::new();
    stream.sample(7, EXTERNAL, &[0x1010, 0x2020]);
    stream.sample(5, MANAGED, &[0x2030]);
    stream.sample(7, MANAGED, &[0x2020]);
    stream.method(1, 0x1000, "Inner");
    stream.map(2, &[(0, 0), (9, 0x1f), (12, 0x20)]);
    stream.method(2, 0x2000, "Outer");
    let dump = stream.dump();
    let [worker, other] = &dump.threads[..] else { panic!("{dump:#?}") };
    assert_eq!(
        (worker.tid, worker.name.as_deref(), worker.state),
        (Some(5), Some("worker"), Some(ThreadState::Managed))
    );
    assert_eq!((other.tid, other.name.as_deref(), other.state), (Some(7), None, Some(ThreadState::Native)));
    // It moved, so it does not wait.
    assert_eq!((worker.wait, other.wait), (None, None));
    let places: Vec<_> = other
        .frames
        .iter()
        .map(|frame| (frame.name.as_str(), frame.il_offset, frame.native_offset))
        .collect();
    // The return address 0x20 belongs to the call before it.
    assert_eq!(places, [("App.Inner(int32)", None, Some(0x10)), ("App.Outer(int32)", Some(9), Some(0x20))]);
    assert_eq!(worker.frames[0].il_offset, Some(12));
}

#[test]
fn a_thread_that_stays_in_native_code_may_wait_for_a_lock() {
    let mut stream = Stream::new();
    for _ in 0..3 {
        stream.sample(5, EXTERNAL, &[0x1010]);
        stream.sample(6, EXTERNAL, &[0x9999]);
        stream.sample(7, MANAGED, &[0x1010]);
    }
    stream.method(1, 0x1000, "Enter");
    let dump = stream.dump();
    let kinds: Vec<_> = dump.threads.iter().map(|thread| thread.wait.map(|wait| wait.kind.name())).collect();
    assert_eq!(kinds, [Some("native"), None, None]);
    assert_eq!(dump.threads[1].frames[0].name, "0x9999");
}

#[test]
fn maps_of_other_code_are_not_used() {
    let mut stream = Stream::new();
    stream.sample(5, MANAGED, &[0x1010]);
    stream.map(2, &[(3, 0)]);
    stream.method(1, 0x1000, "A");
    // The map belonged to the event before.
    stream.method(2, 0x2000, "B");
    assert_eq!(stream.dump().threads[0].frames[0].il_offset, None);
}
