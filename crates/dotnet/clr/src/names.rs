//! Maps addresses to names, as learned from the events of a stream.

use std::fmt;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use runtap_nettrace::{Event, IdTable, Metadata, Observe, StreamItem};
use runtap_wire::DecodeError;

use crate::clr::{self, MethodEvent, MethodEventKind, ModuleEvent, ProcessInfoEvent};
use crate::code_map::{Address, Code, CodeMap, MethodId};

/// Learns the names of methods and modules from a stream. Pass every item, then call [`seal`](Self::seal), then look up names.
///
/// Names of precompiled code come last in a stream, so a recording must be read to its end first.
#[derive(Debug, Clone, Default)]
pub struct Names {
    code: CodeMap,
    command_line: Option<String>,
    /// Whether there was a module that is an assembly, and one that is not.
    has_assembly: bool,
    has_other_module: bool,
    /// The major version of the runtime.
    major: Option<u16>,
    /// Whether events have names, by metadata id.
    tells: IdTable<bool>,
    malformed: u64,
}

/// The result of a lookup.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    pub(crate) method: Option<MethodId>,
    /// Whether the result does not depend on the time.
    pub(crate) is_always: bool,
    /// The number of steps ([`MAX_STEPS`](runtap_model::MAX_STEPS)).
    pub(crate) steps: usize,
}

/// The number of steps that a search among all methods counts.
pub(crate) const LOOK_UP: usize = 16;

impl Names {
    /// Creates an empty map.
    pub fn new() -> Self {
        Self::default()
    }

    fn define(&mut self, metadata: &Metadata) {
        self.tells.insert(metadata.id, names_something(metadata));
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>) {
        if self.tells.get(event.metadata_id) == Some(&true)
            && let Some(metadata) = event.metadata
        {
            self.learn(&NamingEvent::of(metadata, event));
        }
    }

    /// Processes an event for which [`names_something`] is true.
    pub(crate) fn learn(&mut self, event: &NamingEvent<'_>) {
        if self.try_learn(event).is_err() {
            self.malformed += 1;
        }
    }

    fn try_learn(&mut self, event: &NamingEvent<'_>) -> Result<(), DecodeError> {
        let NamingEvent { provider, id, .. } = *event;
        if let Some(method) = MethodEvent::decode(provider, id, event.payload)? {
            let code = Code {
                id: method.method_id,
                module: method.module_id,
                start: method.start,
                size: method.size,
                flags: method.flags,
                rejit_id: method.rejit_id,
            };
            let name = || method.has_name().then(|| method.full_name());
            match method.kind {
                MethodEventKind::Load => self.code.load(code, Some(event.timestamp), name),
                MethodEventKind::Exists => self.code.load(code, None, name),
                MethodEventKind::Unload => self.code.unload(code, event.timestamp, name),
            }
        } else if let Some(module) = ModuleEvent::decode(provider, id, event.payload)? {
            match module.is_assembly() {
                Some(true) => self.has_assembly = true,
                Some(false) => self.has_other_module = true,
                None => {}
            }
            if let Some(name) = module.short_name() {
                let live = provider == clr::RUNTIME;
                self.code.module(module.module_id, live.then_some(event.timestamp), name);
            }
        } else if let Some(process) = ProcessInfoEvent::decode(provider, id, event.payload)? {
            self.command_line = Some(process.command_line.to_string());
        } else if id == RUNTIME_START {
            // Behind the instance and the kind of the runtime.
            self.major = event.payload.get(4..).and_then(<[u8]>::first_chunk).map(|b| u16::from_le_bytes(*b));
        }
        Ok(())
    }

    /// Sorts what was learned. Must be called before lookups, and again after more items.
    pub fn seal(&mut self) {
        self.code.seal();
    }

    /// Returns the command line of the program.
    pub fn command_line(&self) -> Option<&str> {
        self.command_line.as_deref()
    }

    /// Whether the program is known to have no CLR because all its modules are native, as in a Rust program that sends such events.
    pub(crate) fn is_native(&self) -> bool {
        self.has_other_module && !self.has_assembly
    }

    /// Whether the runtime is known to mark every sample correctly as running or waiting. .NET 8 and 9 do not.
    pub(crate) fn has_exact_states(&self) -> bool {
        self.is_native() || self.major.is_some_and(|major| major >= 10)
    }

    /// Returns the number of events of a known kind whose payload could not be read.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Returns all methods.
    pub fn code(&self) -> &CodeMap {
        &self.code
    }

    /// Returns the method of a frame at a time (in ticks of the target's clock), and whether it does not depend on the time.
    ///
    /// `is_leaf` distinguishes an executed address from a return address, which is after its call.
    pub fn method(&self, ip: u64, is_leaf: bool, time: u64) -> (Option<MethodId>, bool) {
        let found = self.look_up(ip, is_leaf, time);
        (found.method, found.is_always)
    }

    /// Returns the result of [`method`](Self::method) with its number of steps.
    pub(crate) fn look_up(&self, ip: u64, is_leaf: bool, time: u64) -> Found {
        // The call is before the return address, at which the next method may begin.
        let address = if is_leaf { ip } else { ip.saturating_sub(1) };
        let found = |method, is_always, steps| Found { method, is_always, steps };
        match self.code.lookup(address) {
            Address::Always(method) => found(Some(method), true, LOOK_UP),
            Address::Unknown => found(None, true, LOOK_UP),
            Address::Depends => {
                let (method, steps) = self.code.look_at(address, time);
                found(method, false, LOOK_UP + steps)
            }
        }
    }

    /// Returns the module and the name of a method.
    pub fn texts(&self, method: MethodId) -> (Option<&str>, &str) {
        match self.code.method(method) {
            Some(method) => (self.code.module_name(method.module, method.loaded), &method.name),
            None => (None, "?"),
        }
    }

    /// Returns the text of a frame: `Module!Namespace.Type.Method(args)`, or `?!0xADDR` if unknown.
    pub fn frame(&self, ip: u64, is_leaf: bool, time: u64) -> FrameText<'_> {
        FrameText { ip, texts: self.method(ip, is_leaf, time).0.map(|method| self.texts(method)) }
    }
}

impl Observe for Names {
    #[inline]
    fn item(&mut self, item: &StreamItem<'_>) {
        match item {
            StreamItem::Metadata(metadata) => self.define(metadata),
            StreamItem::Event(event) => self.event(event),
            _ => {}
        }
    }
}

/// The parts of an event that are needed for names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NamingEvent<'a> {
    provider: &'a str,
    id: u32,
    timestamp: u64,
    payload: &'a [u8],
}

impl<'a> NamingEvent<'a> {
    pub(crate) fn of(metadata: &'a Metadata, event: &Event<'a>) -> Self {
        let Event { timestamp, payload, .. } = *event;
        Self { provider: &metadata.provider, id: metadata.event_id, timestamp, payload }
    }
}

/// Events with names, kept in order for later.
#[derive(Debug, Clone, Default)]
pub(crate) struct NamingEvents {
    events: Vec<(&'static str, u32, u64, usize)>,
    /// The concatenated payloads. Each event has the end of its own.
    bytes: Vec<u8>,
    /// The code size of each method that was last reported as existing, by id and start. Equal reports are dropped.
    known: HashMap<(u64, u64), u32, RandomState>,
    malformed: u64,
}

impl NamingEvents {
    /// Keeps an event for which [`names_something`] is true, unless it is redundant.
    pub(crate) fn take(&mut self, event: &NamingEvent<'_>) {
        let all = [clr::RUNTIME, clr::RUNDOWN, clr::EVENT_PIPE];
        let Some(provider) = all.into_iter().find(|name| *name == event.provider) else { return };
        match MethodEvent::decode(provider, event.id, event.payload) {
            Ok(Some(method)) => {
                let MethodEvent { method_id, start, size, .. } = method;
                if method.kind == MethodEventKind::Exists && method.has_name() {
                    if self.known.insert((method_id, start), size) == Some(size) {
                        return;
                    }
                } else {
                    self.known.remove(&(method_id, start));
                }
            }
            Ok(None) => {}
            Err(_) => {
                self.malformed += 1;
                return;
            }
        }
        self.bytes.extend_from_slice(event.payload);
        self.events.push((provider, event.id, event.timestamp, self.bytes.len()));
    }

    /// Passes the events to `names`.
    pub(crate) fn replay(&self, names: &mut Names) {
        let mut start = 0;
        for (provider, id, timestamp, end) in &self.events {
            let payload = self.bytes.get(std::mem::replace(&mut start, *end)..*end).unwrap_or_default();
            names.learn(&NamingEvent { provider, id: *id, timestamp: *timestamp, payload });
        }
        names.malformed += self.malformed;
    }
}

/// `Runtime/Start`, which has the version of the runtime.
const RUNTIME_START: u32 = 187;

/// Whether an event has a name.
pub(crate) fn names_something(metadata: &Metadata) -> bool {
    matches!(
        (metadata.provider.as_str(), metadata.event_id),
        (clr::RUNTIME, 141..=144 | 151 | 152 | RUNTIME_START)
            | (clr::RUNDOWN, 141..=144 | 151..=154 | RUNTIME_START)
            | (clr::EVENT_PIPE, 1)
    )
}

/// The text of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameText<'a> {
    ip: u64,
    texts: Option<(Option<&'a str>, &'a str)>,
}

impl fmt::Display for FrameText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.texts {
            Some((module, name)) => write!(f, "{}!{name}", module.unwrap_or("?")),
            // An unknown address is shown as it is, not as that of the call before it.
            None => write!(f, "?!{:#x}", self.ip),
        }
    }
}
