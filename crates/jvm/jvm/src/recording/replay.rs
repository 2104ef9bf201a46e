//! Recordings played back.
//!
//! Owns: [`replay`], which gives the bytes of a recording to the same machines that HQ has, in the order of their times, and
//! [`Replayed`], what they came to. Nothing is invented: where bytes are wrong, what came before them stays, and [`Damage`] says
//! in which stream and at which offset it ends. One that stops does not stop the others.
//!
//! At one time, HQ's word comes before what the agent says after it, and control before data.

use std::collections::BTreeMap;
use std::time::Duration;

use runtap_bytefrog::hq::Connection;
use runtap_bytefrog::{Change, Limits, Model};
use runtap_bytefrog_proto::hq::AgentProcess;
use runtap_bytefrog_proto::{
    ClassOutcome, Configuration, Decoder, Dialect, Message, Side, Stream as Direction, Violation,
};

use crate::recording::error::Error;
use crate::recording::find::Recorded;
use crate::recording::names::StreamName;
use crate::recording::part::Resolved;
use crate::recording::player::Player;
use crate::recording::stream::{Next, PIECE, Stream};

/// How a recording is played back.
#[derive(Debug, Clone)]
pub struct Options {
    /// How much is kept of the trace.
    pub limits: Limits,
    /// Calls that take so many nanoseconds get into the log of slow calls.
    pub slow: u64,
    /// What is counted.
    pub part: Resolved,
}

impl Default for Options {
    /// The whole; calls of 100 ms are slow, as they are for HQ.
    fn default() -> Self {
        Self { limits: Limits::default(), slow: 100_000_000, part: Resolved::default() }
    }
}

/// Where a stream can't be read on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Which one.
    pub stream: StreamName,
    /// Where in its bytes.
    pub offset: u64,
    /// Why.
    pub reason: String,
}

/// What a recording of an agent has come to.
#[derive(Debug)]
pub struct Replayed {
    /// The name that the recording gives it.
    pub agent: String,
    /// The run that HQ has given it.
    pub run: Option<u8>,
    /// Version 4: the project that it was started for.
    pub project: Option<u32>,
    /// F1: what process it is.
    pub process: Option<AgentProcess>,
    /// What HQ has told it to trace. `None`: the recording does not have it.
    pub configuration: Option<Configuration>,
    /// Its trace: [`Model::report`] and [`Model::call_tree`].
    pub model: Model,
    /// Classes by what became of them and by name, and how often that was said. At most 65,536 names are kept.
    pub classes: BTreeMap<(ClassOutcome, String), u64>,
    /// The same without names: of classes that were transformed, ignored and failed.
    pub class_counts: [u64; 3],
    /// What the agent has said of errors of its own.
    pub errors: Vec<String>,
    /// Rules that were broken on its connections. The first 1,000.
    pub violations: Vec<(Connection, Violation)>,
    /// Violations beyond these.
    pub more_violations: u64,
    /// Where streams can't be read on.
    pub damage: Vec<Damage>,
    /// Connections of which the recording does not have the end: HQ has ended before them.
    pub unfinished: Vec<Connection>,
}

/// Plays an agent's part of a recording.
///
/// # Errors
/// A file can't be read, or the control connection does not begin with hello. Anything else that is wrong is told with what
/// was read.
pub fn replay(recorded: &Recorded, options: &Options) -> Result<Replayed, Error> {
    play(recorded, options, None)
}

/// The same, and hands over every change of a stack. Names of methods may come later than the methods: a replay before this
/// one has them all, and gives the same indices.
///
/// # Errors
/// As [`replay`].
pub fn replay_with(
    recorded: &Recorded,
    options: &Options,
    take: &mut dyn FnMut(&Model, Change),
) -> Result<Replayed, Error> {
    play(recorded, options, Some(take))
}

type Take<'t> = Option<&'t mut dyn FnMut(&Model, Change)>;

fn play(recorded: &Recorded, options: &Options, mut take: Take<'_>) -> Result<Replayed, Error> {
    let mut streams: Vec<Stream> = recorded.streams.iter().map(Stream::open).collect::<Result<_, _>>()?;
    let hello = greeting(recorded, &streams)?;
    let mut player = Player::new(recorded, options, hello, take.is_some());
    let mut buffer = vec![0; PIECE];
    while let Some((index, at)) = earliest(&streams, player.has_greeted) {
        let Some(stream) = streams.get_mut(index) else { break };
        player.at(at);
        if let Next::End(_) = stream.next() {
            stream.stop();
            player.end(&stream.files.name);
        } else {
            let read = stream.read(&mut buffer);
            let path = || stream.files.bytes.clone();
            let bytes = read.map_err(|error| Error::Read { path: path(), error })?;
            let indexed = stream.files.index.is_some();
            if !player.take(&stream.files.name, bytes, at, indexed) {
                stream.stop();
                // Of HQ's direction no more is needed; the agent's goes on.
                if stream.files.name.side == Side::Agent {
                    player.closed.push(stream.files.name.connection);
                }
            }
        }
        hand_over(&mut player.played.model, &mut take);
    }
    for stream in &streams {
        player.leave(stream);
    }
    player.played.model.finish();
    hand_over(&mut player.played.model, &mut take);
    Ok(player.played)
}

fn hand_over(model: &mut Model, take: &mut Take<'_>) {
    if let Some(take) = take {
        for change in model.take_changes() {
            take(model, change);
        }
    }
}

/// The stream with the earliest bytes or end.
fn earliest(streams: &[Stream], has_greeted: bool) -> Option<(usize, Duration)> {
    let each = streams.iter().enumerate().filter_map(|(index, stream)| {
        let (at, is_end) = match stream.next() {
            Next::Bytes(at) => (at, false),
            Next::End(at) => (at, true),
            Next::Nothing => return None,
        };
        let name = &stream.files.name;
        // HQ answers hello, and what it says is never later than the answer.
        let rank = match (name.connection, name.side) {
            (Connection::Control, Side::Hq) if has_greeted => 0,
            (Connection::Control, Side::Agent) => 1,
            (Connection::Control, Side::Hq) => 2,
            (Connection::Data(_), _) => 3,
        };
        Some(((at, is_end, rank, index), index, at))
    });
    each.min_by_key(|(key, ..)| *key).map(|(_, index, at)| (index, at))
}

/// What the agent speaks, from its first bytes and, where that is not enough, from its configuration.
fn greeting(recorded: &Recorded, streams: &[Stream]) -> Result<Dialect, Error> {
    let Some(control) = recorded.control() else {
        return Err(Error::NoControl { path: "".into(), agent: recorded.agent.clone() });
    };
    let first = |files: &crate::recording::find::StreamFiles, most: u64| -> Result<Vec<u8>, Error> {
        use std::io::Read as _;
        let read = |error| Error::Read { path: files.bytes.clone(), error };
        let mut bytes = Vec::new();
        let file = runtap_os::output::open_ordinary(&files.bytes).map_err(read)?;
        file.take(most).read_to_end(&mut bytes).map_err(read)?;
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
    // An agent of version 1 has the exits of the HQ whose class its configuration is.
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
