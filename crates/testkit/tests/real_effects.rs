//! Commands that change something in a real runtime, through the client library: what they do is looked at in files and
//! answers, and what would harm the runtime is not sent.

#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};

use runtap_diag::blocking::Client;
use runtap_diag::preflight::{self, Objection};
use runtap_diag::{
    AttachProfiler, CoreDump, DumpFlags, DumpType, Error, Hresult, Level, PerfMapType, Provider,
    SessionConfig, StartupProfiler, Tracepoints, UserEventsConfig, UserEventsProvider,
};
use runtap_diag_proto::Uuid;
use runtap_testkit::{Launch, Program, RealRuntime, Skip, eventually, require, shared_dir, workspace_root};
use runtap_transport::Endpoint;
use tempfile::TempDir;

/// The profiler of the shared folder.
const PROFILER: Uuid = Uuid::from_u128(0xd0d0_cafe_0001_4002_8003_a0b0_c0d0_e0f0);

/// A program of a real runtime with a folder of its own, where its socket, its dumps and its maps go.
struct Target {
    program: Program,
    client: Client,
    major: u8,
    folder: TempDir,
}

impl Target {
    fn running(runtime: &RealRuntime) -> Result<Self, Skip> {
        let folder = tempfile::tempdir().unwrap();
        let program = Self::launch(runtime, folder.path())?.spawn();
        Ok(Self::new(runtime, program, folder))
    }

    fn suspended(runtime: &RealRuntime) -> Result<Self, Skip> {
        let folder = tempfile::tempdir().unwrap();
        let launch = Self::launch(runtime, folder.path())?;
        let program = launch.env("DOTNET_DefaultDiagnosticPortSuspend", "1").spawn_unready();
        Ok(Self::new(runtime, program, folder))
    }

    fn launch(runtime: &RealRuntime, folder: &Path) -> Result<Launch, Skip> {
        let launch = runtime.program("spin", &["600", "--stdin"])?;
        Ok(launch
            .env("TMPDIR", folder)
            .env("DOTNET_PerfMapJitDumpPath", folder)
            .env("DEMO_HOOK_OUT", folder.join("hook.txt"))
            .env("DEMO_PROFILER_OUT", folder.join("profiler.txt")))
    }

    fn new(runtime: &RealRuntime, program: Program, folder: TempDir) -> Self {
        let endpoint = endpoint(&program);
        let client = Client::new(endpoint).unwrap();
        Self { program, client, major: runtime.major(), folder }
    }

    fn is_starting(&self) -> bool {
        preflight::Target::of(self.program.id()).unwrap().is_starting()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap_or_default()
    }

    fn dump(&self, kind: DumpType) -> CoreDump {
        CoreDump::new(self.file("x.dmp").to_str().unwrap(), kind)
    }

    fn assert_alive(&self) {
        let info = self.client.process_info().unwrap();
        assert_eq!(info.process_id, u64::from(self.program.id()), ".NET {}", self.major);
    }
}

/// Where a program listens; it may just have been started.
fn endpoint(program: &Program) -> Endpoint {
    let found = || runtap_discover::process(program.id()).ok().and_then(|process| process.endpoint());
    eventually("the program has a socket", found)
}

fn shared(path: &str) -> String {
    shared_dir().expect("the program came from there").join(path).to_str().unwrap().to_owned()
}

fn hook() -> String {
    shared("apps/dotnet/startuphook/bin/startuphook.dll")
}

fn profiler() -> String {
    shared("apps/dotnet/profiler/bin/libdemoprofiler.so")
}

fn objection(result: Result<impl std::fmt::Debug, Error>) -> Objection {
    match result {
        Err(Error::Objection { objection, .. }) => objection,
        other => panic!("{other:?}"),
    }
}

fn refused(result: Result<impl std::fmt::Debug, Error>) -> Hresult {
    match result {
        Err(Error::Refused { reply, .. }) => reply.hresult,
        other => panic!("{other:?}"),
    }
}

#[test]
fn real_dumps_are_written_and_looked_at() {
    for runtime in require!(RealRuntime::all()) {
        let target = require!(Target::running(&runtime));
        let dump = target.dump(DumpType::MINI).with_flags(DumpFlags::CRASH_REPORT);
        let written = target.client.dump(&dump).unwrap();
        let core = fs::read(&dump.path).unwrap();
        assert!(core.starts_with(b"\x7fELF"));
        assert_eq!(written.bytes, Some(core.len() as u64));
        let report: serde_json::Value = serde_json::from_str(&target.text("x.dmp.crashreport.json")).unwrap();
        assert!(report.get("payload").is_some(), "{report}");

        let nowhere = CoreDump::new("/nope/x.dmp", DumpType::MINI);
        assert!(matches!(objection(target.client.dump(&nowhere)), Objection::Missing { .. }));
        // createdump says in words what it can't do: here is a folder in the way.
        let taken = CoreDump::new(target.folder.path().to_str().unwrap(), DumpType::MINI);
        let error = target.client.dump(&taken).unwrap_err();
        assert_eq!(error.hresult(), Some(Hresult::E_FAIL), "{error}");
        assert!(error.to_string().contains("[createdump]"), "{error}");
        // Harmless, and the runtime's own to refuse.
        assert_eq!(refused(target.client.dump(&target.dump(DumpType(9)))), Hresult::E_FAIL);
        target.assert_alive();
    }
}

#[test]
fn real_runtimes_without_createdump_keep_their_socket() {
    for runtime in require!(RealRuntime::all()) {
        // Beside the runtime as a rule, so that links are enough.
        let folder = tempfile::tempdir_in(workspace_root().join("target")).unwrap();
        let copy = folder.path().canonicalize().unwrap().join("dotnet");
        link_all(runtime.root(), &copy);
        let mut program = require!(Target::launch(&runtime, folder.path())).command();
        // The same command line, with the copy in place of the runtime.
        let arguments: Vec<_> = program.get_args().map(ToOwned::to_owned).collect();
        program = {
            let mut changed = std::process::Command::new(copy.join("dotnet"));
            for (name, value) in program.get_envs() {
                changed.env(name, value.unwrap_or_default());
            }
            changed.args(arguments).env("DOTNET_ROOT", &copy);
            changed.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
            changed
        };
        let mut program = Program::start(program);
        program.wait_for("ready");
        let client = Client::new(endpoint(&program)).unwrap();
        let dump = CoreDump::new(folder.path().join("x.dmp").to_str().unwrap(), DumpType::MINI);

        let createdump = find(&copy, "createdump").unwrap();
        fs::remove_file(&createdump).unwrap();
        match objection(client.dump(&dump)) {
            Objection::Createdump { path, missing: true } => assert_eq!(path, createdump),
            other => panic!("{other}"),
        }
        fs::write(&createdump, "").unwrap();
        assert!(matches!(objection(client.dump(&dump)), Objection::Createdump { missing: false, .. }));
        // By a connection of its own: the socket file is still there.
        client.process_info().unwrap();
    }
}

/// A copy of a folder by links to its files.
fn link_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            link_all(&entry.path(), &target);
        } else {
            fs::hard_link(entry.path(), &target)
                .or_else(|_| fs::copy(entry.path(), &target).map(drop))
                .unwrap();
        }
    }
}

fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries
        .into_iter()
        .find_map(|path| if path.is_dir() { find(&path, name) } else { path.ends_with(name).then_some(path) })
}

#[test]
fn real_variables_perf_maps_and_hooks() {
    for runtime in require!(RealRuntime::all()) {
        let target = require!(Target::running(&runtime));
        let client = &target.client;
        assert!(!target.is_starting());
        let variable = |name: &str| {
            let all = client.environment().unwrap();
            all.into_iter().find(|v| v.name() == name).map(|v| v.value().unwrap_or_default().to_owned())
        };
        client.set_environment_variable("DEMO_SET", Some("é=1")).unwrap();
        assert_eq!(variable("DEMO_SET").as_deref(), Some("é=1"));
        client.set_environment_variable("DEMO_SET", None).unwrap();
        assert_eq!(variable("DEMO_SET"), None);

        let map = format!("perf-{}.map", target.program.id());
        client.enable_perf_map(PerfMapType::PerfMap).unwrap();
        assert!(target.text(&map).contains("Program::Main"));
        client.disable_perf_map().unwrap();

        client.apply_startup_hook(&hook()).unwrap();
        let said = target.text("hook.txt");
        assert!(said.contains(&format!("pid={}", target.program.id())), "{said}");
        target.assert_alive();
    }
}

#[test]
fn real_runtimes_are_not_sent_hooks_that_would_kill_them() {
    for runtime in require!(RealRuntime::all()) {
        let target = require!(Target::running(&runtime));
        let apply = |path: &str| objection(target.client.apply_startup_hook(path));
        assert!(matches!(apply("/nope/none.dll"), Objection::Missing { .. }));
        assert!(matches!(apply("NoSuchAssembly"), Objection::Relative { .. }));
        assert!(matches!(apply(&profiler()), Objection::NotAnAssembly { .. }));
        // Assemblies, but no hooks: a program, and a large one of the runtime itself.
        let program = shared("apps/dotnet/spin/bin/spin.dll");
        assert!(matches!(apply(&program), Objection::NoHookClass { .. }));
        let library = find(runtime.root(), "System.Private.CoreLib.dll").unwrap();
        assert!(matches!(apply(library.to_str().unwrap()), Objection::NoHookClass { .. }));
        let twice = format!("{}:{}", hook(), hook());
        assert!(matches!(apply(&twice), Objection::SeveralPaths { .. }));
        target.assert_alive();
    }
}

#[test]
fn real_profilers_are_attached() {
    for runtime in require!(RealRuntime::all()) {
        let target = require!(Target::running(&runtime));
        let attach = |path: &str, data: &[u8]| {
            let client_data = data.to_vec();
            let profiler =
                AttachProfiler { class_id: PROFILER, path: path.into(), timeout_ms: 10_000, client_data };
            target.client.attach_profiler(&profiler)
        };
        assert!(matches!(objection(attach("/nope/libx.so", b"")), Objection::Missing { .. }));
        assert_eq!(refused(attach(&profiler(), b"fail")), Hresult::PROFILER_CANCEL_ACTIVATION);
        attach(&profiler(), b"\x01\x02\xff").unwrap();
        let said = target.text("profiler.txt");
        assert!(said.ends_with("attach 3 0102ff\nattached\n"), "{said}");
        assert_eq!(refused(attach(&profiler(), b"")), Hresult::PROFILER_ALREADY_ACTIVE);
        target.assert_alive();
    }
}

/// A session that was stopped while the runtime waited would end it, when another one is there.
#[test]
fn real_suspended_runtimes_survive_sessions_that_end() {
    for runtime in require!(RealRuntime::all()) {
        let mut target = require!(Target::suspended(&runtime));
        let config = SessionConfig::new(vec![Provider::new("Demo", u64::MAX, Level::Verbose)]);
        for _ in 0..3 {
            let session = target.client.start_session(&config).unwrap();
            assert!(matches!(objection(session.stop().wait()), Objection::StopAtStartup));
            assert!(matches!(objection(target.client.stop_session(session.id())), Objection::StopAtStartup));
        }
        let last = target.client.start_session(&config).unwrap();
        target.client.resume().unwrap();
        target.program.wait_for("ready");
        // It may not be past its start yet: then this waits for it.
        last.stop().wait().unwrap();
        target.assert_alive();
    }
}

#[test]
fn real_suspended_runtimes_do_what_they_can_and_survive() {
    for runtime in require!(RealRuntime::all()) {
        let mut target = require!(Target::suspended(&runtime));
        let client = target.client.clone();
        assert!(target.is_starting());
        // It would say OK and write nothing.
        for kind in [DumpType::MINI, DumpType::WITH_HEAP, DumpType::TRIAGE] {
            let objection = objection(client.dump(&target.dump(kind)));
            assert!(matches!(objection, Objection::DumpAtStartup { .. }), "{objection}");
        }
        assert!(client.dump(&target.dump(DumpType::FULL)).unwrap().bytes.unwrap() > 1_000_000);
        let map = client.enable_perf_map(PerfMapType::PerfMap);
        if runtime.major() < 10 {
            assert!(matches!(objection(map), Objection::PerfMapAtStartup { .. }));
        } else {
            map.unwrap();
        }
        let attach = AttachProfiler {
            class_id: PROFILER,
            path: profiler(),
            timeout_ms: 1000,
            client_data: Vec::new(),
        };
        assert_eq!(refused(client.attach_profiler(&attach)), Hresult::NOT_YET_AVAILABLE);
        let missing = StartupProfiler { class_id: PROFILER, path: "/nope/libx.so".into() };
        assert!(matches!(objection(client.startup_profiler(&missing)), Objection::Missing { .. }));
        client.startup_profiler(&StartupProfiler { class_id: PROFILER, path: profiler() }).unwrap();
        client.set_environment_variable("DEMO_SET", Some("early")).unwrap();
        client.apply_startup_hook(&hook()).unwrap();
        assert_eq!(target.text("hook.txt"), "", "it is not loaded yet");
        client.resume().unwrap();
        target.program.wait_for("ready");
        assert!(target.text("hook.txt").contains("thread=1 "));
        assert!(target.text("profiler.txt").starts_with("init\n"));
        assert!(!target.is_starting());
        target.assert_alive();
    }
}

/// Passes a descriptor that is not the kernel's file: the runtime must reply with an error at once.
#[test]
fn real_runtimes_take_the_descriptor_of_user_events() {
    for runtime in require!(RealRuntime::all()) {
        let target = require!(Target::running(&runtime));
        let config = UserEventsConfig::new(vec![UserEventsProvider {
            provider: Provider::new("Demo", 1, Level::Informational),
            tracepoints: Tracepoints::all_to("Demo_All").with_set("Demo_Some", [1, 2]),
        }]);
        let descriptor = fs::File::options().read(true).write(true).open("/dev/null").unwrap();
        let answer = target.client.start_user_events(&config, descriptor.into());
        let expected = if runtime.major() < 10 { Hresult::UNKNOWN_COMMAND } else { Hresult::E_FAIL };
        assert_eq!(refused(answer), expected, ".NET {}", runtime.major());
        target.assert_alive();
    }
}

/// In a container: what counts is what the target finds there.
#[test]
fn real_targets_elsewhere_are_looked_at_where_they_are() {
    if !rustix::process::geteuid().is_root() {
        Skip::because("only root can make namespaces and look into them").report();
        return;
    }
    for runtime in require!(RealRuntime::all()) {
        let spin = require!(runtime.program("spin", &["600", "--stdin"]));
        let outside = tempfile::tempdir_in(workspace_root().join("target")).unwrap();
        let folder = outside.path().canonicalize().unwrap();
        fs::copy(hook(), folder.join("ours.dll")).unwrap();
        let shown = folder.display();
        let script =
            format!("mount -t tmpfs none '{shown}' && cp '{}' '{shown}/theirs.dll' && exec \"$@\"", hook());
        let wrapper = ["unshare", "--pid", "--mount", "--fork", "--mount-proc", "--kill-child"];
        let wrapper = [&wrapper[..], &["sh", "-c", &script, "sh"]].concat();
        let launch = spin.wrapped_by(&wrapper);
        let program = launch.env("TMPDIR", &folder).env("DEMO_HOOK_OUT", folder.join("hook.txt")).spawn();
        let is_below = |process: &runtap_discover::Process| {
            let stat = fs::read_to_string(format!("/proc/{}/stat", process.pid)).unwrap_or_default();
            stat.rsplit(") ").next().and_then(|fields| fields.split(' ').nth(1))
                == Some(&program.id().to_string())
        };
        let process = runtap_discover::processes(runtap_discover::Options::default())
            .into_iter()
            .find(is_below)
            .unwrap();
        let client = Client::new(process.endpoint().unwrap()).unwrap();

        let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        // This file exists for the client but not for the target, which would crash.
        assert!(matches!(objection(client.apply_startup_hook(&path("ours.dll"))), Objection::Missing { .. }));
        client.apply_startup_hook(&path("theirs.dll")).unwrap();
        let written = client.dump(&CoreDump::new(path("x.dmp"), DumpType::MINI)).unwrap();
        assert!(written.bytes.unwrap() > 1_000_000);
        assert!(!folder.join("x.dmp").exists(), "it is not written here");
        let inside = Path::new("/proc").join(process.pid.to_string()).join("root");
        let said =
            fs::read_to_string(inside.join(folder.strip_prefix("/").unwrap()).join("hook.txt")).unwrap();
        assert!(said.contains("pid=1 "), "{said}");
        assert_eq!(client.process_info().unwrap().process_id, 1);
    }
}
