//! The work per event: as much as TraceEvent does in the mode that runtap is compared with.
//!
//! Parts of events are passed on instead of references to events, so that the compiler builds only the required parts.

use std::collections::HashMap;

use anyhow::Result;
use runtap_clr::clr::MethodEvent;
use runtap_clr::payload::{Decoder, Value};
use runtap_clr::{Code, CodeMap};
use runtap_nettrace::{Metadata, Observe, Reader, Stack, StreamItem};

use super::cores::Visitor;

/// `parse`: the complete header of each event, its definition, and losses.
#[derive(Default)]
pub(super) struct Events {
    events: u64,
    check: u64,
}

impl Visitor for Events {
    #[inline]
    fn visit(&mut self, item: &StreamItem<'_>) {
        if let StreamItem::Event(event) = item {
            self.events += u64::from(event.metadata.is_some());
            self.check = self.check.wrapping_add(event.timestamp).wrapping_add(event.payload.len() as u64);
        }
    }
}

impl Events {
    pub(super) fn sum(parts: &[Self]) -> u64 {
        std::hint::black_box(parts.iter().fold(0_u64, |sum, part| sum.wrapping_add(part.check)));
        parts.iter().map(|part| part.events).sum()
    }
}

/// `dynamic`: the value of every field of every event.
#[derive(Default)]
pub(crate) struct Fields {
    decoder: Decoder,
    /// Whether the definition is known, by metadata id.
    known: Vec<bool>,
    events: u64,
    read: u64,
    failed: u64,
    check: u64,
}

impl Visitor for Fields {
    fn begin(&mut self, reader: &Reader) {
        if let Some(header) = reader.header() {
            self.decoder.item(&StreamItem::Header(header));
        }
    }

    #[inline]
    fn visit(&mut self, item: &StreamItem<'_>) {
        match item {
            StreamItem::Event(event) => self.event(event.metadata_id, event.metadata, event.payload),
            _ => self.decoder.item(item),
        }
    }
}

/// Returns a number that depends on the value.
#[inline]
fn bits(value: &Value<'_>) -> u64 {
    match value {
        Value::Bool(value) => u64::from(*value),
        Value::Char(value) => u64::from(*value),
        Value::Int(value) => value.cast_unsigned(),
        Value::UInt(value) | Value::Hex(value) => *value,
        Value::F32(value) => u64::from(value.to_bits()),
        Value::F64(value) => value.to_bits(),
        Value::Utf16(text) => text.len() as u64,
        Value::Utf8(bytes) | Value::Bytes(bytes) => bytes.len() as u64,
        Value::Array(elements) => elements.len() as u64,
        _ => 1,
    }
}

impl Fields {
    #[inline(never)]
    fn event(&mut self, metadata_id: u32, metadata: Option<&Metadata>, payload: &[u8]) {
        self.events += 1;
        let id = usize::try_from(metadata_id).unwrap_or(usize::MAX);
        if self.known.get(id) != Some(&true) {
            self.know(metadata, id);
        }
        let Self { read, failed, check, .. } = self;
        self.decoder.payload_of(metadata_id, payload).fields().for_each(|field| {
            *read += 1;
            match field {
                Ok((_, value)) => *check = check.wrapping_add(bits(&value)),
                Err(_) => *failed += 1,
            }
        });
    }

    /// Marks a definition as known; it may come from an earlier part.
    #[cold]
    fn know(&mut self, metadata: Option<&Metadata>, id: usize) {
        if let Some(metadata) = metadata {
            self.decoder.item(&StreamItem::Metadata(metadata));
        }
        if id < 1 << 16 {
            self.known.resize(self.known.len().max(id + 1), false);
            self.known.splice(id..=id, [true]);
        }
    }

    /// Returns the number of events, and of fields read.
    pub(crate) fn sum(parts: &[Self]) -> (u64, u64) {
        std::hint::black_box(parts.iter().fold(0_u64, |sum, part| sum.wrapping_add(part.check)));
        let of = |number: fn(&Self) -> u64| parts.iter().map(number).sum::<u64>();
        (of(|part| part.events), of(|part| part.read) - of(|part| part.failed))
    }
}

/// `tracelog`: the stack of every event, with the name of each frame.
///
/// Events have the index of a stack; each distinct stack is named once. If code memory was reused, the name is of one
/// of its methods: finding the method for a time is left to profiles.
#[derive(Default)]
pub(crate) struct Stacks {
    events: u64,
    code: CodeMap,
    /// Whether an event describes code, by metadata id.
    tells: Vec<Option<bool>>,
    distinct: runtap_clr::Stacks,
    /// The number of events per stack.
    counts: Vec<u64>,
}

impl Visitor for Stacks {
    #[inline]
    fn visit(&mut self, item: &StreamItem<'_>) {
        if let StreamItem::Event(event) = item {
            self.event(event.stack, event.metadata_id, event.metadata, event.payload);
        }
    }
}

impl Stacks {
    /// Creates the state of a part of a recording; all parts share `stacks`.
    pub(crate) fn of_part(stacks: &runtap_clr::Stacks) -> Self {
        Self { distinct: stacks.of_part(), ..Self::default() }
    }

    #[inline(never)]
    fn event(&mut self, stack: Stack<'_>, metadata_id: u32, metadata: Option<&Metadata>, payload: &[u8]) {
        self.events += 1;
        if stack.id() != 0 {
            let index = self.distinct.index(stack);
            self.count(index, 1);
        }
        let id = usize::try_from(metadata_id).unwrap_or(usize::MAX);
        if self.tells.get(id) != Some(&Some(false)) {
            self.tell(metadata, payload, id);
        }
    }

    #[inline]
    fn count(&mut self, index: u32, events: u64) {
        let index = index as usize;
        if index >= self.counts.len() {
            self.counts.resize(self.distinct.len(), 0);
        }
        if let Some(count) = self.counts.get_mut(index) {
            *count += events;
        }
    }

    #[inline(never)]
    fn tell(&mut self, metadata: Option<&Metadata>, payload: &[u8], id: usize) {
        let Some(metadata) = metadata else { return };
        let method = MethodEvent::decode(&metadata.provider, metadata.event_id, payload);
        if id < 1 << 16 {
            self.tells.resize(self.tells.len().max(id + 1), None);
            self.tells.splice(id..=id, [Some(!matches!(method, Ok(None)))]);
        }
        let Ok(Some(method)) = method else { return };
        let name = || method.has_name().then(|| method.full_name());
        let code = Code {
            id: method.method_id,
            module: method.module_id,
            start: method.start,
            size: method.size,
            flags: method.flags,
            rejit_id: method.rejit_id,
        };
        self.code.load(code, None, name);
    }

    /// Returns the number of events, of events with a stack, of their frames, and of named frames.
    pub(crate) fn sum(parts: Vec<Self>) -> Result<(u64, [u64; 3])> {
        let mut parts = parts.into_iter();
        let mut whole = parts.next().unwrap_or_default();
        for part in parts {
            whole.events += part.events;
            for (index, events) in whole.distinct.join(&part.distinct).into_iter().zip(part.counts) {
                whole.count(index, events);
            }
            for method in part.code.methods() {
                let code = Code {
                    id: method.id,
                    module: method.module,
                    start: method.start,
                    size: u32::try_from(method.end - method.start)?,
                    flags: 0,
                    rejit_id: method.rejit_id,
                };
                whole.code.load(code, None, || method.has_name.then(|| method.name.clone()));
            }
        }
        whole.code.seal();
        let named = |address| {
            let method = whole.code.at(address, 0).and_then(|method| whole.code.method(method));
            method.is_some_and(|method| method.has_name)
        };
        let mut known = HashMap::new();
        let mut sums = [0; 3];
        for (index, events) in whole.counts.iter().enumerate() {
            let stack = whole.distinct.get(index);
            // A caller is named by its call instruction, which precedes the return address.
            let addresses =
                stack.iter().enumerate().map(|(depth, ip)| ip.saturating_sub(u64::from(depth > 0)));
            let named = addresses.filter(|ip| *known.entry(*ip).or_insert_with(|| named(*ip))).count() as u64;
            let frames = stack.len() as u64;
            for (sum, of_each) in sums.iter_mut().zip([u64::from(frames > 0), frames, named]) {
                *sum += events * of_each;
            }
        }
        Ok((whole.events, sums))
    }
}
