//! Events as lines: JSON Lines, CSV, or text for people; for recordings and for live sessions. The first two are contracts,
//! which docs/events.md has.
//!
//! A line is written as soon as its event is handed in, and nothing is kept: a recording of any size needs the same memory.
//! What comes from the target acts in no line: control characters and the like are escaped, CSV cells are no formulas.

mod csv;
mod json;
mod live;
mod text;
mod unmet;

use std::io::{self, Write};
use std::ops::Range;

use runtap_nettrace::{Event, Item, Observe, TraceHeader};

pub use self::live::Live;
pub use self::unmet::{Matched, NameOf, Unmet, nearest};
use crate::payload::Decoder;
use crate::{Filter, Names, Record};

/// How lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// An object a line.
    Json,
    /// RFC 4180, with a head.
    Csv,
    /// For people: not for programs, it may change.
    Text,
}

impl Style {
    /// Every style there is.
    pub const ALL: [Self; 3] = [Self::Text, Self::Json, Self::Csv];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Text => "text",
        }
    }

    /// What else it is called, by other tools.
    pub fn aliases(self) -> &'static [&'static str] {
        match self {
            Self::Json => &["jsonl"],
            Self::Csv | Self::Text => &[],
        }
    }
}

/// Which events are taken.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// Of these providers; of all where none is named.
    pub providers: Vec<String>,
    /// And for which this holds.
    pub filter: Option<Filter>,
}

/// Looks at the items of a stream and tells which events are taken.
#[derive(Debug)]
pub struct Chooser {
    choice: Choice,
    decoder: Decoder,
    header: Option<TraceHeader>,
    /// The process, where it is known better than to the stream: as we see it, not as it sees itself.
    process: Option<u32>,
    /// Names of frames, where `stack` is asked for.
    names: Option<Names>,
    frames: Vec<String>,
    seen: unmet::Seen,
    events: u64,
    taken: u64,
}

impl Chooser {
    /// With `names`, stacks are named; without, there are none.
    pub fn new(choice: Choice, names: Option<Names>) -> Self {
        let (decoder, seen) = (Decoder::new(), unmet::Seen::default());
        let (header, process, frames) = (None, None, Vec::new());
        Self { choice, decoder, header, process, names, frames, seen, events: 0, taken: 0 }
    }

    /// All events are of this process, if it is known: a container's first process takes itself for number 1.
    #[must_use]
    pub fn of_process(self, process: Option<u32>) -> Self {
        Self { process, ..self }
    }

    /// Whether every event is taken.
    pub fn takes_all(&self) -> bool {
        self.choice.providers.is_empty() && self.choice.filter.is_none()
    }

    /// Takes an item that is no event.
    pub fn item(&mut self, item: &Item<'_>) {
        if let Item::Header(header) = item {
            let mut header = (*header).clone();
            header.process_id = self.process.unwrap_or(header.process_id);
            self.header = Some(header);
        }
        self.decoder.item(item);
        if let Item::Metadata(metadata) = item
            && !self.takes_all()
        {
            self.seen.define(metadata, self.decoder.schema_of(metadata.id));
        }
    }

    /// How many of the events so far were taken, and which names of the choice nothing has.
    pub fn matched(&self) -> Matched {
        let unmet = self.seen.unmet(&self.choice, self.taken > 0);
        Matched { events: self.events, taken: self.taken, unmet }
    }

    /// The event as a record with the names of its frames, leaf first, if it is taken.
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

/// Frames of a stack in a line: far more than runtimes record. A recording has a deep stack once, and a line each time.
const MAX_DEPTH: usize = 1024;

/// Which frames of a stack are left out: those in the middle of one that is too deep.
fn middle(depth: usize) -> Range<usize> {
    if depth <= MAX_DEPTH { depth..depth } else { MAX_DEPTH / 2..depth - (MAX_DEPTH / 2 - 1) }
}

/// Writes the events of a stream as lines.
#[derive(Debug)]
pub struct Lines<W> {
    chooser: Chooser,
    style: Style,
    /// Whether the lines show stacks; they may be named for a filter only.
    stacks: bool,
    json: json::Heads,
    line: Vec<u8>,
    out: W,
    /// The lines of several processes come together.
    several: bool,
    started: bool,
}

impl<W: Write> Lines<W> {
    /// Writes to `out` what `chooser` takes; with `stacks` its stack, too, for which the chooser needs names.
    pub fn new(chooser: Chooser, style: Style, stacks: bool, out: W) -> Self {
        let json = json::Heads::default();
        Self { chooser, style, stacks, json, line: Vec::new(), out, several: false, started: false }
    }

    /// The lines of several processes come together: each says whose it is, the text too.
    pub fn name_the_process(&mut self) {
        self.several = true;
    }

    /// The head of a table stands there already.
    pub fn without_head(&mut self) {
        self.started = true;
    }

    /// How many of the events so far were written, and which names of the choice nothing has.
    pub fn matched(&self) -> Matched {
        self.chooser.matched()
    }

    /// Takes the next item of the stream.
    ///
    /// # Errors
    /// As writing has.
    pub fn item(&mut self, item: &Item<'_>) -> io::Result<()> {
        let event = match item {
            Item::Event(event) => event,
            item => {
                if let Item::Metadata(metadata) = item {
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
    /// As writing has.
    pub fn flush(&mut self) -> io::Result<()> {
        // A table without rows still has its head.
        if self.style == Style::Csv && !std::mem::replace(&mut self.started, true) {
            self.line.clear();
            csv::head(&mut self.line, self.stacks);
            self.out.write_all(&self.line)?;
        }
        self.out.flush()
    }
}
