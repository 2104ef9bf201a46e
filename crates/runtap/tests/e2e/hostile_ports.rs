//! A hostile user at the ports of root's tools, which accept every user because a command may run programs as another
//! user. Requires root. The attacker is user `nobody`, on threads of this process: the kernel uses the user of the connecting
//! thread.

use std::collections::VecDeque;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use runtap_diag_proto::{Advertise, Uuid};
use runtap_testkit::{RealRuntime, Running, Skip, eventually};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Uid;

use crate::common::{all_have_ended, command, count_of, counts, port_of_those_with, shell, trace_of};
use crate::real_doctor_rights::{NOBODY, ProgramCopy};

on_the_newest_runtime!(real_floods_leave_room_for_the_tree);

/// Changes the user of this thread to the attacker's.
fn become_nobody() {
    let nobody = Uid::from_raw(65534);
    rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
}

/// Runs a function as user `nobody`.
fn as_nobody<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    let act = || {
        become_nobody();
        act()
    };
    thread::scope(|scope| scope.spawn(act).join().unwrap())
}

/// Returns a place for an attacker; `None` skips the test.
fn place() -> Option<ProgramCopy> {
    ProgramCopy::new().map_err(|skip| skip.report()).ok()
}

/// Connects and claims to be the runtime with this cookie.
pub(crate) fn connect_as_runtime(port: &Path, cookie: u64) -> UnixStream {
    let mut stream = UnixStream::connect(port).unwrap();
    let advertise = Advertise { runtime_cookie: Uuid::from_u128(cookie.into()), process_id: 1 };
    stream.write_all(&advertise.to_bytes()).unwrap();
    stream
}

/// Reads command set, command and payload of a request; `None` if the connection was closed.
pub(crate) fn request(stream: &mut UnixStream) -> Option<(u8, u8, Vec<u8>)> {
    let mut header = [0; 20];
    stream.read_exact(&mut header).ok()?;
    assert!(header.starts_with(b"DOTNET_IPC_V1\0"), "{header:x?}");
    let length = usize::from(u16::from_le_bytes([header[14], header[15]]));
    let mut payload = vec![0; length - header.len()];
    stream.read_exact(&mut payload).ok()?;
    Some((header[16], header[17], payload))
}

/// Answers with OK.
fn answer(stream: &mut UnixStream, payload: &[u8]) {
    let length = u16::try_from(20 + payload.len()).unwrap();
    let mut reply = b"DOTNET_IPC_V1\0".to_vec();
    reply.extend(length.to_le_bytes());
    reply.extend([0xFF, 0, 0, 0]);
    stream.write_all(&[reply, payload.to_vec()].concat()).unwrap();
}

const COLLECT: u8 = 2;
/// Command set and number.
const SET_VARIABLE: (u8, u8) = (4, 3);
pub(crate) const RESUME: (u8, u8) = (4, 1);

/// Root's variable for ports, which is sent to recorded processes.
const SECRET: &str = "/run/secret.port,nosuspend";

/// `runtap trace` by root, of a command that waits.
struct AttackedTrace {
    tracing: Running,
    port: PathBuf,
    gate: PathBuf,
}

impl AttackedTrace {
    fn start(place: &ProgramCopy, options: &[&str]) -> Self {
        let gate = place.path().join("gate");
        let mut waiting = shell("until [ -e \"$1\" ]; do sleep 0.02; done", [gate.as_os_str()]);
        waiting.env("TMPDIR", place.path()).env("DOTNET_DiagnosticPorts", SECRET);
        let file = place.path().join("x.nettrace");
        let options = options.iter().copied().chain(["-o", file.to_str().unwrap()]);
        let tracing = Running::start(trace_of(options, &waiting));
        Self { tracing, port: port_of_those_with(place.path()), gate }
    }
}

/// Returns whether nothing arrives during the time in which an attack would have succeeded.
fn receives_nothing(stream: &UnixStream) -> bool {
    let limit = Timespec { tv_sec: 0, tv_nsec: 300_000_000 };
    poll(&mut [PollFd::new(stream, PollFlags::IN)], Some(&limit)).unwrap() == 0
}

/// Checks that the only request on a connection until it is closed is `ResumeRuntime`.
#[track_caller]
fn is_only_told_to_go_on(mut stream: UnixStream) {
    while let Some((set, number, payload)) = request(&mut stream) {
        assert_eq!(((set, number), payload.len()), (RESUME, 0));
    }
}

/// A process that claims to be an already connected one does not receive the requests for it.
#[test]
fn the_cookie_of_another_process_is_useless() {
    let Some(place) = place() else { return };
    let AttackedTrace { tracing, port, gate } = AttackedTrace::start(&place, &[]);
    let mut victim = connect_as_runtime(&port, 7);
    assert_eq!(request(&mut victim).unwrap().0, COLLECT);
    let mut thief = as_nobody(|| connect_as_runtime(&port, 7));
    let thief_again = as_nobody(|| connect_as_runtime(&port, 7));
    // The older of two connections receives the request, or is closed.
    if let Some((set, number, _)) = request(&mut thief) {
        assert_eq!((set, number), RESUME);
        answer(&mut thief, &[]);
    }
    answer(&mut victim, &1u64.to_le_bytes());
    receives_nothing(&thief_again);

    let mut told = connect_as_runtime(&port, 7);
    let (set, number, payload) = request(&mut told).unwrap();
    assert_eq!((set, number), SET_VARIABLE);
    let text: Vec<u16> = payload.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
    assert!(String::from_utf16_lossy(&text).contains(SECRET));
    answer(&mut told, &[]);
    let mut resumed = connect_as_runtime(&port, 7);
    assert_eq!(request(&mut resumed).map(|(set, number, _)| (set, number)), Some(RESUME));
    answer(&mut resumed, &[]);
    drop(victim);
    fs::write(gate, "").unwrap();
    tracing.wait();
    is_only_told_to_go_on(thief);
    is_only_told_to_go_on(thief_again);
}

/// Any number of connections with any messages: they are resumed, and the user is warned once.
#[test]
fn strangers_are_resumed_and_get_no_other_request() {
    let Some(place) = place() else { return };
    let AttackedTrace { tracing, port, gate } = AttackedTrace::start(&place, &[]);
    for cookie in 0..500 {
        let mut stranger = as_nobody(|| connect_as_runtime(&port, cookie));
        if cookie % 10 == 0 {
            assert_eq!(request(&mut stranger).map(|(set, number, _)| (set, number)), Some(RESUME));
            if cookie % 20 == 0 {
                answer(&mut stranger, &[]);
            }
        }
    }
    fs::write(gate, "").unwrap();
    let finished = tracing.wait();
    finished.says("of user 65534 connected").says("nothing was recorded");
    let lines = finished.stderr.lines().count();
    assert!(lines < 10, "{lines} lines: {finished}");
}

/// Neither a process that does not answer, nor one that has the path in its environment.
#[test]
fn strangers_do_not_keep_a_recording_from_its_end() {
    let Some(place) = place() else { return };
    let AttackedTrace { tracing, port, gate } = AttackedTrace::start(&place, &["--children"]);
    let mut silent = as_nobody(|| connect_as_runtime(&port, 9));
    let asked = request(&mut silent);
    let mut holder = Command::new(NOBODY[0]);
    holder.args(&NOBODY[1..]).args(["cat", "-"]).env("DOTNET_DiagnosticPorts", &port);
    let mut holder = holder.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let process = format!("/proc/{}", holder.id());
    // The kernel sets a program's name shortly before its environment.
    eventually("the program with the port in its environment", || {
        let named = fs::read_to_string(format!("{process}/comm")).is_ok_and(|name| name == "cat\n");
        let has_it = fs::read(format!("{process}/environ"))
            .is_ok_and(|environment| String::from_utf8_lossy(&environment).contains(port.to_str().unwrap()));
        (named && has_it).then_some(())
    });
    fs::write(gate, "").unwrap();
    let finished = tracing.wait();
    assert!(!finished.stderr.contains("stays in the background"), "{finished}");
    assert_eq!(asked.map(|(set, number, _)| (set, number)), Some(RESUME));
    assert!(!port.exists());
    drop(silent);
    holder.kill().unwrap();
    holder.wait().unwrap();
}

/// The mode of a private port may be changed manually; a process that connects through it is not a target.
#[test]
fn a_waiting_verb_accepts_no_program_of_another_user() {
    let Some(place) = place() else { return };
    let port = place.path().join("port");
    let listen = format!("{},listen", port.display());
    let waiting = Running::start(command(["info", "--diagnostic-port", &listen]));
    eventually("the socket", || port.exists().then_some(()));
    fs::set_permissions(&port, fs::Permissions::from_mode(0o666)).unwrap();
    // Closed, perhaps before the Advertise message was sent. The file exists shortly before the listener.
    let mut stranger = as_nobody(|| eventually("the listener", || UnixStream::connect(&port).ok()));
    assert_eq!(stranger.read(&mut [0]).unwrap_or(0), 0);
    let mut demo = command(["demo", "serve", "--seconds", "600"]);
    demo.env("TMPDIR", place.path()).env("DOTNET_DiagnosticPorts", &port);
    let demo = Running::start(demo);
    let told = waiting.wait();
    told.expect_code(0).says("of user 65534 connected and was disconnected");
    assert!(told.text().contains(&demo.id().to_string()), "{told}");
}

/// The reverse: a program of root does not identify itself to a tool of another user.
#[test]
fn a_program_does_not_identify_itself_to_a_foreign_tool() {
    let Some(place) = place() else { return };
    let port = place.path().join("port");
    let tool = as_nobody(|| UnixListener::bind(&port).unwrap());
    fs::set_permissions(&port, fs::Permissions::from_mode(0o777)).unwrap();
    let mut demo = command(["demo", "serve", "--seconds", "600"]);
    demo.env("TMPDIR", place.path()).env("DOTNET_DiagnosticPorts", format!("{},nosuspend", port.display()));
    let demo = Running::start(demo);
    for _ in 0..2 {
        let (mut connected, _) = tool.accept().unwrap();
        assert_eq!(connected.read(&mut [0; 34]).unwrap(), 0, "it has said who it is");
    }
    demo.signal(runtap_testkit::Signal::INT);
    demo.wait().says("of user 65534").says(port.to_str().unwrap());
}

/// The behavior of a flooding thread, by connection.
fn flood(port: &Path, kind: u64, connections: &AtomicU64, over: &AtomicBool) {
    become_nobody();
    let mut held = VecDeque::new();
    while !over.load(Ordering::Relaxed) {
        // Closed before the Advertise message was sent, or the port is gone.
        let Ok(mut stream) = UnixStream::connect(port) else { continue };
        let n = connections.fetch_add(1, Ordering::Relaxed);
        let cookie = Uuid::from_u128(u128::from(if kind == 0 { 7 } else { n }));
        let advertise = Advertise { runtime_cookie: cookie, process_id: n }.to_bytes();
        let said = match kind {
            0 | 1 => stream.write_all(&advertise),
            2 => stream.write_all(&advertise[..33]),
            _ => Ok(()),
        };
        if said.is_ok() && !(kind == 1 && n.is_multiple_of(2)) {
            held.push_back(stream);
        }
        if held.len() > 400 {
            held.pop_front();
        }
    }
}

/// With 256 descriptors, while four threads of user `nobody` use as many connections as possible.
fn real_floods_leave_room_for_the_tree(runtime: &RealRuntime) -> Result<(), Skip> {
    let place = ProgramCopy::new()?;
    let gate = place.path().join("gate");
    let children = runtime.program("children", &["0.3"])?.command();
    let words = [gate.as_os_str(), children.get_program()].into_iter().chain(children.get_args());
    let mut gated = shell("until [ -e \"$1\" ]; do sleep 0.02; done; shift; exec \"$@\"", words);
    gated.envs(children.get_envs().filter_map(|(name, value)| Some((name, value?))));
    gated.env("TMPDIR", place.path());
    let file = place.path().join("x.nettrace");
    let trace = trace_of(["--children", "--format", "json", "-o", file.to_str().unwrap()], &gated);
    let words = std::iter::once(trace.get_program()).chain(trace.get_args());
    let mut limited = shell("ulimit -n 256; exec \"$@\"", words);
    limited.envs(trace.get_envs().filter_map(|(name, value)| Some((name, value?))));
    limited.env_remove("DOTNET_DiagnosticPorts");
    let tracing = Running::start(limited);
    let port = port_of_those_with(place.path());

    let (connections, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let finished = thread::scope(|scope| {
        for kind in 0..4 {
            let (port, connections, over) = (&port, &connections, &over);
            scope.spawn(move || flood(port, kind, connections, over));
        }
        eventually("the flood", || (connections.load(Ordering::Relaxed) > 2000).then_some(()));
        fs::write(&gate, "").unwrap();
        let finished = tracing.wait();
        over.store(true, Ordering::Relaxed);
        finished
    });
    let summary = finished.expect_code(0).json();
    let processes = summary["processes"].as_array().unwrap();
    assert_eq!(processes.len(), crate::real_launch::TREE, "{summary:#}");
    for process in processes {
        assert_eq!((&process["partial"], &process["lost"]), (&serde_json::Value::Null, &0.into()));
        let counts = counts(process["outputs"][0]["path"].as_str().unwrap().as_ref(), 0);
        assert_eq!(count_of(&counts, "Microsoft-Windows-DotNETRuntime", 187), 1, "its first event");
    }
    all_have_ended(place.path());
    Ok(())
}
