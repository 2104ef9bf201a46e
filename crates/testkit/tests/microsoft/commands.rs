//! Microsoft's client library sends all commands except sessions to a program with the embedded server: what the
//! program receives, and how the library reports an error.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use runtap_diag_proto::{
    AttachProfiler, Command, CoreDump, ErrorReply, Hresult, PerfMapType, StartupProfiler,
};
use runtap_diag_server::{Builder, Commands, ConnectPort, ProcessDescription};
use runtap_testkit::{FakeRuntime, Likeness, Peer, require};
use serde_json::Value;

use super::{dncli, run};

const CLASS: &str = "d0d0cafe-0001-4002-8003-a0b0c0d0e0f0";

/// Notes what it was told, and fails where the path says so.
#[derive(Debug, Default)]
struct Notes {
    lines: Mutex<Vec<String>>,
}

impl Notes {
    fn lines(&self) -> MutexGuard<'_, Vec<String>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, line: String) -> Result<(), Hresult> {
        let outcome = match line.rsplit(' ').next() {
            Some("invalid") => Err(Hresult::E_INVALIDARG),
            Some("missing") => Err(Hresult::MOD_NOT_FOUND),
            Some("second") => Err(Hresult::PROFILER_ALREADY_ACTIVE),
            _ => Ok(()),
        };
        self.lines().push(line);
        outcome
    }

    /// What it was told since the last time.
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.lines())
    }
}

impl Commands for Notes {
    fn dump(&self, dump: &CoreDump) -> Result<(), ErrorReply> {
        self.note(format!("dump {:?} {}", dump.kind, dump.flags.0))?;
        // The library reads it from the error; our text is as long as createdump's.
        fs::write(&dump.path, b"core").map_err(|error| ErrorReply {
            hresult: Hresult::E_FAIL,
            message: Some(format!("no dump in {}: {}\n", dump.path, error.kind())),
        })
    }

    fn attach_profiler(&self, p: &AttachProfiler) -> Result<(), Hresult> {
        self.note(format!("attach {} {} {:?} {}", p.class_id, p.timeout_ms, p.client_data, p.path))
    }

    fn startup_profiler(&self, profiler: &StartupProfiler) -> Result<(), Hresult> {
        self.note(format!("startup {} {}", profiler.class_id, profiler.path))
    }

    fn set_environment_variable(&self, name: &str, value: Option<&str>) -> Result<(), Hresult> {
        self.note(format!("set {name:?} {value:?}"))
    }

    fn enable_perf_map(&self, kind: PerfMapType) -> Result<(), Hresult> {
        self.note(format!("perf map {kind:?}"))
    }

    fn disable_perf_map(&self) -> Result<(), Hresult> {
        self.note("no perf map".to_owned())
    }

    fn apply_startup_hook(&self, path: &str) -> Result<(), Hresult> {
        self.note(format!("hook {path}"))
    }
}

fn path_in(folder: &Path, name: &str) -> String {
    folder.join(name).to_string_lossy().into_owned()
}

/// Type and message of the exception.
fn exception(answer: &Value) -> (&str, &str) {
    let text = |key: &str| answer["error"][key].as_str().unwrap_or_else(|| panic!("{answer}"));
    (text("type"), text("message"))
}

#[test]
fn real_client_library_reaches_the_program() {
    let peer = require!(Peer::available("dncli"));
    let dir = tempfile::tempdir().unwrap();
    let notes = Arc::new(Notes::default());
    let builder = Builder::new(ProcessDescription::of_this_process()).path(dir.path().join("s"));
    let server = builder.commands(Arc::clone(&notes) as _).spawn().unwrap();
    let core = path_in(dir.path(), "core");
    let profiler = ["--guid", CLASS, "--path"];
    for (command, options, expected) in [
        ("dump", &["--path", &core][..], "dump 1 (mini) 0"),
        ("dump", &["--path", &core, "--type", "WithHeap", "--flags", "1"], "dump 2 (heap) 1"),
        ("dump", &["--path", &core, "--type", "Triage", "--flags", "2"], "dump 3 (triage) 2"),
        ("dump", &["--path", &core, "--type", "Full", "--flags", "7"], "dump 4 (full) 7"),
        // The library sends whole seconds where the protocol has milliseconds.
        (
            "attach-profiler",
            &[&profiler[..], &["/p.so", "--data", "00ff10", "--attach-timeout", "7"]].concat(),
            "attach d0d0cafe-0001-4002-8003-a0b0c0d0e0f0 7 [0, 255, 16] /p.so",
        ),
        (
            "attach-profiler",
            &[&profiler[..], &["/\u{e9}\u{1f600}.so"]].concat(),
            "attach d0d0cafe-0001-4002-8003-a0b0c0d0e0f0 10 [] /\u{e9}\u{1f600}.so",
        ),
        (
            "startup-profiler",
            &[&profiler[..], &["/p.so"]].concat(),
            "startup d0d0cafe-0001-4002-8003-a0b0c0d0e0f0 /p.so",
        ),
        ("startup-hook", &["--path", "/h.dll"], "hook /h.dll"),
        ("set-env", &["--name", "N", "--value", "a=b \u{e9}"], "set \"N\" Some(\"a=b \u{e9}\")"),
        ("set-env", &["--name", "N", "--value", ""], "set \"N\" Some(\"\")"),
        ("set-env", &["--name", "N"], "set \"N\" None"),
        ("perfmap-on", &[], "perf map All"),
        ("perfmap-on", &["--type", "JitDump"], "perf map JitDump"),
        ("perfmap-on", &["--type", "PerfMap"], "perf map PerfMap"),
        ("perfmap-off", &[], "no perf map"),
    ] {
        let answer = dncli(&peer, server.path(), &[&[command][..], options].concat());
        assert_eq!(answer["ok"], true, "{answer}");
        assert_eq!(notes.take(), [expected]);
        if command == "dump" {
            assert_eq!(answer["answer"]["bytes"], 4, "{answer}");
        }
    }
}

#[test]
fn real_client_library_understands_refusals() {
    let peer = require!(Peer::available("dncli"));
    let dir = tempfile::tempdir().unwrap();
    let builder = Builder::new(ProcessDescription::of_this_process()).path(dir.path().join("s"));
    let server = builder.commands(Arc::new(Notes::default())).spawn().unwrap();
    let nowhere = path_in(dir.path(), "missing/core");
    let attach = ["attach-profiler", "--guid", CLASS, "--path"];
    for (words, kind, says) in [
        (&["dump", "--path", &nowhere][..], "ServerErrorException", nowhere.as_str()),
        (&[&attach[..], &["second"]].concat(), "ProfilerAlreadyActiveException", "already loaded"),
        (&[&attach[..], &["missing"]].concat(), "ServerErrorException", "8007007E"),
        (&["startup-hook", "--path", "invalid"], "UnsupportedCommandException", "Invalid command argument"),
    ] {
        let answer = dncli(&peer, server.path(), words);
        let (exception, message) = exception(&answer);
        assert_eq!(exception, kind, "{answer}");
        assert!(message.to_uppercase().contains(&says.to_uppercase()), "{answer}");
    }
}

#[test]
fn real_client_library_prepares_a_suspended_program() {
    let peer = require!(Peer::available("dncli"));
    let dir = tempfile::tempdir().unwrap();
    let port = dir.path().join("port");
    let notes = Arc::new(Notes::default());
    let builder = Builder::new(ProcessDescription::of_this_process()).path(dir.path().join("s"));
    let builder = builder.connect_port(ConnectPort::new(&port)).commands(Arc::clone(&notes) as _);
    let server = builder.spawn().unwrap();
    let mut listen = peer.command();
    listen.args(["listen", "--set-env", "N=V", "--startup-hook", "/h.dll", "--resume", "--socket"]).arg(port);
    let said = String::from_utf8(run(&mut listen).stdout).unwrap();
    let said: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(said.iter().all(|line| line["ok"] == true), "{said:?}");
    assert_eq!(notes.take(), ["set \"N\" Some(\"V\")", "hook /h.dll"]);
    assert!(!server.dispatcher().is_suspended());
}

/// The library goes back from the newest dump command to the oldest: with what our server says to those of its future.
#[test]
fn real_client_library_finds_the_dump_command_of_old_runtimes() {
    let peer = require!(Peer::available("dncli"));
    let dir = tempfile::tempdir().unwrap();
    let core = path_in(dir.path(), "core");
    let newest_first =
        [Command::GENERATE_CORE_DUMP3, Command::GENERATE_CORE_DUMP2, Command::GENERATE_CORE_DUMP];
    for (likeness, tries) in [(Likeness::Net7, 1), (Likeness::Net6, 2), (Likeness::NetCore31, 3)] {
        let notes = Arc::new(Notes::default());
        let fake = FakeRuntime::builder().commands(Arc::clone(&notes) as _).like(likeness).spawn();
        let answer = dncli(&peer, fake.path(), &["dump", "--path", &core, "--flags", "1"]);
        assert_eq!(answer["ok"], true, "{answer}");
        assert_eq!(fake.requests(), newest_first[..tries]);
        assert_eq!(notes.take(), ["dump 1 (mini) 1"]);
    }
}
