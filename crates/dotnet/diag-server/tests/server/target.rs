//! A server in this process, and the contents of its sessions.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use runtap_diag::blocking::{Client, Session};
use runtap_diag::{Level, Provider, Request, SessionConfig, SessionForm, SessionId, Variable};
use runtap_diag_server::{Builder, Event, EventPipe, Limits, ProcessDescription, ServerThread};
use runtap_nettrace::{Field, FieldType, Metadata, Reader, StreamItem};
use runtap_transport::Endpoint;
use tempfile::TempDir;

pub(crate) struct Target {
    /// Dropped before the directory of its socket.
    pub server: ServerThread,
    pub pipe: EventPipe,
    _dir: TempDir,
}

impl Target {
    pub(crate) fn new() -> Self {
        Self::with_limits(Limits::default())
    }

    pub(crate) fn with_limits(limits: Limits) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let pipe = EventPipe::new();
        let description = ProcessDescription::of_this_process()
            .entry_assembly("demo")
            .runtime_version("1.2.3")
            .environment(vec![Variable::new("A", "b=c"), Variable::new("EMPTY", "")]);
        let builder = Builder::new(description).pipe(pipe.clone()).limits(limits);
        let server = builder.path(dir.path().join("s")).spawn().unwrap();
        Self { server, pipe, _dir: dir }
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(Endpoint::unix(self.server.path())).unwrap()
    }

    pub(crate) fn connect(&self) -> UnixStream {
        UnixStream::connect(self.server.path()).unwrap()
    }

    /// Starts a session with all events of the provider P.
    pub(crate) fn start(&self) -> Session {
        self.client().start_session(&SessionConfig::new(vec![all_of("P")])).unwrap()
    }

    /// Starts such a session on a connection from which only the answer was read.
    pub(crate) fn start_unread(&self, buffer_mb: u32) -> (UnixStream, SessionId) {
        let mut config = SessionConfig::new(vec![all_of("P")]);
        config.buffer_mb = buffer_mb;
        let request = Request::CollectTracing { form: SessionForm::CollectTracing4, config };
        let mut stream = self.connect();
        stream.write_all(&request.to_bytes().unwrap()).unwrap();
        let mut reply = [0; 28];
        stream.read_exact(&mut reply).unwrap();
        (stream, SessionId(u64::from_le_bytes(*reply[20..].first_chunk().unwrap())))
    }

    /// Defines an event of the provider P.
    pub(crate) fn define(&self, id: u32, keywords: u64) -> Event {
        let mut metadata = Metadata::new("P", id, format!("E{id}"));
        metadata.keywords = keywords;
        metadata.fields = vec![Field::new("n", FieldType::U32)];
        self.pipe.define(metadata).unwrap()
    }
}

pub(crate) fn all_of(provider: &str) -> Provider {
    Provider::new(provider, u64::MAX, Level::Verbose)
}

/// The contents of a stream.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    /// The events in the order of the stream.
    pub events: Vec<Seen>,
    pub lost: u64,
    pub complete: bool,
    pub process_id: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub provider: String,
    pub id: u32,
    /// The first number of the payload.
    pub n: u32,
    pub capture_thread: u64,
    pub thread: u64,
    pub stack: Vec<u64>,
}

impl Trace {
    pub(crate) fn of_session(mut session: Session) -> Self {
        let mut bytes = Vec::new();
        while let Some(chunk) = session.next_chunk().unwrap() {
            bytes.extend_from_slice(&chunk);
        }
        Self::of_bytes(&bytes)
    }

    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        let mut reader = Reader::new();
        reader.feed(bytes);
        reader.finish();
        let mut trace = Self::default();
        while let Some(item) = reader.next().unwrap() {
            if let StreamItem::Event(event) = item {
                let metadata = event.metadata.unwrap();
                trace.events.push(Seen {
                    provider: metadata.provider.clone(),
                    id: metadata.event_id,
                    n: event.payload.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes)),
                    capture_thread: event.capture_thread_id,
                    thread: event.thread_id,
                    stack: event.stack.ips().collect(),
                });
            }
        }
        trace.lost = reader.lost();
        trace.complete = reader.is_complete();
        trace.process_id = reader.header().unwrap().process_id;
        trace
    }

    pub(crate) fn of(&self, provider: &str) -> Vec<&Seen> {
        self.events.iter().filter(|event| event.provider == provider).collect()
    }
}
