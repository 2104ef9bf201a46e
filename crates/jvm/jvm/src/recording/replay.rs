//! The replay of recordings.
//!
//! [`replay`] passes the bytes of a recording to the state machines of HQ, in the order of their times. Nothing is
//! invented: where bytes are invalid, the earlier ones still count, and [`Damage`] has the stream and the offset at
//! which it ends. Damage of one stream does not affect the others.
//!
//! Of events at the same time, a message of HQ precedes what the agent sends afterwards, and control precedes data.

use std::collections::BTreeMap;
use std::time::Duration;

use runtap_bytefrog::hq::Connection;
use runtap_bytefrog::{Change, Limits, Model};
use runtap_bytefrog_proto::hq::AgentProcess;
use runtap_bytefrog_proto::{
    ClassOutcome, Configuration, Decoder, Dialect, Message, Side, Stream as Direction, Violation,
};

use crate::recording::error::Error;
use crate::recording::find::RecordedAgent;
use crate::recording::merged_streams::{MergedStreams, StreamChunk};
use crate::recording::names::StreamName;
use crate::recording::part::ResolvedPart;
use crate::recording::player::Player;
use crate::recording::stream::Stream;

/// The default duration from which a call is logged as slow, as for HQ.
pub const DEFAULT_SLOW: Duration = Duration::from_millis(100);

/// The options of a replay.
#[derive(Debug, Clone)]
pub struct Options {
    /// The limits on what is kept of the trace.
    pub limits: Limits,
    /// The duration in nanoseconds from which a call is logged as slow.
    pub slow: u64,
    /// The part that is counted.
    pub part: ResolvedPart,
}

impl Default for Options {
    /// Returns options for the whole recording; calls of 100 ms are slow, as for HQ.
    fn default() -> Self {
        Self { limits: Limits::default(), slow: 100_000_000, part: ResolvedPart::default() }
    }
}

/// Damage that ends a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The stream.
    pub stream: StreamName,
    /// The offset in the bytes of the stream.
    pub offset: u64,
    /// The reason.
    pub reason: String,
}

/// The result of replaying an agent of a recording.
#[derive(Debug)]
pub struct ReplayedAgent {
    /// The name of the agent in the recording.
    pub agent: String,
    /// The run number from HQ; `None` if the recording does not have it.
    pub run: Option<u8>,
    /// Version 4: the project that the agent was started for.
    pub project: Option<u32>,
    /// F1: the process of the agent.
    pub process: Option<AgentProcess>,
    /// The configuration from HQ; `None` if the recording does not have it.
    pub configuration: Option<Configuration>,
    /// The trace: see [`Model::report`] and [`Model::call_tree`].
    pub model: Model,
    /// The number of reports on each class, by what the agent did with it and by name. At most 65,536 names are kept.
    pub classes: BTreeMap<(ClassOutcome, String), u64>,
    /// The numbers of reports on classes that were transformed, ignored and failed.
    pub class_counts: [u64; 3],
    /// The errors that the agent reported.
    pub errors: Vec<String>,
    /// The first 1,000 rules that were broken on its connections.
    pub violations: Vec<(Connection, Violation)>,
    /// The number of further violations.
    pub more_violations: u64,
    /// The damage of its streams.
    pub damage: Vec<Damage>,
    /// The connections whose end is not in the recording, because HQ stopped before it.
    pub unfinished: Vec<Connection>,
}

/// Replays an agent of a recording.
///
/// # Errors
/// Fails if a file cannot be read, or if the control connection does not start with hello. Other problems are part
/// of the result.
pub fn replay(recorded: &RecordedAgent, options: &Options) -> Result<ReplayedAgent, Error> {
    play(recorded, options, None)
}

/// Replays an agent of a recording, and passes every change of a stack to `take`. Names of methods may arrive after
/// their first calls: an earlier replay has all names, and gives the same indices.
///
/// # Errors
/// Fails as [`replay`] does.
pub fn replay_with(
    recorded: &RecordedAgent,
    options: &Options,
    take: &mut dyn FnMut(&Model, Change),
) -> Result<ReplayedAgent, Error> {
    play(recorded, options, Some(take))
}

type OnChange<'t> = Option<&'t mut dyn FnMut(&Model, Change)>;

fn play(recorded: &RecordedAgent, options: &Options, mut take: OnChange<'_>) -> Result<ReplayedAgent, Error> {
    let mut streams = MergedStreams::open(recorded)?;
    let dialect = detect_dialect(recorded, streams.streams())?;
    let mut player = Player::new(recorded, options, dialect, take.is_some());
    while let Some(StreamChunk { stream, name, at, bytes, has_index }) = streams.next()? {
        player.at(at);
        let is_needed = match bytes {
            None => {
                player.end(name);
                true
            }
            Some(bytes) => player.handle(name, bytes, at, has_index),
        };
        if !is_needed {
            // The end of HQ's direction does not close the connection; the end of the agent's does.
            if name.side == Side::Agent {
                player.closed.push(name.connection);
            }
            streams.stop(stream);
        }
        hand_over(&mut player.played.model, &mut take);
    }
    for stream in streams.streams() {
        player.finish_stream(stream);
    }
    player.played.model.finish();
    hand_over(&mut player.played.model, &mut take);
    Ok(player.played)
}

fn hand_over(model: &mut Model, take: &mut OnChange<'_>) {
    if let Some(take) = take {
        for change in model.take_changes() {
            take(model, change);
        }
    }
}

/// Determines the dialect from the agent's first bytes and, if necessary, from its configuration.
pub(crate) fn detect_dialect(recorded: &RecordedAgent, streams: &[Stream]) -> Result<Dialect, Error> {
    let Some(control) = recorded.control() else {
        return Err(Error::NoControl { path: "".into(), agent: recorded.agent.clone() });
    };
    let first = |files: &crate::recording::find::StreamFiles, max_size: u64| -> Result<Vec<u8>, Error> {
        use std::io::Read as _;
        let read = |error| Error::Read { path: files.bytes.clone(), error };
        let mut bytes = Vec::new();
        let file = runtap_os::output::open_ordinary(&files.bytes).map_err(read)?;
        file.take(max_size).read_to_end(&mut bytes).map_err(read)?;
        Ok(bytes)
    };
    let no_hello = || Error::NoHello(control.bytes.clone());
    let hello = first(control, 6)?;
    let dialect = match *hello.as_slice() {
        [0x00 | 0x10, version, ..] => Dialect::of_hello(version).ok_or_else(no_hello)?,
        _ => return Err(no_hello()),
    };
    let is_from_hq = |stream: &&Stream| {
        (stream.files.name.connection, stream.files.name.side) == (Connection::Control, Side::Hq)
    };
    let Some(from_hq) = streams.iter().find(is_from_hq).filter(|_| dialect == Dialect::V1) else {
        return Ok(dialect);
    };
    // For an agent of version 1, the class of its configuration determines the layout of method exits.
    let mut class = None;
    let mut decoder = Decoder::new(Direction::control_from_hq(dialect));
    let _ = decoder.feed(&first(&from_hq.files, 1 << 20)?, |_, message| {
        if let (Message::Configuration { payload }, None) = (&message, &class) {
            class = Configuration::decode(payload, dialect.framing()).ok().and_then(|(_, class)| class);
        }
        None
    });
    Ok(class.map_or(dialect, |class| class.dialect()))
}
