//! runtap's own server, in a program that records its requests and writes the same events as the small program.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use runtap_diag_proto::{
    AttachProfiler, CoreDump, ErrorReply, Hresult, PerfMapType, StartupProfiler, Uuid, Variable,
};
use runtap_diag_server::{
    Builder, Commands, ConnectPort, Event, EventData, EventPipe, ProcessDescription, ServerThread,
};
use runtap_nettrace::{Field, FieldType, Metadata};
use runtap_testkit::RealRuntime;

use crate::column::About;
use crate::recording::{METHODS, RUNDOWN};

pub(crate) const ABOUT: About =
    About { name: "conformance", provider: RealRuntime::SMALL_PROVIDER, prints_enabled: false };

/// The version of .NET that the server reports, whose commands it supports. The client requests it before it sends a
/// startup hook.
pub(crate) const CLAIMED: &str = "10.0.0";

/// The class of its profiler.
pub(crate) const CLASS: Uuid = Uuid::from_u128(0xd0d0_cafe_0001_4002_8003_a0b0_c0d0_e0f0);

/// Rundown events (loader, JIT): their numbers and keywords.
const RUNDOWN_EVENTS: [(u32, u64); 2] = [(154, 0x8), (METHODS, 0x10)];

#[derive(Debug)]
pub(crate) struct OwnServer {
    pub(crate) server: ServerThread,
    events: Vec<Event>,
    notes: Arc<Notes>,
}

/// How the server is started.
#[derive(Debug)]
pub(crate) enum Start {
    Running,
    /// Suspended until it is resumed over its own socket.
    Suspended,
    /// Suspended until it is resumed over this port.
    Port(PathBuf),
}

impl OwnServer {
    pub(crate) fn start(socket: PathBuf, start: Start, environment: &[(&str, &str)]) -> anyhow::Result<Self> {
        let pipe = EventPipe::new();
        let define = |provider: &str, id, name: &str, keywords| {
            let mut metadata = Metadata::new(provider, id, name);
            (metadata.keywords, metadata.level) = (keywords, 4);
            metadata.fields =
                if name.is_empty() { Vec::new() } else { vec![Field::new("n", FieldType::I32)] };
            pipe.define(metadata)
        };
        let events = [(1, "One"), (2, "Two"), (3, "Three")];
        let events = events.map(|(id, name)| define(ABOUT.provider, id, name, 0));
        let events = events.into_iter().collect::<Result<_, _>>()?;
        let rundown = RUNDOWN_EVENTS.map(|(id, keywords)| define(RUNDOWN, id, "", keywords));
        let rundown: Vec<Event> = rundown.into_iter().collect::<Result<_, _>>()?;
        pipe.on_rundown(move |out| {
            for event in &rundown {
                out.write(event, &[]);
            }
        });
        let variables = environment.iter().map(|(name, value)| Variable::new(name, value)).collect();
        let description = ProcessDescription::of_this_process()
            .entry_assembly(ABOUT.name)
            .runtime_version(CLAIMED)
            .environment(variables);
        let notes = Arc::new(Notes::default());
        let builder = Builder::new(description).pipe(pipe).path(socket).commands(notes.clone());
        let builder = match start {
            Start::Running => builder,
            Start::Suspended => builder.suspend(true),
            Start::Port(path) => builder.connect_port(ConnectPort::new(path)),
        };
        Ok(Self { server: builder.spawn()?, events, notes })
    }

    /// Writes each event once.
    pub(crate) fn round(&self) {
        for event in &self.events {
            event.write(&EventData {
                stack: &[0x1000, 0x2000],
                payload: &1u32.to_le_bytes(),
                ..EventData::default()
            });
        }
    }

    /// Returns the requests received so far, in order.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.notes.lines().clone()
    }
}

/// A program that only records its requests, and rejects those that a runtime would reject.
#[derive(Debug, Default)]
struct Notes {
    lines: Mutex<Vec<String>>,
}

impl Notes {
    fn lines(&self) -> MutexGuard<'_, Vec<String>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, line: String) {
        self.lines().push(line);
    }
}

impl Commands for Notes {
    fn dump(&self, dump: &CoreDump) -> Result<(), ErrorReply> {
        if !Path::new(&dump.path).parent().is_some_and(Path::is_dir) {
            let message = Some("there is no such folder".to_owned());
            return Err(ErrorReply { hresult: Hresult::E_FAIL, message });
        }
        self.note(format!("dump {} {} {}", dump.path, dump.kind.0, dump.flags.0));
        Ok(())
    }

    fn attach_profiler(&self, profiler: &AttachProfiler) -> Result<(), Hresult> {
        if !Path::new(&profiler.path).is_file() {
            return Err(Hresult::MOD_NOT_FOUND);
        }
        if profiler.class_id != CLASS {
            return Err(Hresult::CLASS_NOT_AVAILABLE);
        }
        if profiler.client_data.starts_with(b"fail") {
            return Err(Hresult::PROFILER_CANCEL_ACTIVATION);
        }
        if !self.lines().is_empty() {
            return Err(Hresult::PROFILER_ALREADY_ACTIVE);
        }
        self.note(format!("attach {:?}", profiler.client_data));
        Ok(())
    }

    fn startup_profiler(&self, profiler: &StartupProfiler) -> Result<(), Hresult> {
        self.note(format!("startup {}", profiler.class_id));
        Ok(())
    }

    fn set_environment_variable(&self, name: &str, value: Option<&str>) -> Result<(), Hresult> {
        self.note(format!("set {name} {value:?}"));
        Ok(())
    }

    fn enable_perf_map(&self, kind: PerfMapType) -> Result<(), Hresult> {
        self.note(format!("perf map {}", kind.number()));
        Ok(())
    }

    fn disable_perf_map(&self) -> Result<(), Hresult> {
        self.note("no perf map".to_owned());
        Ok(())
    }

    fn apply_startup_hook(&self, path: &str) -> Result<(), Hresult> {
        self.note(format!("hook {path}"));
        Ok(())
    }
}
