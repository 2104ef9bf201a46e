//! Events as lines: JSON Lines, CSV, or text for people, from recordings and live sessions. JSON Lines and CSV are stable and
//! specified in docs/events.md.
//!
//! Each event is written at once and not kept, so a recording of any size needs a constant amount of memory. Data of the target
//! can't act: control characters are escaped, and CSV cells are not formulas.

mod csv;
mod json;
mod live;
mod text;
mod unmet;

use std::io::{self, Write};
use std::ops::Range;

use runtap_nettrace::{Event, Observe, StreamItem, TraceHeader};

pub use self::live::LiveLines;
pub use self::unmet::{Matched, NameOf, Unmet};
use crate::payload::Decoder;
use crate::{Filter, Names, Record};

/// The format of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// One JSON object per line.
    Json,
    /// RFC 4180, with a header.
    Csv,
    /// For people; may change.
    Text,
}

impl Style {
    /// All formats.
    pub const ALL: [Self; 3] = [Self::Text, Self::Json, Self::Csv];

    /// Returns the name of the format.
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Text => "text",
        }
    }

    /// Returns other names of the format, as used by other tools.
    pub fn aliases(self) -> &'static [&'static str] {
        match self {
            Self::Json => &["jsonl"],
            Self::Csv | Self::Text => &[],
        }
    }
}

/// Which events are selected.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// The providers. Empty for all.
    pub providers: Vec<String>,
    /// The condition that events must meet.
    pub filter: Option<Filter>,
}

/// Selects events of a stream.
#[derive(Debug)]
pub struct Chooser {
    choice: Choice,
    decoder: Decoder,
    header: Option<TraceHeader>,
    /// The process id as seen from outside, which may differ from the one in the stream.
    process: Option<u32>,
    /// The names of frames, if `stack` is needed.
    names: Option<Names>,
    frames: Vec<String>,
    seen: unmet::StreamNames,
    events: u64,
    taken: u64,
}

impl Chooser {
    /// Creates a chooser. Stacks are available only with `names`.
    pub fn new(choice: Choice, names: Option<Names>) -> Self {
        let (decoder, seen) = (Decoder::new(), unmet::StreamNames::default());
        let (header, process, frames) = (None, None, Vec::new());
        Self { choice, decoder, header, process, names, frames, seen, events: 0, taken: 0 }
    }

    /// Sets the process id of all events. In a container, the stream may have a process id of another namespace.
    #[must_use]
    pub fn of_process(self, process: Option<u32>) -> Self {
        Self { process, ..self }
    }

    /// Whether every event is selected.
    pub fn takes_all(&self) -> bool {
        self.choice.providers.is_empty() && self.choice.filter.is_none()
    }

    /// Processes an item that is not an event.
    pub fn item(&mut self, item: &StreamItem<'_>) {
        if let StreamItem::Header(header) = item {
            let mut header = (*header).clone();
            header.process_id = self.process.unwrap_or(header.process_id);
            self.header = Some(header);
        }
        self.decoder.item(item);
        if let StreamItem::Metadata(metadata) = item
            && !self.takes_all()
        {
            self.seen.define(metadata, self.decoder.schema_of(metadata.id));
        }
    }

    /// Returns how many events were selected, and which names of the selection did not occur.
    pub fn matched(&self) -> Matched {
        let unmet = self.seen.unmet(&self.choice, self.taken > 0);
        Matched { events: self.events, taken: self.taken, unmet }
    }

    /// Returns the event as a record with the names of its frames, leaf first, if it is selected.
    #[inline]
    pub fn choose<'a>(&'a mut self, event: &'a Event<'a>) -> Option<(Record<'a>, Option<&'a [String]>)> {
        let Self { choice, decoder, header, names, frames, events, taken, .. } = self;
        if *events == 0 {
            *header = header.take().map(|header| header.within_reach(event.timestamp));
        }
        *events += 1;
        if !choice.providers.is_empty() {
            let provider = event.metadata.map_or("", |metadata| &metadata.provider);
            if !choice.providers.iter().any(|wanted| wanted == provider) {
                return None;
            }
        }
        let record = Record { header: header.as_ref()?, event, payload: decoder.payload(event) };
        if let Some(names) = names {
            frames.clear();
            let left_out = middle(event.stack.ips().len());
            let named = |ip, is_leaf| names.frame(ip, is_leaf, event.timestamp).to_string();
            let first = event.stack.ips().take(left_out.start).enumerate();
            frames.extend(first.map(|(depth, ip)| named(ip, depth == 0)));
            if !left_out.is_empty() {
                frames.push(format!("[{} frames left out]", left_out.len()));
            }
            frames.extend(event.stack.ips().skip(left_out.end).map(|ip| named(ip, false)));
        }
        if choice.filter.as_ref().is_some_and(|filter| !filter.matches(&record, frames)) {
            return None;
        }
        *taken += 1;
        Some((record, names.is_some().then_some(frames.as_slice())))
    }
}

/// The maximum number of frames of a stack in a line, far more than runtimes record. Lines repeat a stack for each event.
const MAX_DEPTH: usize = 1024;

/// Returns which frames of a stack are left out: the middle ones if it is too deep.
fn middle(depth: usize) -> Range<usize> {
    if depth <= MAX_DEPTH { depth..depth } else { MAX_DEPTH / 2..depth - (MAX_DEPTH / 2 - 1) }
}

/// Writes the events of a stream as lines.
#[derive(Debug)]
pub struct Lines<W> {
    chooser: Chooser,
    style: Style,
    /// Whether lines include stacks. They may be named only for a filter.
    stacks: bool,
    json: json::Heads,
    line: Vec<u8>,
    out: W,
    /// Whether the lines of several processes are mixed.
    several: bool,
    started: bool,
}

impl<W: Write> Lines<W> {
    /// Writes the selected events to `out`. With `stacks`, the chooser must have names.
    pub fn new(chooser: Chooser, style: Style, stacks: bool, out: W) -> Self {
        let json = json::Heads::default();
        Self { chooser, style, stacks, json, line: Vec::new(), out, several: false, started: false }
    }

    /// Adds the process to each line of text, because the lines of several processes are mixed.
    pub fn name_the_process(&mut self) {
        self.several = true;
    }

    /// Omits the header of a table, which has already been written.
    pub fn without_head(&mut self) {
        self.started = true;
    }

    /// Returns how many events were written, and which names of the selection did not occur.
    pub fn matched(&self) -> Matched {
        self.chooser.matched()
    }

    /// Processes the next item of the stream.
    ///
    /// # Errors
    /// Returns the error of the writer.
    pub fn item(&mut self, item: &StreamItem<'_>) -> io::Result<()> {
        let event = match item {
            StreamItem::Event(event) => event,
            item => {
                if let StreamItem::Metadata(metadata) = item {
                    self.json.forget(metadata.id);
                }
                self.chooser.item(item);
                return Ok(());
            }
        };
        let Self { chooser, style, stacks, json, line, out, several, started } = self;
        let Some((record, frames)) = chooser.choose(event) else { return Ok(()) };
        let frames = frames.filter(|_| *stacks);
        line.clear();
        match style {
            Style::Json => json::write(line, json, &record, frames),
            Style::Text => text::write(line, &record, frames, *several),
            Style::Csv => {
                if !std::mem::replace(started, true) {
                    csv::head(line, *stacks);
                }
                csv::write(line, &record, frames);
            }
        }
        out.write_all(line)
    }

    /// Writes what is buffered.
    ///
    /// # Errors
    /// Returns the error of the writer.
    pub fn flush(&mut self) -> io::Result<()> {
        // A table without rows still has a header.
        if self.style == Style::Csv && !std::mem::replace(&mut self.started, true) {
            self.line.clear();
            csv::head(&mut self.line, self.stacks);
            self.out.write_all(&self.line)?;
        }
        self.out.flush()
    }
}
