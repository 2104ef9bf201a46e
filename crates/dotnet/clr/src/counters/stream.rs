//! The counters of one session.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use runtap_model::counters::{Counter, Reading, Tags};
use runtap_nettrace::{Event, IdTable, Metadata, Observe, StreamItem, TraceHeader};

use super::{CounterEvent, CounterNotice, SharedSeries, decode, is_counter_event};
use crate::payload::Decoder;

/// The maximum number of instruments whose tags are kept, and the maximum size of their texts in bytes.
const MAX_INSTRUMENTS: usize = 50_000;
const MAX_BYTES: usize = 32 << 20;

/// The ids of a metrics session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MetricsSession {
    /// The id of the session, which several clients may share.
    pub id: String,
    /// The id of the client.
    pub client: String,
}

/// What an event changes.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum CounterUpdate {
    /// A counter of a meter is reported from now on. It may have no series yet.
    Begun(Counter),
    /// A series has a new reading.
    Reading(Reading),
    /// The series of a counter have ended.
    Ended(Counter),
    /// The program has a problem, or the session was rejected.
    Notice(CounterNotice),
}

/// The identity of an instrument: its id, or its names if it has no id (.NET 8 and older).
type InstrumentKey = (u32, String, Option<String>, String);

/// Reads the counters of a stream.
///
/// An event source with event counters may also have a meter of its name. From the meter's first instrument on, its event counters
/// are ignored, as in dotnet-counters.
#[derive(Debug, Default)]
pub struct CounterStream {
    own: MetricsSession,
    header: Option<TraceHeader>,
    has_events: bool,
    decoder: Decoder,
    /// Whether events of a definition are about counters, by metadata id.
    wanted: IdTable<bool>,
    instruments: BTreeMap<InstrumentKey, (Tags, Tags)>,
    bytes: usize,
    /// The meters that have instruments.
    meters: BTreeSet<String>,
    shared: SharedSeries,
    interval_s: Option<f64>,
    is_rejected: bool,
}

impl CounterStream {
    /// Creates a reader for the session with these ids, whose settings request this interval.
    pub fn new(own: MetricsSession, interval_s: f64) -> Self {
        Self { own, interval_s: Some(interval_s), ..Self::default() }
    }

    /// Whether the runtime rejected the metrics session. Event counters are not affected.
    pub fn is_rejected(&self) -> bool {
        self.is_rejected
    }

    /// Processes the next item of the stream.
    pub fn item(&mut self, item: &StreamItem<'_>) -> Option<CounterUpdate> {
        match item {
            StreamItem::Header(header) => self.header = Some((*header).clone()),
            StreamItem::Metadata(metadata) => {
                self.wanted.remove(metadata.id);
            }
            StreamItem::SequencePoint(point) if point.flushes_metadata() => self.wanted.clear(),
            StreamItem::Event(event) => return self.event(event),
            _ => {}
        }
        self.decoder.item(item);
        None
    }

    fn event(&mut self, event: &Event<'_>) -> Option<CounterUpdate> {
        if !std::mem::replace(&mut self.has_events, true) {
            self.header = self.header.take().map(|header| header.within_reach(event.timestamp));
        }
        let metadata = event.metadata.filter(|metadata| self.is_wanted(metadata))?;
        let decoded = decode(metadata, self.decoder.payload(event))?;
        let utc_ns = self.header.as_ref().and_then(|header| header.utc_ns(event.timestamp));
        self.update(decoded, utc_ns)
    }

    fn is_wanted(&mut self, metadata: &Metadata) -> bool {
        if let Some(known) = self.wanted.get(metadata.id) {
            return *known;
        }
        let wanted = is_counter_event(metadata);
        self.wanted.insert(metadata.id, wanted);
        wanted
    }

    /// Applies an event of any session.
    fn update(&mut self, event: CounterEvent, utc_ns: Option<i64>) -> Option<CounterUpdate> {
        let is_own = |session: &String| *session == self.own.id && !self.is_rejected;
        match event {
            CounterEvent::Reading { session: None, mut reading } => {
                reading.utc_ns = utc_ns;
                (!self.meters.contains(&reading.counter.provider)).then_some(CounterUpdate::Reading(reading))
            }
            CounterEvent::Reading { session: Some(session), mut reading } if is_own(&session) => {
                self.note_meter(&reading.counter.provider);
                if let Some((provider_tags, counter_tags)) = self.instruments.get(&key(&reading.counter)) {
                    reading.counter.provider_tags.clone_from(provider_tags);
                    reading.counter.counter_tags.clone_from(counter_tags);
                }
                reading.utc_ns = utc_ns;
                reading.values.interval_s = self.interval_s;
                self.shared.reading(&mut reading);
                if reading.counter.instruments.is_some() {
                    // These are the numbers of one of the instruments, and it is unknown which one.
                    reading.values.value = None;
                    reading.values.quantiles.clear();
                }
                Some(CounterUpdate::Reading(reading))
            }
            CounterEvent::Begin(session, counter) if is_own(&session) => {
                self.begin(&counter);
                Some(CounterUpdate::Begun(counter))
            }
            CounterEvent::End(session, counter) if is_own(&session) => Some(CounterUpdate::Ended(counter)),
            CounterEvent::Interval(session, seconds) if is_own(&session) => {
                self.interval_s = seconds.or(self.interval_s);
                self.shared.next_interval();
                None
            }
            // The runtime tells all sessions about a rejected one, and names the running one.
            CounterEvent::Notice(CounterNotice::OtherSession, running) => {
                (running != self.own.id).then(|| self.reject(CounterNotice::OtherSession))
            }
            CounterEvent::Notice(notice @ CounterNotice::OtherSettings { .. }, _) => match &notice {
                CounterNotice::OtherSettings { client, .. } if *client == self.own.client => {
                    Some(self.reject(notice))
                }
                _ => None,
            },
            CounterEvent::Notice(notice, session) => {
                is_own(&session).then_some(CounterUpdate::Notice(notice))
            }
            _ => None,
        }
    }

    /// Keeps what only the start of an instrument states. The runtime repeats it whenever another tool joins the session.
    fn begin(&mut self, counter: &Counter) {
        self.note_meter(&counter.provider);
        // Most instruments have no tags, which need not be kept.
        if counter.provider_tags.text().is_empty() && counter.counter_tags.text().is_empty() {
            return;
        }
        let key = key(counter);
        let names = key.1.len() + key.2.as_ref().map_or(0, String::len) + key.3.len();
        let size = names + counter.provider_tags.size() + counter.counter_tags.size();
        if self.instruments.len() >= MAX_INSTRUMENTS || self.bytes + size > MAX_BYTES {
            return;
        }
        if let Entry::Vacant(entry) = self.instruments.entry(key) {
            self.bytes += size;
            entry.insert((counter.provider_tags.clone(), counter.counter_tags.clone()));
        }
    }

    fn reject(&mut self, notice: CounterNotice) -> CounterUpdate {
        self.is_rejected = true;
        CounterUpdate::Notice(notice)
    }

    fn note_meter(&mut self, name: &str) {
        if !self.meters.contains(name) && self.bytes + name.len() <= MAX_BYTES {
            self.bytes += name.len();
            self.meters.insert(name.to_owned());
        }
    }
}

fn key(counter: &Counter) -> InstrumentKey {
    match counter.instance {
        0 => (0, counter.provider.clone(), counter.version.clone(), counter.name.clone()),
        id => (id, String::new(), None, String::new()),
    }
}

#[cfg(test)]
mod tests {
    use runtap_nettrace::{EventToWrite, Reader, Version, Writer};

    use super::*;

    /// The offset of the flags in the block of a sequence point, and the flag that ends the ids of definitions.
    const FLAGS: usize = 12;
    const FLUSH_METADATA: u8 = 2;

    /// A stream may define any number of events, one after the other.
    #[test]
    fn definitions_are_kept_until_their_ids_end() {
        let mut writer = Writer::with_version(&TraceHeader::new(0, 0, 1_000_000_000), Version::Nettrace6);
        let (mut reader, mut stream) = (Reader::new(), CounterStream::default());
        let mut most = 0;
        for round in 0..100 {
            for _ in 0..10 {
                let metadata_id = writer.define_event(&Metadata::new("Demo", 1, "Tick")).unwrap();
                let event = EventToWrite {
                    metadata_id,
                    timestamp: round,
                    thread_id: 1,
                    capture_thread_id: 1,
                    ..Default::default()
                };
                writer.event(&event).unwrap();
            }
            writer.flush();
            let events = writer.take_output();
            writer.sequence_point(round);
            let mut point = writer.take_output();
            point[FLAGS] |= FLUSH_METADATA;
            for bytes in [events, point] {
                reader
                    .items(&bytes)
                    .for_each(|item| {
                        stream.item(&item);
                        most = most.max(stream.wanted.len());
                    })
                    .unwrap();
            }
        }
        assert_eq!((most, stream.wanted.len()), (10, 0));
    }
}
