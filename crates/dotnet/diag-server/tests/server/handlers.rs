//! Commands that the program carries out itself: arguments, results, and defaults.

use std::sync::{Arc, Mutex, mpsc};

use runtap_diag::{
    AttachProfiler, CoreDump, DumpFlags, DumpForm, DumpType, Error, ErrorReply, Hresult, PerfMapType, Reply,
    Request, StartupProfiler, Variable, blocking::Client,
};
use runtap_diag_server::{Builder, Commands, ProcessDescription, ServerThread};
use runtap_transport::Endpoint;
use tempfile::TempDir;
use uuid::Uuid;

use crate::commands::refused;
use crate::target::Target;

/// Records the calls, and fails if the name says so.
#[derive(Debug, Default)]
struct Notes {
    lines: Mutex<Vec<String>>,
    /// Released by a hook named `wait`.
    gate: Mutex<Option<mpsc::Receiver<()>>>,
}

impl Notes {
    fn note(&self, line: String, name: &str) -> Result<(), Hresult> {
        self.lines.lock().unwrap().push(line);
        match name {
            "fail" => Err(Hresult::MOD_NOT_FOUND),
            "panic" => panic!("as asked for"),
            _ => Ok(()),
        }
    }
}

impl Commands for Notes {
    fn dump(&self, dump: &CoreDump) -> Result<(), ErrorReply> {
        self.note(format!("dump {} {:?} {}", dump.path, dump.kind, dump.flags.0), &dump.path).map_err(
            |hresult| ErrorReply {
                hresult,
                message: Some("disk full".repeat(if dump.flags.0 == 2 { 9000 } else { 1 })),
            },
        )
    }

    fn attach_profiler(&self, p: &AttachProfiler) -> Result<(), Hresult> {
        let line = format!("attach {} {} {} {:?}", p.class_id, p.path, p.timeout_ms, p.client_data);
        self.note(line, &p.path)
    }

    fn startup_profiler(&self, profiler: &StartupProfiler) -> Result<(), Hresult> {
        self.note(format!("startup {} {}", profiler.class_id, profiler.path), &profiler.path)
    }

    fn set_environment_variable(&self, name: &str, value: Option<&str>) -> Result<(), Hresult> {
        self.note(format!("set {name:?} {value:?}"), name)
    }

    fn enable_perf_map(&self, kind: PerfMapType) -> Result<(), Hresult> {
        self.note(format!("perf map {kind:?}"), "")
    }

    fn disable_perf_map(&self) -> Result<(), Hresult> {
        self.note("no perf map".into(), "")
    }

    fn apply_startup_hook(&self, path: &str) -> Result<(), Hresult> {
        if let ("wait", Some(gate)) = (path, self.gate.lock().unwrap().take()) {
            let _ = gate.recv();
        }
        self.note(format!("hook {path:?}"), path)
    }
}

struct Program {
    client: Client,
    notes: Arc<Notes>,
    server: ServerThread,
    _dir: TempDir,
}

fn program(notes: Notes) -> Program {
    let dir = tempfile::tempdir().unwrap();
    let notes = Arc::new(notes);
    let builder = Builder::new(ProcessDescription::of_this_process()).path(dir.path().join("s"));
    let server = builder.commands(Arc::clone(&notes) as _).spawn().unwrap();
    let client = Client::new(Endpoint::unix(server.path())).unwrap();
    Program { client, notes, server, _dir: dir }
}

fn every_command(name: &str) -> Vec<Request> {
    let class_id = Uuid::from_u128(7);
    let path = || name.to_owned();
    vec![
        Request::GenerateCoreDump {
            form: DumpForm::GenerateCoreDump,
            dump: CoreDump::new(path(), DumpType::MINI),
        },
        Request::GenerateCoreDump {
            form: DumpForm::GenerateCoreDump3,
            dump: CoreDump::new(path(), DumpType::FULL).with_flags(DumpFlags::CRASH_REPORT),
        },
        Request::AttachProfiler(AttachProfiler {
            class_id,
            path: path(),
            timeout_ms: 9,
            client_data: vec![1, 2],
        }),
        Request::StartupProfiler(StartupProfiler { class_id, path: path() }),
        Request::SetEnvironmentVariable { name: path(), value: Some("v".into()) },
        Request::SetEnvironmentVariable { name: path(), value: None },
        Request::EnablePerfMap(PerfMapType::JitDump),
        Request::DisablePerfMap,
        Request::ApplyStartupHook { path: path() },
    ]
}

/// Sends a request without the client's own checks, and returns the result or the error reply.
fn send(server: &std::path::Path, request: &Request) -> Result<Reply, ErrorReply> {
    use std::io::{Read, Write};

    let mut stream = std::os::unix::net::UnixStream::connect(server).unwrap();
    stream.write_all(&request.to_bytes().unwrap()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let mut machine = runtap_diag_proto::client::Client::with_descriptor(request.clone()).unwrap();
    machine.handle_bytes(&answer);
    match machine.poll_event() {
        Some(runtap_diag_proto::client::Event::Reply(reply)) => Ok(reply),
        Some(runtap_diag_proto::client::Event::Failed(runtap_diag_proto::client::Failure::Rejected(
            error,
        ))) => Err(error),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_command_reaches_the_program_completely() {
    let program = program(Notes::default());
    for request in every_command("/x") {
        assert_eq!(send(program.server.path(), &request), Ok(Reply::Done), "{request:?}");
    }
    assert_eq!(
        *program.notes.lines.lock().unwrap(),
        [
            "dump /x 1 (mini) 0",
            "dump /x 4 (full) 4",
            "attach 00000000-0000-0000-0000-000000000007 /x 9 [1, 2]",
            "startup 00000000-0000-0000-0000-000000000007 /x",
            "set \"/x\" Some(\"v\")",
            "set \"/x\" None",
            "perf map JitDump",
            "no perf map",
            "hook \"/x\"",
        ]
    );
}

#[test]
fn results_are_returned_and_texts_only_where_supported() {
    let program = program(Notes::default());
    for request in every_command("fail") {
        let text = match &request {
            Request::EnablePerfMap(_) | Request::DisablePerfMap => continue,
            Request::GenerateCoreDump { form: DumpForm::GenerateCoreDump3, .. } => {
                Some("disk full".to_owned())
            }
            _ => None,
        };
        let expected = ErrorReply { hresult: Hresult::MOD_NOT_FOUND, message: text };
        assert_eq!(send(program.server.path(), &request), Err(expected), "{request:?}");
    }
}

#[test]
fn a_text_too_long_for_a_message_is_omitted() {
    let program = program(Notes::default());
    let dump = CoreDump::new("fail", DumpType::MINI).with_flags(DumpFlags::VERBOSE);
    let request = Request::GenerateCoreDump { form: DumpForm::GenerateCoreDump3, dump };
    assert_eq!(send(program.server.path(), &request), Err(Hresult::MOD_NOT_FOUND.into()));
}

#[test]
fn a_panicking_command_fails_and_the_server_continues() {
    let program = program(Notes::default());
    let request = Request::ApplyStartupHook { path: "panic".into() };
    assert_eq!(send(program.server.path(), &request), Err(Hresult::E_FAIL.into()));
    program.client.process_info().unwrap();
}

#[test]
fn invalid_dump_types_do_not_reach_the_program() {
    let program = program(Notes::default());
    for kind in [0, 5, u32::MAX] {
        let dump = CoreDump::new("/x", DumpType(kind));
        let request = Request::GenerateCoreDump { form: DumpForm::GenerateCoreDump3, dump };
        let expected = ErrorReply { hresult: Hresult::E_FAIL, message: Some(String::new()) };
        assert_eq!(send(program.server.path(), &request), Err(expected));
    }
    assert!(program.notes.lines.lock().unwrap().is_empty());
}

#[test]
fn a_slow_command_blocks_no_other_client() {
    let (open, gate) = mpsc::channel();
    let program = program(Notes { gate: Mutex::new(Some(gate)), ..Notes::default() });
    let path = program.server.path().to_owned();
    let slow = std::thread::spawn(move || send(&path, &Request::ApplyStartupHook { path: "wait".into() }));
    // Other clients are answered, whether the command has arrived yet or not.
    for _ in 0..10 {
        program.client.process_info().unwrap();
        program.client.set_environment_variable("A", None).unwrap();
    }
    open.send(()).unwrap();
    assert_eq!(slow.join().unwrap(), Ok(Reply::Done));
}

#[test]
fn by_default_commands_are_rejected_as_by_an_aot_runtime() {
    let target = Target::new();
    for request in every_command("/x") {
        let expected = match &request {
            Request::GenerateCoreDump { form: DumpForm::GenerateCoreDump3, .. } => {
                ErrorReply { hresult: Hresult::E_FAIL, message: Some(String::new()) }
            }
            Request::GenerateCoreDump { .. } => Hresult::E_FAIL.into(),
            Request::SetEnvironmentVariable { .. } => continue,
            _ => Hresult::NOTSUPPORTED.into(),
        };
        assert_eq!(send(target.server.path(), &request), Err(expected), "{request:?}");
    }
    let error = target.client().enable_perf_map(PerfMapType::JitDump);
    assert!(matches!(&error, Err(Error::Refused { .. })), "{error:?}");
    assert_eq!(refused(error), Hresult::NOTSUPPORTED);
}

#[test]
fn variables_that_clients_set_are_remembered() {
    let target = Target::new();
    let client = target.client();
    client.set_environment_variable("A", Some("é")).unwrap();
    client.set_environment_variable("NEW", Some("")).unwrap();
    client.set_environment_variable("EMPTY", None).unwrap();
    assert_eq!(client.environment().unwrap(), [Variable::new("A", "é"), Variable::new("NEW", "")]);
    let variables = ["A", "NEW", "EMPTY", "OTHER"].map(|name| target.server.variable(name));
    assert_eq!(variables, [Some("é".to_owned()), Some(String::new()), None, None]);
}
