//! The messages of all versions.
//!
//! Contains [`Message`], the IDs and names of messages ([`MessageId`]), and which side sends them on which
//! connection. The layouts are in `decode` and `encode`.

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

            /// All known IDs, in ascending order.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Returns the name, as in the specification or the original code; `None` if the ID is unknown.
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($id => Some($text),)*
                    _ => None,
                }
            }

            /// Returns whether messages with this ID are allowed on a stream.
            pub fn belongs(self, channel: Channel, from: Side) -> bool {
                match self.0 {
                    $($id => StreamPart::$channel.fits(channel) && StreamPart::$from.sends(from),)*
                    _ => false,
                }
            }

            /// Returns whether a dialect has this message.
            pub fn is_in(self, dialect: Dialect) -> bool {
                match self.0 {
                    $($id => Versions::$since.has(dialect),)*
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
    DATA_BREAK = 0x09 "dataBreak" Control Agent UpToV4;
    MAP_THREAD_NAME = 0x0a "mapThreadName" Data Agent All;
    MAP_METHOD_SIGNATURE = 0x0b "mapMethodSignature" Data Agent All;
    MAP_EXCEPTION = 0x0c "mapException" Data Agent All;
    MAP_SOURCE_LOCATION = 0x0d "mapSourceLocation" Data Agent Lines;
    METHOD_VISIT = 0x0e "methodVisit" Data Agent Visits;
    SOURCE_LOCATION_COUNT = 0x0f "sourceLocationCount" Data Agent Visits;
    PROJECT_HELLO = 0x10 "projectHello" Control Agent Projects;
    METHOD_ENTRY = 0x14 "methodEntry" Data Agent UpToV4;
    METHOD_EXIT = 0x15 "methodExit" Data Agent UpToV4;
    EXCEPTION = 0x16 "exception" Data Agent All;
    EXCEPTION_BUBBLE = 0x17 "exceptionBubble" Data Agent All;
    DATA_HELLO = 0x1e "dataHello" Data Agent All;
    DATA_HELLO_REPLY = 0x1f "dataHelloReply" Data Hq All;
    CLASS_TRANSFORMED = 0x28 "classTransformed" Control Agent All;
    CLASS_IGNORED = 0x29 "classIgnored" Control Agent All;
    CLASS_TRANSFORM_FAILED = 0x2a "classTransformFailed" Control Agent All;
    MARKER = 0x32 "marker" Data Agent All;
    ERROR = 0x63 "error" Any Any All;
    BATCH = 0x70 "batch" Data Agent F1;
    THREAD_END = 0x71 "threadEnd" Data Agent F1;
    DROP = 0x72 "drop" Data Agent F1;
    COUNTS = 0x73 "counts" Data Agent F1;
    COVERAGE = 0x74 "coverage" Data Agent F1;
    PROCESS = 0x75 "process" Control Agent F1;
    SNAPSHOT = 0x76 "snapshot" Control Hq F1;
}

/// A channel or a sender in the table above.
enum StreamPart {
    Control,
    Data,
    Agent,
    Hq,
    Any,
}

impl StreamPart {
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

/// The dialects that have a message.
enum Versions {
    All,
    /// All but F1.
    UpToV4,
    /// Code Pulse 2.5 and later.
    Visits,
    /// Code Pulse 2.5 and later, and F1.
    Lines,
    Projects,
    F1,
}

impl Versions {
    fn has(&self, dialect: Dialect) -> bool {
        match self {
            Self::All => true,
            Self::UpToV4 => dialect != Dialect::F1,
            Self::Visits => matches!(dialect, Dialect::V3 | Dialect::V4),
            Self::Lines => matches!(dialect, Dialect::V3 | Dialect::V4 | Dialect::F1),
            Self::Projects => dialect == Dialect::V4,
            Self::F1 => dialect == Dialect::F1,
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

/// The time, number and thread of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Stamp {
    /// The time since the agent was initialized: milliseconds (32 bits), or nanoseconds (64 bits) in F1.
    pub time: u64,
    /// The number of the event: among all events of the agent (32 bits), or among those of its thread (64 bits) in
    /// F1.
    pub sequence: u64,
    /// The ID of the thread: 16 bits, or 32 in F1.
    pub thread: u32,
}

/// The additional information in a method exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Exit {
    /// Version 1: the last line that was seen before the exit; 65,535 without debug information.
    Line(u16),
    /// Later versions: nonzero if an exception ended the method.
    Thrown(u8),
}

/// What an agent did with a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClassOutcome {
    /// The class was instrumented.
    Transformed,
    /// The class was skipped: excluded, or loaded by the boot loader.
    Ignored,
    /// The class could not be instrumented.
    Failed,
}

/// A location in a source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Location {
    /// The ID of the location.
    pub location: u32,
    /// The ID of the method.
    pub method: u32,
    /// The first line.
    pub start_line: u32,
    /// The last line.
    pub end_line: u32,
    /// The first column; 65,535 if unknown, which Java agents always send.
    pub start_char: u16,
    /// The last column; 65,535 if unknown.
    pub end_char: u16,
}

/// A message. The numbers are as wide as in the widest dialect; [`encode`](crate::encode) checks that they fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the fields are explained with their variant or have the type that explains them"
)]
pub enum Message<'a> {
    /// The first message of a control connection.
    Hello { version: u8 },
    /// The first message of a control connection of version 4, with the number of a project.
    ProjectHello { version: u8, project: u32 },
    /// The configuration; [`Configuration::decode`](crate::Configuration::decode) decodes the payload.
    Configuration { payload: &'a [u8] },
    /// One of start, stop, pause, unpause, suspend and unsuspend.
    Command(Command),
    /// A sign of life. The queue is the number of buffers that wait to be sent, not of bytes as the specification
    /// says.
    Heartbeat { mode: ModeByte, queue: u16 },
    /// Recording stopped before the event with this sequence id, or a few events after it.
    DataBreak { sequence: u32 },
    /// The name of a thread from this time on.
    MapThreadName { thread: u32, time: u64, name: JavaStr<'a> },
    /// `internal/Class.method;ACCESS;descriptor`, ACCESS in decimal.
    MapMethod { method: u32, signature: JavaStr<'a> },
    /// The name of an exception's class, with dots.
    MapException { exception: u32, name: JavaStr<'a> },
    /// A location in a source file.
    MapLocation(Location),
    /// The number of locations in a method. Sent for JSP classes only.
    LocationCount { method: u32, count: u32 },
    /// The entry of a call.
    Entry { at: Stamp, method: u32 },
    /// The exit of a call.
    Exit { at: Stamp, method: u32, exit: Exit },
    /// A `throw` statement of the program. The JVM's own exceptions are not reported.
    Exception { at: Stamp, method: u32, exception: u32, line: u16 },
    /// The end of a call by an exception.
    Bubble { at: Stamp, method: u32, exception: u32 },
    /// A line that ran; sent at the exit of the method.
    Visit { at: Stamp, method: u32, location: u32 },
    /// A text that the program reports itself. The thread is present in F1 only.
    Marker { time: u64, sequence: u64, thread: Option<u32>, key: JavaStr<'a>, value: JavaStr<'a> },
    /// The first message of a data connection.
    DataHello { run: u8 },
    /// The reply to data hello.
    DataHelloReply,
    /// A class that was loaded, by its name with slashes.
    Class { outcome: ClassOutcome, name: JavaStr<'a> },
    /// An error, which ends the trace.
    Error { text: JavaStr<'a> },
    /// F1: entries and exits of one thread.
    Batch(Batch<'a>),
    /// F1: the end of a thread. Its ID is not reused.
    ThreadEnd { thread: u32, time: u64 },
    /// F1: dropped events of a thread.
    Drop(Drop),
    /// F1: calls of methods since the trace began, or since the last reset.
    Counts(CountRows<'a>),
    /// F1: methods and locations that ran for the first time.
    Coverage(HitRows<'a>),
    /// F1: the agent's process. Sent after the configuration and before everything else.
    Process(Process<'a>),
    /// F1: a request to send counts and coverage now, and optionally to reset them.
    Snapshot { reset: bool },
}

impl Message<'_> {
    /// Returns the ID of the message.
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

    /// Returns the texts in the message, with the names of their fields.
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
