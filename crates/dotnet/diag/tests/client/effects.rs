//! Commands that change the target: what is sent, what is rejected, and which answers are verified. The
//! target is this process, so it sees the files of the tests.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use runtap_diag::preflight::Objection;
use runtap_diag::{
    AttachProfiler, Command, CoreDump, DumpFlags, DumpForm, DumpType, Error, ErrorReply, Hresult,
    PerfMapType, Reply, Request, StartupProfiler, Timeouts,
};
use runtap_diag_proto::{Uuid, server};
use runtap_testkit::{Skip, shared_dir};
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, sleep};

use crate::support::{Peer, ok, read_request, sample_info};

/// A runtime that supports dumps up to `newest`, writes `bytes` bytes into their files if there are any, and records its
/// requests.
fn runtime(newest: DumpForm, bytes: Option<usize>) -> (Peer, Arc<Mutex<Vec<Request>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&asked);
    let peer = Peer::new(move |_, mut stream| {
        let notes = Arc::clone(&notes);
        async move {
            let request = read_request(&mut stream).await.unwrap();
            notes.lock().unwrap().push(request.clone());
            let answer = match &request {
                Request::ProcessInfo(_) => ok(&request, &Reply::ProcessInfo(sample_info())),
                Request::GenerateCoreDump { form, .. } if *form > newest => {
                    ErrorReply::from(Hresult::UNKNOWN_COMMAND).to_bytes().unwrap()
                }
                Request::GenerateCoreDump { dump, .. } => {
                    if let Some(bytes) = bytes {
                        std::fs::write(&dump.path, vec![7; bytes]).unwrap();
                    }
                    ok(&request, &Reply::Done)
                }
                _ => ok(&request, &Reply::Done),
            };
            stream.write_all(&answer).await.unwrap();
        }
    });
    (peer, asked)
}

/// Returns a library for this processor.
fn library() -> String {
    std::env::current_exe().unwrap().to_str().unwrap().to_owned()
}

fn asked_of(notes: &Mutex<Vec<Request>>) -> Vec<Command> {
    notes.lock().unwrap().iter().map(Request::command).collect()
}

fn dump_in(folder: &Path, kind: DumpType) -> CoreDump {
    CoreDump::new(folder.join("x.dmp").to_str().unwrap(), kind)
}

#[tokio::test]
async fn dumps_use_the_newest_command_and_their_file_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    for (n, newest) in DumpForm::NEWEST_FIRST.into_iter().enumerate() {
        // A file that existed before is not a proof.
        let (peer, asked) = runtime(newest, Some(1000 + n));
        let written = peer.client().dump(&dump_in(folder.path(), DumpType::MINI)).await.unwrap();
        assert_eq!((written.form, written.bytes), (newest, Some(1000 + n as u64)));
        let expected: Vec<_> = DumpForm::NEWEST_FIRST[..=n].iter().map(|form| form.command()).collect();
        assert_eq!(asked_of(&asked), expected);
    }
}

#[tokio::test]
async fn a_missing_dump_is_an_error_despite_a_success_reply() {
    let folder = tempfile::tempdir().unwrap();
    let dump = dump_in(folder.path(), DumpType::MINI);
    let (peer, _) = runtime(DumpForm::GenerateCoreDump3, None);
    let error = peer.client().dump(&dump).await.unwrap_err();
    assert!(matches!(&error, Error::NoDump { path } if *path == dump.path), "{error}");
    // An older file does not count.
    std::fs::write(&dump.path, "old").unwrap();
    let error = peer.client().dump(&dump).await.unwrap_err();
    assert!(matches!(error, Error::NoDump { .. }), "{error}");
    // The name of the file is unknown.
    let anywhere = CoreDump::new(format!("{}/%p", folder.path().display()), DumpType::MINI);
    assert_eq!(peer.client().dump(&anywhere).await.unwrap().bytes, None);
}

#[tokio::test]
async fn flags_for_newer_runtimes_are_not_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let (peer, asked) = runtime(DumpForm::GenerateCoreDump, Some(1));
    let dump = dump_in(folder.path(), DumpType::FULL).with_flags(DumpFlags::CRASH_REPORT);
    let error = peer.client().dump(&dump).await.unwrap_err();
    let expected = "the request was not sent: dump flags: 0x4 need GenerateCoreDump2, since .NET 6";
    assert_eq!(error.to_string(), expected);
    assert_eq!(asked_of(&asked).len(), 2);
    peer.client().dump(&dump.with_flags(DumpFlags::LOGGING)).await.unwrap();
}

#[tokio::test]
async fn a_text_of_a_failed_dump_is_shown() {
    let error = ErrorReply { hresult: Hresult::E_FAIL, message: Some("[createdump] no room\n".into()) };
    let peer = Peer::answering(error.to_bytes().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let error = peer.client().dump(&dump_in(folder.path(), DumpType::MINI)).await.unwrap_err();
    assert!(error.to_string().ends_with("[createdump] no room"), "{error}");
}

#[tokio::test]
async fn a_file_that_the_target_could_not_load_as_a_profiler_is_not_sent() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("p.so");
    let attach = |path: &Path| {
        let path = path.to_str().unwrap().to_owned();
        AttachProfiler { class_id: Uuid::nil(), path, timeout_ms: 0, client_data: Vec::new() }
    };
    let (peer, asked) = runtime(DumpForm::GenerateCoreDump3, None);
    let refused = async |path: &Path| match peer.client().attach_profiler(&attach(path)).await {
        Err(Error::Objection { objection, .. }) => objection,
        other => panic!("{other:?}"),
    };
    assert!(matches!(refused(&file).await, Objection::Missing { what: "profiler", .. }));
    assert!(matches!(refused(folder.path()).await, Objection::NotAFile { .. }));
    std::fs::write(&file, "text").unwrap();
    assert!(matches!(refused(&file).await, Objection::NotALibrary { .. }));
    let mut bytes = std::fs::read(library()).unwrap();
    // A library for another processor, and then a file that is not a library.
    bytes[18..20].copy_from_slice(&[243, 0]);
    std::fs::write(&file, &bytes).unwrap();
    let objection = refused(&file).await;
    assert!(objection.to_string().contains("is built for riscv64, but the target runs on "), "{objection}");
    bytes[16] = 2;
    std::fs::write(&file, &bytes).unwrap();
    assert!(matches!(refused(&file).await, Objection::NotALibrary { .. }));
    assert_eq!(asked_of(&asked), []);
}

#[tokio::test]
async fn every_command_is_sent_as_requested() {
    let (peer, asked) = runtime(DumpForm::GenerateCoreDump3, None);
    let client = peer.client();
    let class_id = Uuid::from_u128(7);
    // The target itself reports whether it finds this file.
    let attach = AttachProfiler { class_id, path: "libp.so".into(), timeout_ms: 5000, client_data: vec![1] };
    let startup = StartupProfiler { class_id, path: library() };
    client.attach_profiler(&attach).await.unwrap();
    client.startup_profiler(&startup).await.unwrap();
    client.set_environment_variable("A", Some("")).await.unwrap();
    client.set_environment_variable("A", None).await.unwrap();
    client.enable_perf_map(PerfMapType::PerfMap).await.unwrap();
    client.disable_perf_map().await.unwrap();
    let mut requests = asked.lock().unwrap().clone();
    requests.retain(|request| !matches!(request, Request::ProcessInfo(_)));
    assert_eq!(
        requests,
        [
            Request::AttachProfiler(attach),
            Request::StartupProfiler(startup),
            Request::SetEnvironmentVariable { name: "A".into(), value: Some(String::new()) },
            Request::SetEnvironmentVariable { name: "A".into(), value: None },
            Request::EnablePerfMap(PerfMapType::PerfMap),
            Request::DisablePerfMap,
        ]
    );
}

/// A runtime that rejects a profiler `times` times before it waits at startup.
fn not_waiting_yet(times: usize) -> Peer {
    Peer::new(move |n, mut stream| async move {
        let request = read_request(&mut stream).await.unwrap();
        let refused = ErrorReply::from(Hresult::E_INVALIDARG).to_bytes().unwrap();
        let answer = if n < times { refused } else { ok(&request, &Reply::Done) };
        stream.write_all(&answer).await.unwrap();
    })
}

#[tokio::test(start_paused = true)]
async fn a_startup_profiler_is_retried_until_the_runtime_waits() {
    let startup = StartupProfiler { class_id: Uuid::from_u128(7), path: library() };
    let peer = not_waiting_yet(3);
    peer.client().startup_profiler(&startup).await.unwrap();
    assert_eq!(peer.connections(), 4);
    // A runtime that always rejects it.
    let peer = not_waiting_yet(usize::MAX);
    let client = peer.client().with_timeouts(Timeouts::all(Duration::from_millis(100)));
    let error = client.startup_profiler(&startup).await.unwrap_err();
    assert_eq!(error.hresult(), Some(Hresult::E_INVALIDARG), "{error}");
}

/// Returns the error of a request that must not arrive, not even as a raw request.
async fn objection(request: Request) -> Objection {
    let (peer, asked) = runtime(DumpForm::GenerateCoreDump3, Some(1));
    let command = request.command();
    let error = peer.client().request(request).await.unwrap_err();
    assert!(!asked_of(&asked).contains(&command), "{error}");
    match error {
        Error::Objection { command: about, objection } if about == command => objection,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn harmful_requests_are_not_sent() {
    let folder = tempfile::tempdir().unwrap();
    let hook = |path: &Path| Request::ApplyStartupHook { path: path.to_str().unwrap().into() };
    let text = folder.path().join("text.dll");
    std::fs::write(&text, "not an assembly").unwrap();
    assert!(matches!(objection(hook(&text)).await, Objection::NotAnAssembly { .. }));
    assert!(matches!(objection(hook(&folder.path().join("none"))).await, Objection::Missing { .. }));
    assert!(matches!(objection(hook(Path::new("Simple"))).await, Objection::Relative { .. }));
    assert!(matches!(objection(hook(folder.path())).await, Objection::NotAFile { .. }));
    let form = DumpForm::GenerateCoreDump3;
    let dump = |path: PathBuf| Request::GenerateCoreDump {
        form,
        dump: CoreDump::new(path.to_str().unwrap(), DumpType::FULL),
    };
    assert!(matches!(objection(dump("x.dmp".into())).await, Objection::Relative { .. }));
    assert!(matches!(objection(dump(folder.path().join("a/b"))).await, Objection::Missing { .. }));
    assert!(matches!(objection(dump(text.join("b"))).await, Objection::NotAFolder { .. }));
    let startup = |path: PathBuf| {
        let path = path.to_str().unwrap().into();
        Request::StartupProfiler(StartupProfiler { class_id: Uuid::nil(), path })
    };
    assert!(matches!(objection(startup(folder.path().join("p.so"))).await, Objection::Missing { .. }));
    assert!(matches!(objection(startup("p.so".into())).await, Objection::Relative { .. }));
}

/// The well-formed requests that crashed a real runtime.
#[tokio::test]
async fn recorded_requests_that_crashed_a_runtime_are_not_sent() {
    let Some(shared) = shared_dir() else {
        return Skip::because("there are no recordings of the protocol (RUNTAP_SHARED)").report();
    };
    let mut refused = 0;
    for version in ["8.0.33", "9.0.22", "10.0.12"] {
        let text = std::fs::read_to_string(shared.join(format!("data/ipc/vectors-{version}.jsonl"))).unwrap();
        for line in text.lines() {
            let row: serde_json::Value = serde_json::from_str(line).unwrap();
            let died = row["target"].as_str().unwrap().starts_with("died");
            let hex = row["c2s"].as_str().unwrap();
            if !died || hex.contains('.') {
                continue;
            }
            let bytes: Vec<u8> = (0..hex.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(hex.get(at..at + 2).unwrap(), 16).unwrap())
                .collect();
            let mut server = server::Server::with_user_events();
            server.handle_bytes(&bytes);
            server.handle_eof();
            // The others cannot be built: `runtap-diag-proto` has that test.
            if let Some(server::Event::Request(request)) = server.poll_event() {
                objection(request).await;
                refused += 1;
            }
        }
    }
    assert_eq!(refused, 4);
}

#[tokio::test(start_paused = true)]
async fn dumps_and_profilers_have_their_own_time_limits() {
    let folder = tempfile::tempdir().unwrap();
    let peer = Peer::new(|_, mut stream| async move {
        let request = read_request(&mut stream).await.unwrap();
        sleep(Duration::from_mins(50)).await;
        if let Request::GenerateCoreDump { dump, .. } = &request {
            std::fs::write(&dump.path, "core").unwrap();
        }
        let _ = stream.write_all(&ok(&request, &Reply::Done)).await;
    });
    let client = peer.client();
    assert_eq!(client.dump(&dump_in(folder.path(), DumpType::FULL)).await.unwrap().bytes, Some(4));
    let profiler =
        AttachProfiler { class_id: Uuid::nil(), path: library(), timeout_ms: 0, client_data: Vec::new() };
    let began = Instant::now();
    let error = client.attach_profiler(&profiler).await.unwrap_err();
    assert!(matches!(error, Error::Busy { waited, .. } if waited == client.timeouts().load), "{error}");
    assert!(began.elapsed() < 2 * client.timeouts().load);
}
