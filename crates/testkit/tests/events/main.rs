//! Events of a Rust program as they come out of sessions, decoded by what the stream says about them.

#![cfg(target_os = "linux")]
#![allow(clippy::doc_markdown, reason = "the names of the events of .NET are words here, not code")]
#![expect(clippy::float_cmp, reason = "sums of small whole numbers are exact")]

mod counters;
mod golden;
mod layer;
mod logs;
mod metrics;
mod provider;

use runtap_clr::lines::{Choice, Chooser, Lines, LiveLines, Style};
use runtap_diag::blocking::{Client, Session};
use runtap_diag::{Level, Provider, SessionConfig};
use runtap_diag_server::{Builder, EventPipe, Limits, ProcessDescription, ServerThread};
use runtap_transport::Endpoint;
use serde_json::Value;
use tempfile::TempDir;

/// A server in this process.
struct Target {
    server: ServerThread,
    pipe: EventPipe,
    _dir: TempDir,
}

impl Target {
    fn new() -> Self {
        Self::with(Limits::default())
    }

    fn with(limits: Limits) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let pipe = EventPipe::new();
        let builder = Builder::new(ProcessDescription::of_this_process()).pipe(pipe.clone()).limits(limits);
        let server = builder.path(dir.path().join("s")).spawn().unwrap();
        Self { server, pipe, _dir: dir }
    }

    /// A session of these providers: `Name:keywords:level:arguments`.
    fn session(&self, providers: &[&str]) -> Recording {
        self.session_of(&config(providers))
    }

    fn client(&self) -> Client {
        Client::new(Endpoint::unix(self.server.path())).unwrap()
    }

    fn session_of(&self, config: &SessionConfig) -> Recording {
        Recording { session: self.client().start_session(config).unwrap(), bytes: Vec::new() }
    }

    /// What a session gets of what happens in `act`.
    fn record(&self, providers: &[&str], act: impl FnOnce()) -> Vec<Value> {
        let recording = self.session(providers);
        act();
        recording.stop()
    }
}

fn config(providers: &[&str]) -> SessionConfig {
    let mut config = SessionConfig::new(providers.iter().map(|text| provider(text)).collect());
    config.rundown_keyword = 0;
    config
}

fn provider(text: &str) -> Provider {
    let mut parts = text.splitn(4, ':');
    let name = parts.next().unwrap();
    let keywords = parts.next().map_or(u64::MAX, |hex| u64::from_str_radix(hex, 16).unwrap());
    let level =
        parts.next().map_or(Level::Verbose, |level| Level::from_number(level.parse().unwrap()).unwrap());
    let mut provider = Provider::new(name, keywords, level);
    provider.arguments = parts.next().map(str::to_owned);
    provider
}

struct Recording {
    session: Session,
    bytes: Vec<u8>,
}

impl Recording {
    /// Reads until the events that have come are enough.
    fn until(&mut self, enough: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        loop {
            let events = decoded(&self.bytes, false);
            if enough(&events) {
                return events;
            }
            let chunk = self.session.next_chunk().unwrap().expect("the stream ended early");
            self.bytes.extend_from_slice(&chunk);
        }
    }

    fn stop(self) -> Vec<Value> {
        decoded(&self.stop_raw(), true)
    }

    /// The whole stream.
    fn stop_raw(self) -> Vec<u8> {
        let stopping = self.session.stop();
        let bytes = self.rest();
        stopping.wait().unwrap();
        bytes
    }

    /// The whole stream, when it has come to its end.
    fn rest(mut self) -> Vec<u8> {
        while let Some(chunk) = self.session.next_chunk().unwrap() {
            self.bytes.extend_from_slice(&chunk);
        }
        self.bytes
    }
}

/// The events of a stream in order, without the one that ends it.
fn decoded(bytes: &[u8], whole: bool) -> Vec<Value> {
    let mut lines = Vec::new();
    let mut live =
        LiveLines::new(Lines::new(Chooser::new(Choice::default(), None), Style::Json, false, &mut lines));
    live.feed(bytes, |_| {}).unwrap();
    live.finish(|_| {}).unwrap();
    assert_eq!(live.lost(), 0);
    assert!(!whole || live.partial().is_none(), "{:?}", live.partial());
    drop(live);
    let events = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let events = events.map(|line| serde_json::from_slice::<Value>(line).unwrap());
    events.filter(|event| event["provider"] != "Microsoft-DotNETCore-EventPipe").collect()
}

fn named<'a>(events: &'a [Value], name: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["name"] == name).collect()
}
