//! Whatever the client library can be made to send, with every extreme value that its encoder lets out: .NET 8, 9 and 10
//! answer, or refuse, and live.

#![cfg(target_os = "linux")]

use std::fs::File;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use runtap_diag::blocking::Client;
use runtap_diag::preflight;
use runtap_diag::{
    AttachProfiler, Buffering, CoreDump, DumpFlags, DumpForm, DumpType, Error, EventFilter, Format, InfoForm,
    Level, PerfMapType, Provider, Request, RundownFallback, SessionConfig, SessionForm, SessionId,
    StartupProfiler, Timeouts, Tracepoints, UserEventsConfig, UserEventsProvider,
};
use runtap_diag_proto::{MAX_FILTER_IDS, MAX_PROVIDERS, Uuid};
use runtap_testkit::{RealRuntime, Skip, eventually, require};

struct Target {
    /// Not a `Program`: createdump writes to the target's standard output, and would block on an unread pipe.
    child: Child,
    client: Client,
    what: String,
    folder: tempfile::TempDir,
}

impl Drop for Target {
    fn drop(&mut self) {
        // It may have died, which the test has told then.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Target {
    fn new(runtime: &RealRuntime) -> Result<Self, Skip> {
        let folder = tempfile::tempdir().unwrap();
        let launch = runtime.program("spin", &["600", "--stdin"])?;
        let launch = launch
            .env("TMPDIR", folder.path())
            .env("DOTNET_PerfMapJitDumpPath", folder.path())
            .in_folder(folder.path());
        let mut command = launch.command();
        let child =
            command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let pid = child.id();
        let found = || runtap_discover::process(pid).ok().and_then(|process| process.endpoint());
        let client = Client::new(eventually("the program has a socket", found)).unwrap();
        // It is not at its start any more.
        let started = || (!preflight::Target::of(pid).unwrap().is_starting()).then_some(());
        eventually("the program runs", started);
        Ok(Self { child, client, what: format!(".NET {}", runtime.major()), folder })
    }

    /// The answer does not matter, but there has to be one: the process is there, and answers others.
    fn survives(&self, request: &Request, outcome: Result<(), Error>) {
        let command = request.command();
        match outcome {
            Ok(()) | Err(Error::Refused { .. } | Error::Objection { .. } | Error::NoDump { .. }) => {}
            Err(other) => panic!("{} {command}: {other}", self.what),
        }
        let info = self.client.process_info();
        let info = info.unwrap_or_else(|error| panic!("{} after {command}: {error}", self.what));
        assert_eq!(info.process_id, u64::from(self.child.id()));
    }

    fn ask(&self, request: &Request) {
        let outcome = self.client.request(request.clone()).map(drop);
        self.survives(request, outcome);
    }

    /// A session is ended at once, so that there is room for the next.
    fn record(&self, form: SessionForm, config: &SessionConfig) {
        let request = Request::CollectTracing { form, config: config.clone() };
        let outcome = match self.client.request(request.clone()) {
            // Its connection is closed with the answer.
            Ok(runtap_diag::Reply::SessionStarted(id)) => self.client.stop_session(id),
            other => other.map(drop),
        };
        self.survives(&request, outcome);
    }
}

fn provider(name: &str) -> Provider {
    Provider::new(name, u64::MAX, Level::LogAlways)
}

fn sessions() -> Vec<SessionConfig> {
    let base = || SessionConfig::new(vec![provider("Demo")]);
    let many = (0..MAX_PROVIDERS).map(|n| Provider::new(format!("P{n}"), 0, Level::Verbose)).collect();
    let with = |change: &dyn Fn(&mut SessionConfig)| {
        let mut config = base();
        change(&mut config);
        config
    };
    let mut configs = vec![
        base(),
        with(&|c| c.buffer_mb = 1),
        with(&|c| c.buffer_mb = u32::MAX),
        with(&|c| c.format = Format::NetPerf),
        with(&|c| c.rundown_keyword = 0),
        with(&|c| c.rundown_keyword = u64::MAX),
        with(&|c| (c.rundown_keyword, c.rundown_fallback) = (1, RundownFallback::None)),
        with(&|c| c.stackwalk = false),
        with(&|c| c.buffering = Buffering::Block),
        SessionConfig::new(many),
        SessionConfig::new(vec![provider(&"N".repeat(5000))]),
        SessionConfig::new(vec![provider("a b;c,\"'\\%n\u{1}é中😀")]),
        SessionConfig::new(vec![provider("Demo").with_arguments("")]),
        SessionConfig::new(vec![provider("Demo").with_arguments("v".repeat(25_000))]),
        SessionConfig::new(vec![provider("Demo").with_arguments(";;==\"\";a=\"b;c=\"")]),
    ];
    for filter in [
        EventFilter::only([]),
        EventFilter::except([]),
        EventFilter::only([0, u32::MAX]),
        EventFilter::except([7, 7, 7]),
        EventFilter::only((0..).take(MAX_FILTER_IDS).collect::<Vec<_>>()),
    ] {
        configs.push(SessionConfig::new(vec![provider("Demo").with_filter(filter)]));
    }
    for level in Level::ALL {
        configs.push(SessionConfig::new(vec![Provider::new("Microsoft-Windows-DotNETRuntime", 0, level)]));
    }
    configs
}

#[test]
fn real_sessions_of_every_form_and_size() {
    for runtime in require!(RealRuntime::all()) {
        let target = require!(Target::new(&runtime));
        for config in sessions() {
            for form in SessionForm::NEWEST_FIRST {
                target.record(form, &config);
            }
        }
        for id in [0, 1, u64::MAX] {
            target.ask(&Request::StopTracing(SessionId(id)));
        }
    }
}

#[test]
fn real_sessions_into_user_events_of_every_shape() {
    for runtime in require!(RealRuntime::all()) {
        let target = require!(Target::new(&runtime));
        let ids = || (0..MAX_FILTER_IDS).map(|id| u32::try_from(id).unwrap()).collect::<Vec<_>>();
        for tracepoints in [
            Tracepoints::all_to("A"),
            Tracepoints::all_to("x".repeat(255)),
            Tracepoints::default().with_set("A", [0, u32::MAX]),
            Tracepoints::all_to("A").with_set("B", ids()),
            (0..500).fold(Tracepoints::all_to("A"), |all, n| all.with_set(format!("S{n}"), [n])),
        ] {
            for rundown_keyword in [0, u64::MAX] {
                let provider = provider("Demo").with_filter(EventFilter::except([1]));
                let config = UserEventsConfig {
                    providers: vec![UserEventsProvider { provider, tracepoints: tracepoints.clone() }],
                    rundown_keyword,
                };
                let file = File::options().read(true).write(true).open("/dev/null").unwrap();
                let request =
                    Request::CollectUserEvents { form: SessionForm::CollectTracing5, config: config.clone() };
                let outcome = target.client.start_user_events(&config, file.into()).map(drop);
                target.survives(&request, outcome);
            }
        }
    }
}

/// Paths and names that a program may stumble over.
fn odd_paths(folder: &Path) -> Vec<String> {
    let folder = folder.to_str().unwrap();
    vec![
        format!("{folder}/x.dmp"),
        format!("{folder}/a b'\"$(x)\\é中😀.dmp"),
        format!("{folder}/%p-%e-%h-%t-%d-%s-%n-%%.dmp"),
        format!("{folder}/{}", "n".repeat(300)),
        format!("/{}", "p/".repeat(10_000)),
        format!("{folder}/none/x.dmp"),
        folder.to_owned(),
        "/dev/null".to_owned(),
        "relative.dmp".to_owned(),
        "/".to_owned(),
    ]
}

#[test]
fn real_dumps_of_every_kind_to_odd_places() {
    for runtime in require!(RealRuntime::all()) {
        let target = require!(Target::new(&runtime));
        let dump = |form, path: &str, kind, flags| {
            let dump = CoreDump::new(path, DumpType(kind)).with_flags(DumpFlags(flags));
            target.ask(&Request::GenerateCoreDump { form, dump });
        };
        for path in odd_paths(target.folder.path()) {
            dump(DumpForm::GenerateCoreDump3, &path, 1, 0);
        }
        let path = target.folder.path().join("x.dmp");
        let path = path.to_str().unwrap();
        for form in DumpForm::NEWEST_FIRST {
            let most = if form == DumpForm::GenerateCoreDump { 1 } else { u32::MAX };
            for (kind, flags) in [(0, 0), (1, most), (3, 0), (5, 1), (u32::MAX, most)] {
                dump(form, path, kind, flags);
            }
        }
        for kind in [2, 4] {
            dump(DumpForm::GenerateCoreDump3, path, kind, 7);
            std::fs::remove_file(path).unwrap();
        }
    }
}

#[test]
fn real_commands_with_extreme_values() {
    for runtime in require!(RealRuntime::all()) {
        let target = require!(Target::new(&runtime));
        for form in InfoForm::NEWEST_FIRST {
            target.ask(&Request::ProcessInfo(form));
        }
        for path in odd_paths(target.folder.path()) {
            for (timeout_ms, size) in [(0, 0), (u32::MAX, 20_000)] {
                target.ask(&Request::AttachProfiler(AttachProfiler {
                    class_id: Uuid::max(),
                    path: path.clone(),
                    timeout_ms,
                    client_data: vec![0xff; size],
                }));
            }
            target.ask(&Request::StartupProfiler(StartupProfiler {
                class_id: Uuid::nil(),
                path: path.clone(),
            }));
            target.ask(&Request::ApplyStartupHook { path });
        }
        for name in ["A", "a b", "é中😀", &"N".repeat(10_000), "%s%n", "DOTNET_gcServer", "\u{1}"] {
            for value in [Some(""), Some("=;%n\u{1}é😀"), Some(&"v".repeat(20_000)), None] {
                let value = value.map(ToOwned::to_owned);
                target.ask(&Request::SetEnvironmentVariable { name: name.to_owned(), value });
            }
        }
        target.ask(&Request::ProcessEnvironment);
        for kind in PerfMapType::ALL.into_iter().chain(PerfMapType::ALL) {
            target.ask(&Request::EnablePerfMap(kind));
        }
        target.ask(&Request::DisablePerfMap);
        target.ask(&Request::DisablePerfMap);
        target.ask(&Request::ResumeRuntime);
    }
}

/// A client that gives up leaves the target as it was.
#[test]
fn real_runtimes_outlive_clients_that_give_up() {
    for runtime in require!(RealRuntime::all()) {
        let target = require!(Target::new(&runtime));
        let hasty = target.client.clone().with_timeouts(Timeouts::all(Duration::from_millis(1)));
        let path = target.folder.path().join("x.dmp");
        let dump = CoreDump::new(path.to_str().unwrap(), DumpType::MINI);
        for _ in 0..3 {
            // Whether it was in time or not.
            let _ = hasty.dump(&dump);
            let _ = hasty.environment();
            let _ = hasty.start_session(&SessionConfig::new(vec![provider("Demo")]));
        }
        let patient = target.client.clone().with_timeouts(Timeouts::all(Duration::from_mins(1)));
        let info = patient.process_info().unwrap();
        assert_eq!(info.process_id, u64::from(target.child.id()), "{}", target.what);
    }
}
