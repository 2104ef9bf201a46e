//! The messages of all versions.
//!
//! Owns: [`Message`], their ids and names ([`MessageId`]), and who sends which one where. Refuses to: know layouts; `decode`
//! and `encode` do.

use std::fmt;

use crate::f1::{Batch, CountRows, Drop, HitRows, Process};
use crate::{Channel, Command, Dialect, JavaStr, ModeByte, Side};

/// The first byte of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub u8);

macro_rules! ids {
    ($($name:ident = $id:literal $text:literal $channel:ident $from:ident $since:ident;)*) => {
        impl MessageId {
            $(#[doc = concat!("`", $text, "`, ", stringify!($id), ".")] pub const $name: Self = Self($id);)*

            /// All that are known, in the order of their ids.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The name, as the specification or the code of the originals has it.
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($id => Some($text),)*
                    _ => None,
                }
            }

            /// Whether such a message belongs on a stream.
            pub fn belongs(self, channel: Channel, from: Side) -> bool {
                match self.0 {
                    $($id => Place::$channel.fits(channel) && Place::$from.sends(from),)*
                    _ => false,
                }
            }

            /// Whether a dialect has it.
            pub fn is_in(self, dialect: Dialect) -> bool {
                match self.0 {
                    $($id => Since::$since.has(dialect),)*
                    _ => false,
                }
            }
        }
    };
}

ids! {
    HELLO = 0x00 "hello" Control Agent All;
    CONFIGURATION = 0x01 "configuration" Control Hq All;
    START = 0x02 "start" Control Hq All;
    STOP = 0x03 "stop" Control Hq All;
    PAUSE = 0x04 "pause" Control Hq All;
    UNPAUSE = 0x05 "unpause" Control Hq All;
    SUSPEND = 0x06 "suspend" Control Hq All;
    UNSUSPEND = 0x07 "unsuspend" Control Hq All;
    HEARTBEAT = 0x08 "heartbeat" Control Agent All;
    DATA_BREAK = 0x09 "dataBreak" Control Agent Old;
    MAP_THREAD_NAME = 0x0a "mapThreadName" Data Agent All;
    MAP_METHOD_SIGNATURE = 0x0b "mapMethodSignature" Data Agent All;
    MAP_EXCEPTION = 0x0c "mapException" Data Agent All;
    MAP_SOURCE_LOCATION = 0x0d "mapSourceLocation" Data Agent Lines;
    METHOD_VISIT = 0x0e "methodVisit" Data Agent Visits;
    SOURCE_LOCATION_COUNT = 0x0f "sourceLocationCount" Data Agent Visits;
    PROJECT_HELLO = 0x10 "projectHello" Control Agent Projects;
    METHOD_ENTRY = 0x14 "methodEntry" Data Agent Old;
    METHOD_EXIT = 0x15 "methodExit" Data Agent Old;
    EXCEPTION = 0x16 "exception" Data Agent All;
    EXCEPTION_BUBBLE = 0x17 "exceptionBubble" Data Agent All;
    DATA_HELLO = 0x1e "dataHello" Data Agent All;
    DATA_HELLO_REPLY = 0x1f "dataHelloReply" Data Hq All;
    CLASS_TRANSFORMED = 0x28 "classTransformed" Control Agent All;
    CLASS_IGNORED = 0x29 "classIgnored" Control Agent All;
    CLASS_TRANSFORM_FAILED = 0x2a "classTransformFailed" Control Agent All;
    MARKER = 0x32 "marker" Data Agent All;
    ERROR = 0x63 "error" Any Any All;
    BATCH = 0x70 "batch" Data Agent Ours;
    THREAD_END = 0x71 "threadEnd" Data Agent Ours;
    DROP = 0x72 "drop" Data Agent Ours;
    COUNTS = 0x73 "counts" Data Agent Ours;
    COVERAGE = 0x74 "coverage" Data Agent Ours;
    PROCESS = 0x75 "process" Control Agent Ours;
    SNAPSHOT = 0x76 "snapshot" Control Hq Ours;
}

/// The words of the table above.
enum Place {
    Control,
    Data,
    Agent,
    Hq,
    Any,
}

impl Place {
    fn fits(&self, channel: Channel) -> bool {
        match self {
            Self::Control => channel == Channel::Control,
            Self::Data => channel == Channel::Data,
            Self::Any | Self::Agent | Self::Hq => true,
        }
    }

    fn sends(&self, side: Side) -> bool {
        match self {
            Self::Agent => side == Side::Agent,
            Self::Hq => side == Side::Hq,
            Self::Any | Self::Control | Self::Data => true,
        }
    }
}

/// Which dialects have a message.
enum Since {
    All,
    /// All but ours.
    Old,
    /// Code Pulse 2.5 and later.
    Visits,
    /// The same, and ours.
    Lines,
    Projects,
    Ours,
}

impl Since {
    fn has(&self, dialect: Dialect) -> bool {
        match self {
            Self::All => true,
            Self::Old => dialect != Dialect::F1,
            Self::Visits => matches!(dialect, Dialect::V3 | Dialect::V4),
            Self::Lines => matches!(dialect, Dialect::V3 | Dialect::V4 | Dialect::F1),
            Self::Projects => dialect == Dialect::V4,
            Self::Ours => dialect == Dialect::F1,
        }
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "message {:#04x}", self.0),
        }
    }
}

/// When and where an event was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Stamp {
    /// Time since the agent was made, after start: milliseconds with 32 bits, nanoseconds with 64 in F1.
    pub time: u64,
    /// The number of the event: of all that the agent has sent, with 32 bits; of its thread, with 64, in F1.
    pub sequence: u64,
    /// The thread: 16 bits, 32 in F1.
    pub thread: u32,
}

/// What a method exit says besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Exit {
    /// Version 1: the last line that was seen before the exit; 65,535 without debug information.
    Line(u16),
    /// Later versions: not 0 if an exception has ended the method.
    Thrown(u8),
}

/// What became of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClassOutcome {
    /// It reports its calls.
    Transformed,
    /// It was left alone: excluded, or loaded by the boot loader.
    Ignored,
    /// It could not be changed.
    Failed,
}

/// Where code stands in a source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Location {
    /// The id of the place.
    pub location: u32,
    /// The method that it is in.
    pub method: u32,
    /// First line.
    pub start_line: u32,
    /// Last line.
    pub end_line: u32,
    /// First column; 65,535 is unknown, which Java agents always say.
    pub start_char: u16,
    /// Last column, likewise.
    pub end_char: u16,
}

/// A message. Numbers are as wide as in the widest dialect; [`encode`](crate::encode) checks that they fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the fields are explained with their variant or have the type that explains them"
)]
pub enum Message<'a> {
    /// The first message of a control connection.
    Hello { version: u8 },
    /// The same of version 4, with the number of a project.
    ProjectHello { version: u8, project: u32 },
    /// What to trace: [`Configuration::decode`](crate::Configuration::decode) reads the payload.
    Configuration { payload: &'a [u8] },
    /// Start, stop, pause, unpause, suspend, unsuspend.
    Command(Command),
    /// The agent lives. The queue is the number of its buffers that wait to be sent, not of bytes as the specification says.
    Heartbeat { mode: ModeByte, queue: u16 },
    /// Recording stopped before the event with this sequence id, or a few events after it.
    DataBreak { sequence: u32 },
    /// A thread has this name from now on.
    MapThreadName { thread: u32, time: u64, name: JavaStr<'a> },
    /// `internal/Class.method;ACCESS;descriptor`, ACCESS in decimal.
    MapMethod { method: u32, signature: JavaStr<'a> },
    /// The name of an exception's class, with dots.
    MapException { exception: u32, name: JavaStr<'a> },
    /// A place in a source file.
    MapLocation(Location),
    /// How many places a method has. Sent for JSP classes only.
    LocationCount { method: u32, count: u32 },
    /// A call has begun.
    Entry { at: Stamp, method: u32 },
    /// A call has ended.
    Exit { at: Stamp, method: u32, exit: Exit },
    /// A `throw` of the program. Exceptions of the JVM itself have none.
    Exception { at: Stamp, method: u32, exception: u32, line: u16 },
    /// A call was ended by an exception.
    Bubble { at: Stamp, method: u32, exception: u32 },
    /// A line has run; sent at the exit of the method.
    Visit { at: Stamp, method: u32, location: u32 },
    /// Something that the program says itself. The thread is known in F1 only.
    Marker { time: u64, sequence: u64, thread: Option<u32>, key: JavaStr<'a>, value: JavaStr<'a> },
    /// The first message of a data connection.
    DataHello { run: u8 },
    /// Its reply.
    DataHelloReply,
    /// A class was loaded. Its name has slashes.
    Class { outcome: ClassOutcome, name: JavaStr<'a> },
    /// The trace ends.
    Error { text: JavaStr<'a> },
    /// F1: entries and exits of one thread.
    Batch(Batch<'a>),
    /// F1: a thread is gone. Its id may not come again.
    ThreadEnd { thread: u32, time: u64 },
    /// F1: events of a thread are missing.
    Drop(Drop),
    /// F1: calls of methods since the trace began, or since they were last reset.
    Counts(CountRows<'a>),
    /// F1: what has run for the first time.
    Coverage(HitRows<'a>),
    /// F1: the agent's process. Comes after the configuration, before anything else.
    Process(Process<'a>),
    /// F1: send counts and coverage now; and begin at zero again.
    Snapshot { reset: bool },
}

impl Message<'_> {
    /// The id.
    pub fn id(&self) -> MessageId {
        match self {
            Self::Hello { .. } => MessageId::HELLO,
            Self::ProjectHello { .. } => MessageId::PROJECT_HELLO,
            Self::Configuration { .. } => MessageId::CONFIGURATION,
            Self::Command(command) => MessageId(command.id()),
            Self::Heartbeat { .. } => MessageId::HEARTBEAT,
            Self::DataBreak { .. } => MessageId::DATA_BREAK,
            Self::MapThreadName { .. } => MessageId::MAP_THREAD_NAME,
            Self::MapMethod { .. } => MessageId::MAP_METHOD_SIGNATURE,
            Self::MapException { .. } => MessageId::MAP_EXCEPTION,
            Self::MapLocation(_) => MessageId::MAP_SOURCE_LOCATION,
            Self::LocationCount { .. } => MessageId::SOURCE_LOCATION_COUNT,
            Self::Entry { .. } => MessageId::METHOD_ENTRY,
            Self::Exit { .. } => MessageId::METHOD_EXIT,
            Self::Exception { .. } => MessageId::EXCEPTION,
            Self::Bubble { .. } => MessageId::EXCEPTION_BUBBLE,
            Self::Visit { .. } => MessageId::METHOD_VISIT,
            Self::Marker { .. } => MessageId::MARKER,
            Self::DataHello { .. } => MessageId::DATA_HELLO,
            Self::DataHelloReply => MessageId::DATA_HELLO_REPLY,
            Self::Class { outcome: ClassOutcome::Transformed, .. } => MessageId::CLASS_TRANSFORMED,
            Self::Class { outcome: ClassOutcome::Ignored, .. } => MessageId::CLASS_IGNORED,
            Self::Class { outcome: ClassOutcome::Failed, .. } => MessageId::CLASS_TRANSFORM_FAILED,
            Self::Error { .. } => MessageId::ERROR,
            Self::Batch(_) => MessageId::BATCH,
            Self::ThreadEnd { .. } => MessageId::THREAD_END,
            Self::Drop(_) => MessageId::DROP,
            Self::Counts(_) => MessageId::COUNTS,
            Self::Coverage(_) => MessageId::COVERAGE,
            Self::Process(_) => MessageId::PROCESS,
            Self::Snapshot { .. } => MessageId::SNAPSHOT,
        }
    }

    /// The texts of the message, with the names of their fields.
    pub fn texts(&self) -> impl Iterator<Item = (&'static str, JavaStr<'_>)> {
        let texts = match *self {
            Self::MapThreadName { name, .. } => [Some(("thread name", name)), None],
            Self::MapMethod { signature, .. } => [Some(("signature", signature)), None],
            Self::MapException { name, .. } => [Some(("exception name", name)), None],
            Self::Marker { key, value, .. } => [Some(("key", key)), Some(("value", value))],
            Self::Class { name, .. } => [Some(("class name", name)), None],
            Self::Error { text } => [Some(("error message", text)), None],
            Self::Process(process) => {
                [Some(("JVM version", process.jvm)), Some(("main class", process.main))]
            }
            _ => [None, None],
        };
        texts.into_iter().flatten()
    }
}

impl fmt::Display for Message<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id().fmt(f)
    }
}
