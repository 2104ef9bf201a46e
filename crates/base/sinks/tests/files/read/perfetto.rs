//! Reads what is written of a Perfetto trace, and checks the rules of its packets.

use super::wire::{Field, fields};
use std::collections::BTreeMap;

/// The content of a trace.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    /// Clocks and their times.
    pub(crate) clocks: Vec<(u64, u64)>,
    /// Pid, name, command line of the first.
    pub(crate) process: (u64, String, Vec<String>),
    /// Pid and name of each, and the names of its threads.
    pub(crate) processes: Vec<(u64, String, Vec<String>)>,
    pub(crate) events: Vec<Event>,
}

/// Stands between the name of a thread and the number of a further track of it.
pub(crate) const FURTHER: &str = "\u{10ffff}further";

/// A begin with its name, or an end.
#[derive(Debug)]
pub(crate) struct Event {
    /// The name of the thread, and [`FURTHER`] if the event is not on its own track.
    pub(crate) thread: String,
    pub(crate) time: u64,
    pub(crate) begin: Option<String>,
}

pub(crate) fn read(file: &[u8]) -> Trace {
    let mut trace = Trace::default();
    let mut names = BTreeMap::new();
    let mut tracks = BTreeMap::new();
    let mut owners = BTreeMap::new();
    for (index, (number, packet)) in fields(file).into_iter().enumerate() {
        assert_eq!(number, 1, "a trace is packets only");
        let packet = one_each(packet);
        assert_eq!(packet[&10].number(), 1, "all packets are of one sequence");
        assert_eq!(
            packet[&13].number(),
            if index == 0 { 1 } else { 2 },
            "only the first packet clears the names"
        );
        if let Some(interned) = packet.get(&12) {
            for (_, name) in fields(interned.bytes()) {
                let name = one_each(name);
                let known = names.insert(name[&1].number(), name[&2].text());
                assert_eq!(known, None, "a name is sent once");
            }
        }
        let time = packet[&8].number();
        if let Some(clocks) = packet.get(&6) {
            for (_, clock) in fields(clocks.bytes()) {
                let clock = one_each(clock);
                trace.clocks.push((clock[&1].number(), clock[&2].number()));
            }
        } else if let Some(descriptor) = packet.get(&60) {
            let descriptor = one_each(*descriptor);
            let uuid = descriptor[&1].number();
            assert_ne!(uuid, 0, "0 is the track of the whole trace");
            if let Some(process) = descriptor.get(&3) {
                let all = fields(process.bytes());
                let text =
                    |wanted| all.iter().filter(move |(n, _)| *n == wanted).map(|(_, f)| f.text().to_owned());
                let pid = all.iter().find(|(n, _)| *n == 1).expect("a pid").1.number();
                let name = text(6).next().unwrap_or_default();
                if trace.processes.is_empty() {
                    trace.process = (pid, name.clone(), text(2).collect());
                }
                assert!(trace.processes.iter().all(|other| other.0 != pid), "a number is one process");
                owners.insert(uuid, trace.processes.len());
                trace.processes.push((pid, name, Vec::new()));
                assert_eq!(tracks.insert(uuid, None), None);
            } else if !descriptor.contains_key(&4) {
                let parent = tracks[&descriptor[&5].number()].clone().expect("a thread is the parent");
                assert_eq!(parent, descriptor[&2].text());
                assert_eq!(tracks.insert(uuid, Some(format!("{parent}{FURTHER}{uuid}"))), None);
            } else {
                assert_eq!(tracks[&descriptor[&5].number()], None, "the process is the parent");
                let thread = one_each(descriptor[&4]);
                let owner = &mut trace.processes[owners[&descriptor[&5].number()]];
                assert_eq!(thread[&1].number(), owner.0);
                let name = thread[&5].text();
                owner.2.push(name.to_owned());
                assert!(name.starts_with(&format!("Thread ({})", thread[&2].number())), "{name}");
                assert_eq!(tracks.insert(uuid, Some(name.to_owned())), None);
            }
        } else {
            let event = one_each(packet[&11]);
            let thread = tracks[&event[&11].number()].clone().expect("the track of a thread");
            let begin = match event[&9].number() {
                1 => Some(names[&event[&10].number()].to_owned()),
                2 => None,
                other => panic!("no such type of event: {other}"),
            };
            trace.events.push(Event { thread, time, begin });
        }
    }
    trace
}

/// The fields of a message in which none is repeated.
fn one_each(message: Field<'_>) -> BTreeMap<u64, Field<'_>> {
    let all = fields(message.bytes());
    let count = all.len();
    let map: BTreeMap<_, _> = all.into_iter().collect();
    assert_eq!(map.len(), count, "no field is repeated");
    map
}
