//! pprof's profile format in Protocol Buffers, compressed with gzip, for `go tool pprof` and many services.
//!
//! | in the model | in the file |
//! |---|---|
//! | the samples of a thread with the same stack and kind | a `sample` with two values: their number and their total weight |
//! | view | selects the samples and determines the names of the values, see below; `cpu` by default |
//! | frame | a `location` with one `function`: `name` is `Module!Namespace.Type.Method(args)`, `system_name` is the name without the module (empty for frames that are not code); `filename` and `line` if known |
//! | module | a `mapping` with its name as `filename`; the first is the process, because readers take it for the program |
//! | thread | labels `thread` (`Thread (TID) NAME`) and `tid` (a number) |
//! | kind | label `kind` of ticks: `managed`, `external`, `other`, or the name given by another source; events have none |
//! | a sample without a stack | a stack with the single function `[no stack]` |
//! | start of the session, duration, period | `time_nanos`, `duration_nanos`, `period` |
//! | the exporter | a `comment` |
//! | times of the samples | not in the file |
//!
//! | view | values |
//! |---|---|
//! | `cpu` | `samples` in `count`, `cpu` in `nanoseconds` |
//! | `thread-time` | `samples` in `count`, `wall` in `nanoseconds` |
//! | `alloc` | `events` in `count`, `alloc_space` in `bytes` |
//! | `exceptions` | `exceptions` in `count`, without a second value |
//! | `contention` | `contentions` in `count`, `delay` in `nanoseconds` |
//! | others | `events` in `count`, the view's name in `nanoseconds` |
//!
//! A `system_name` that differs from `name` keeps readers from demangling names, and `has_functions` from searching for
//! symbols. Memory use is a number per stack, independent of the number of samples.

mod message;

use self::message::{
    FUNCTION, Function, Head, LOCATION, Label, Line, Location, MAPPING, Mapping, SAMPLE, STRING, Sample,
    ValueType,
};
use crate::proto::Fields;
use crate::{Error, Options};
use flate2::{Compression, GzBuilder};
use runtap_model::text::Clean;
use runtap_model::{KindInfo, NO_STACK, SampleKind, StackHandle, Thread, Trace, Unit, View};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{self, BufWriter, Write};

/// Writes `trace` for pprof.
pub fn write(trace: &Trace, w: impl Write, options: &Options) -> Result<(), Error> {
    let threads = crate::threads(trace, options.view)?;
    crate::total_weight(trace, options.view)?;
    // The gzip header contains neither a time nor a name, so equal traces give equal bytes.
    let gzip = GzBuilder::new().write(BufWriter::with_capacity(1 << 16, w), Compression::default());
    // Buffered because fields are only a few bytes long.
    let mut file = File::new(Fields::new(BufWriter::with_capacity(1 << 16, gzip)))?;
    file.head(trace, options)?;
    file.frames(trace)?;
    let mut sums = Sums::new(trace);
    let keys = file.keys(trace)?;
    for thread in threads {
        file.thread(trace, thread, options.view, &mut sums, &keys)?;
    }
    let gzip = file.fields.into_inner().into_inner().map_err(io::IntoInnerError::into_error)?;
    gzip.finish()?.flush()?;
    Ok(())
}

/// A file that is being written.
struct File<W> {
    fields: Fields<W>,
    /// Number of texts written.
    texts: i64,
}

impl<W: Write> File<W> {
    /// Starts a file. The first text must be empty.
    fn new(fields: Fields<W>) -> io::Result<Self> {
        let mut file = Self { fields, texts: 0 };
        file.text("")?;
        Ok(file)
    }

    /// Writes a text and returns its index. Readers print texts on terminals unchanged.
    fn text(&mut self, text: &str) -> io::Result<i64> {
        self.fields.text(STRING, &Clean(text).to_string())?;
        self.texts += 1;
        Ok(self.texts - 1)
    }

    fn head(&mut self, trace: &Trace, options: &Options) -> io::Result<()> {
        let (number, sum) = value_types(options.view);
        let mut sample_type = Vec::new();
        for (what, unit) in number.map(|what| (what, "count")).into_iter().chain([sum]) {
            sample_type.push(ValueType { r#type: self.text(what)?, unit: self.text(unit)? });
        }
        let sum = sample_type.last().copied().unwrap_or_default();
        let sampled = options.view.is_sampled();
        let comment = vec![self.text(&options.exporter)?];
        self.fields.fields(&Head {
            sample_type,
            time_nanos: trace.start_unix_ns().unwrap_or(0),
            duration_nanos: signed(trace.duration_ns()),
            period_type: sampled.then_some(sum),
            period: if sampled { signed(trace.period_ns()) } else { 0 },
            comment,
            default_sample_type: sum.r#type,
        })
    }

    /// Writes a location and a function for each frame, numbered from 1 like the handles, and one for the missing
    /// stack.
    fn frames(&mut self, trace: &Trace) -> io::Result<()> {
        let mut mappings: HashMap<&str, u64> = HashMap::new();
        let program = trace.process().name.as_deref().unwrap_or("a process");
        self.mapping(1, program)?;
        mappings.insert(program, 1);
        let mut next_id = 1;
        for (_, frame) in trace.all_frames() {
            let next_mapping = mappings.len() as u64 + 1;
            let module = frame.module.filter(|module| !module.is_empty());
            let mapping_id = match module.map(|module| mappings.entry(module)) {
                None => 0,
                Some(Entry::Occupied(known)) => *known.get(),
                Some(Entry::Vacant(new)) => {
                    self.mapping(next_mapping, new.key())?;
                    *new.insert(next_mapping)
                }
            };
            let name = frame.to_string();
            let system_name = if frame.name == name { "" } else { frame.name };
            let line = frame.line.map_or(0, |line| i64::from(line.get()));
            self.frame(next_id, mapping_id, [&name, system_name, frame.file.unwrap_or_default()], line)?;
            next_id += 1;
        }
        self.frame(next_id, 0, [NO_STACK, "", ""], 0)
    }

    fn mapping(&mut self, id: u64, name: &str) -> io::Result<()> {
        let filename = self.text(name)?;
        self.fields.message(MAPPING, &Mapping { id, filename, has_functions: true })
    }

    /// Writes a function with its name, system name and file, and its location.
    fn frame(&mut self, id: u64, mapping_id: u64, texts: [&str; 3], line: i64) -> io::Result<()> {
        let [name, system_name, file] = texts;
        let (name, system_name) = (self.text(name)?, self.text(system_name)?);
        // Index 0 is the empty text.
        let filename = if file.is_empty() { 0 } else { self.text(file)? };
        self.fields.message(FUNCTION, &Function { id, name, system_name, filename })?;
        let line = vec![Line { function_id: id, line }];
        self.fields.message(LOCATION, &Location { id, mapping_id, line })
    }

    fn keys(&mut self, trace: &Trace) -> io::Result<Keys> {
        let (thread, tid, kind) = (self.text("thread")?, self.text("tid")?, self.text("kind")?);
        let text = |(kind, info): (SampleKind, KindInfo)| {
            if kind.is_tick() { self.text(info.name).map(Some) } else { Ok(None) }
        };
        let kinds = trace.kinds().iter().map(text).collect::<io::Result<_>>()?;
        Ok(Keys { thread, tid, kind, kinds })
    }

    fn thread(
        &mut self,
        trace: &Trace,
        thread: &Thread,
        view: View,
        sums: &mut Sums,
        keys: &Keys,
    ) -> io::Result<()> {
        let label = Label { key: keys.thread, str: self.text(&thread.label())?, num: 0 };
        let tid = Label { key: keys.tid, str: 0, num: signed(thread.tid()) };
        let mut sample = Sample::default();
        sums.of(trace, thread, view, |stack, kind, ticks, weight| {
            sample.location_id.clear();
            match stack {
                Some(stack) => {
                    let frames = trace.stacks().frames(stack);
                    sample.location_id.extend(frames.map(|frame| frame.index() as u64 + 1));
                }
                None => sample.location_id.push(trace.frames().len() as u64 + 1),
            }
            sample.value.clear();
            sample
                .value
                .extend(value_types(view).0.map(|_| signed(ticks)).into_iter().chain([signed(weight)]));
            sample.label.clear();
            sample.label.extend([label, tid]);
            let kind = keys.kinds.get(kind).copied().flatten().map(|kind| Label {
                key: keys.kind,
                str: kind,
                num: 0,
            });
            sample.label.extend(kind);
            self.fields.message(SAMPLE, &sample)
        })
    }
}

/// The indexes of label texts.
struct Keys {
    thread: i64,
    tid: i64,
    kind: i64,
    /// Texts of the kinds in the order of the trace's table; events have none.
    kinds: Vec<Option<i64>>,
}

/// Returns the name of the first value (`None` for a profile without values), and the name and unit of the total weight.
fn value_types(view: View) -> (Option<&'static str>, (&'static str, &'static str)) {
    let unit = match view.unit() {
        Unit::Nanoseconds => "nanoseconds",
        Unit::Bytes => "bytes",
        _ => "count",
    };
    match view {
        View::ThreadTime => (Some("samples"), ("wall", unit)),
        View::Cpu => (Some("samples"), ("cpu", unit)),
        View::Alloc => (Some("events"), ("alloc_space", unit)),
        View::Contention => (Some("contentions"), ("delay", unit)),
        other if other.unit() == Unit::Count => (None, (other.name(), unit)),
        other => (Some("events"), (other.name(), unit)),
    }
}

/// Sums of the samples of one thread at a time.
struct Sums {
    /// Ticks and weights by stack (first those without a stack) and kind.
    slots: Vec<[u64; 2]>,
    /// Number of kinds.
    kinds: usize,
    /// The slots in use.
    used: Vec<(Option<StackHandle>, usize)>,
}

impl Sums {
    fn new(trace: &Trace) -> Self {
        let kinds = trace.kinds().iter().len();
        Self { slots: vec![[0; 2]; (trace.stacks().len() + 1) * kinds], kinds, used: Vec::new() }
    }

    /// Calls `visit` with each stack and kind of the thread, in the order of the model, and with the sums of ticks and
    /// weights.
    fn of(
        &mut self,
        trace: &Trace,
        thread: &Thread,
        view: View,
        mut visit: impl FnMut(Option<StackHandle>, usize, u64, u64) -> io::Result<()>,
    ) -> io::Result<()> {
        let kinds = self.kinds;
        let place = |stack: Option<StackHandle>, kind| stack.map_or(0, |s| s.index() + 1) * kinds + kind;
        for sample in thread.samples(view) {
            let Some(kind) = trace.kinds().index(sample.kind) else { continue };
            let [ticks, weight] = &mut self.slots[place(sample.stack, kind)];
            if *ticks == 0 {
                self.used.push((sample.stack, kind));
            }
            *ticks += u64::from(sample.ticks);
            *weight = weight.saturating_add(sample.weight);
        }
        self.used.sort_unstable();
        for (stack, kind) in self.used.drain(..) {
            let [ticks, weight] = std::mem::take(&mut self.slots[place(stack, kind)]);
            visit(stack, kind, ticks, weight)?;
        }
        Ok(())
    }
}

/// Converts a number to the signed type of the format.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
