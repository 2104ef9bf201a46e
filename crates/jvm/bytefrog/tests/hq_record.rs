//! The bytes that HQ passes to a recorder.

mod common;

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{entry, filters, finished, hq, until};
use runtap_bytefrog::hq::{AgentId, Connection, Event, Options, Recorder, Tape};
use runtap_bytefrog_proto::{Configuration, Dialect, Side};
use runtap_testkit::fake_agent::{FakeAgent, Step, recorded};
use runtap_testkit::{require, shared_data};

type Streams = Arc<Mutex<BTreeMap<String, (Vec<u8>, Vec<Duration>)>>>;

/// Keeps all bytes, except those beyond `room` bytes of a connection.
#[derive(Debug, Default)]
struct Memory {
    streams: Streams,
    room: Option<usize>,
}

struct Kept {
    name: String,
    streams: Streams,
    room: usize,
}

impl Recorder for Memory {
    fn open(&self, agent: AgentId, connection: Connection) -> io::Result<Box<dyn Tape>> {
        let (name, streams) = (format!("{}.{connection}", agent.0), Arc::clone(&self.streams));
        Ok(Box::new(Kept { name, streams, room: self.room.unwrap_or(usize::MAX) }))
    }

    fn mark(&self, at: Duration, name: &str, begins: bool) -> io::Result<()> {
        let mut streams = self.streams.lock().expect("no panic");
        let (_, times) = streams.entry(format!("{name} {begins}")).or_default();
        times.push(at);
        Ok(())
    }
}

impl Tape for Kept {
    fn write(&mut self, side: Side, at: Duration, bytes: &[u8]) -> io::Result<()> {
        let Some(room) = self.room.checked_sub(bytes.len()) else {
            return Err(io::ErrorKind::StorageFull.into());
        };
        self.room = room;
        let mut streams = self.streams.lock().expect("no panic");
        let (kept, times) = streams.entry(format!("{}.{side:?}", self.name)).or_default();
        kept.extend_from_slice(bytes);
        times.push(at);
        Ok(())
    }

    fn end(&mut self, at: Duration) -> io::Result<()> {
        let mut streams = self.streams.lock().expect("no panic");
        streams.entry(format!("{}.end", self.name)).or_default().1.push(at);
        Ok(())
    }
}

#[test]
fn every_byte_is_recorded_in_its_direction() {
    for scenario in ["v1_basic", "v1_reconfigure", "v4_suspend"] {
        let (dialect, steps) = require!(recorded(scenario));
        let memory = Memory::default();
        let streams = Arc::clone(&memory.streams);
        let recorder: Arc<dyn Recorder> = Arc::new(memory);
        let options = Options { configuration: filters(), recorder: Some(recorder), ..Options::default() };
        let (hq, heard) = hq(options);
        hq.mark("a feature", true).expect("it has room");
        let mut agent = FakeAgent::connect(hq.address(), dialect).expect("HQ listens");
        agent.run(&steps).unwrap_or_else(|error| panic!("{scenario}: {error}"));
        assert_eq!(finished(&heard, 0), [], "{scenario}");
        hq.mark("a feature", false).expect("it has room");

        let streams = streams.lock().expect("no panic");
        let bytes = |name: &str| streams.get(name).map(|(bytes, _)| bytes.clone()).unwrap_or_default();
        let file = |name: &str| shared_data(format!("bytefrog/{scenario}.{name}")).expect("it is there");
        assert_eq!(bytes("0.ctl.Agent"), file("ctl.a2h.bin"), "{scenario}");
        let sent = Configuration { run: 0, ..filters() }.to_message(dialect).expect("short");
        assert_eq!(bytes("0.ctl.Hq"), [sent, vec![2]].concat(), "{scenario}");
        // Data hello contains the run that HQ has assigned, which is not the run of the file.
        assert_eq!(bytes("0.data0.Agent")[..2], [0x1e, 0], "{scenario}");
        assert_eq!(bytes("0.data0.Agent")[2..], file("data0.a2h.bin")[2..], "{scenario}");
        assert_eq!(bytes("0.data0.Hq"), [0x1f], "{scenario}");
        assert_eq!(streams.contains_key("0.data1.Agent"), scenario == "v1_reconfigure");
        for (name, (_, times)) in streams.iter() {
            assert!(times.is_sorted(), "{name}: {times:?}");
        }
        assert_eq!(streams["0.ctl.end"].1.len(), 1);
        assert!(streams["a feature true"].1[0] <= streams["0.ctl.Agent"].1[0]);
        assert!(streams["a feature false"].1[0] >= streams["0.ctl.end"].1[0]);
    }
}

#[test]
fn a_full_disk_is_told_once_and_the_trace_goes_on() {
    let (dialect, steps) = require!(recorded("v1_basic"));
    // The control connection fits, the data connection does not.
    let recorder: Arc<dyn Recorder> = Arc::new(Memory { room: Some(2000), ..Memory::default() });
    let (hq, heard) =
        hq(Options { configuration: filters(), recorder: Some(recorder), ..Options::default() });
    let mut agent = FakeAgent::connect(hq.address(), dialect).expect("HQ listens");
    agent.run(&steps).expect("HQ takes all of it");
    let all = until(&heard, |_, event| *event == Event::Finished);
    let failed: Vec<_> = all
        .iter()
        .filter_map(|(agent, event)| match event {
            Event::RecordingFailed { connection, reason } => Some((*agent, *connection, reason.as_str())),
            _ => None,
        })
        .collect();
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert_eq!((failed[0].0, failed[0].1), (Some(AgentId(0)), Connection::Data(0)));
    assert!(!failed[0].2.is_empty());
    assert_eq!(hq.report(AgentId(0)).expect("it is kept").counters.entries, 2542);
}

/// Every program that can connect can say hello, thousands of times.
#[test]
fn what_has_only_said_hello_is_not_recorded() {
    let memory = Memory::default();
    let streams = Arc::clone(&memory.streams);
    let recorder: Arc<dyn Recorder> = Arc::new(memory);
    let (hq, heard) = hq(Options { recorder: Some(recorder), ..Options::default() });
    let mut agent = FakeAgent::connect(hq.address(), Dialect::V1).expect("HQ listens");
    let hello = [Step::Hello, Step::AwaitConfiguration, Step::ConnectData];
    agent.run(&hello).expect("served");
    agent.run(&[Step::CloseData(0), Step::CloseControl]).expect("served");
    until(&heard, |_, event| *event == Event::Finished);
    assert!(streams.lock().expect("no panic").is_empty());

    // Events are evidence as well, without a heartbeat and after the end of the control connection.
    let mut agent = FakeAgent::connect(hq.address(), Dialect::V1).expect("HQ listens");
    agent.run(&hello).expect("served");
    agent.run(&[Step::CloseControl]).expect("served");
    until(&heard, |_, event| *event == Event::ControlEnded);
    let events = entry(0, 1);
    agent.run(&[Step::Data(0, events.clone()), Step::CloseData(0)]).expect("served");
    until(&heard, |_, event| *event == Event::Finished);
    let streams = streams.lock().expect("no panic");
    assert_eq!(streams["1.ctl.Agent"].0, [0, 1]);
    assert_eq!(streams["1.data0.Agent"].0, [vec![0x1e, 1], events].concat());
    let ends = ["1.ctl.end", "1.data0.end"].map(|name| streams[name].1.len());
    assert_eq!((ends, streams.len()), ([1, 1], 6), "{:?}", streams.keys());
}
