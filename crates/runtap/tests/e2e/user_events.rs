//! `trace --user-events`: rejected before any request is sent if the kernel does not support it; otherwise the
//! descriptor of the kernel's file is passed to the target. What the kernel does with the events is not tested here,
//! since few kernels support them.

use std::fs;
use std::io::{IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use runtap_diag::{Reply, Request, SessionId};
use runtap_diag_proto::server::{Event, Server};
use runtap_testkit::{RealRuntime, Running, Signal, Skip, require, run};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};

use crate::common::{Target, folder, runtap};
use crate::real_doctor_rights::{ProgramCopy, child_of, contained};

on_each_runtime!(
    real_the_kernel_is_looked_at_first,
    real_another_file_does_no_harm,
    real_another_file_reaches_a_container,
);

const KERNEL: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
const GC: &str = "Microsoft-Windows-DotNETRuntime";
const ID: SessionId = SessionId(0x77);

/// Returns `runtap` where the kernel seems to have `user_events`: its file is an empty one.
fn with_a_file(arguments: &[&str], shown: &Path) -> Result<Command, Skip> {
    if !rustix::process::geteuid().is_root() {
        return Err(Skip::because("only root can make a mount namespace"));
    }
    if !Path::new(KERNEL[0]).is_dir() {
        return Err(Skip::because("this kernel has no tracing at all"));
    }
    let script = format!(
        "mount -t tmpfs none {0} && : >{0}/user_events_data && stat -c %i {0}/user_events_data >\"$1\" && shift && exec \"$@\"",
        KERNEL[0]
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "--", "sh", "-c", &script, "sh"]).arg(shown);
    command.arg(env!("CARGO_BIN_EXE_runtap")).args(arguments);
    Ok(command)
}

fn real_the_kernel_is_looked_at_first(runtime: &RealRuntime) -> Result<(), Skip> {
    if KERNEL.iter().any(|folder| Path::new(folder).join("user_events_data").exists()) {
        return Err(Skip::because("this kernel has user_events"));
    }
    let target = Target::start(runtime.program("spin", &["0.05", "1000", "--stdin"])?);
    let refused = runtap(["trace", "-p", &target.p(), "--clrevents", "gc", "--user-events", "dotnet_{pid}"]);
    refused.expect_code(1).says("this kernel has no user_events").says("CONFIG_USER_EVENTS");
    // A missing process is not even looked up.
    runtap(["trace", "-p", "4194304", "--clrevents", "gc", "--user-events", "x"])
        .expect_code(1)
        .says("kernel");
    target.still_answers();
    Ok(())
}

/// A runtime that supports the command checks the descriptor and rejects it; an older one does not know the command.
fn real_another_file_does_no_harm(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = Target::start(runtime.program("spin", &["0.05", "1000", "--stdin"])?);
    let shown = target.temp.path().join("inode");
    let p = target.p();
    let trace = ["trace", "-p", &p, "--clrevents", "gc", "--user-events", "dotnet_{pid}"];
    let refused = run(with_a_file(&trace, &shown)?);
    if runtime.major() >= 10 {
        refused.expect_code(4).says("0x80004005");
    } else {
        refused.expect_code(6).says("0x80131385");
    }
    target.still_answers();
    Ok(())
}

/// The descriptor is passed into another pid and mount namespace.
fn real_another_file_reaches_a_container(runtime: &RealRuntime) -> Result<(), Skip> {
    let place = ProgramCopy::new()?;
    let temp = place.path().join("inside");
    fs::create_dir(&temp).unwrap();
    let launch = runtime.program("spin", &["0.05", "1000", "--stdin"])?;
    let mut program = contained(launch, &["unshare"], &temp).spawn();
    let p = child_of(&program).to_string();
    let trace = ["trace", "-p", &p, "--clrevents", "gc", "--user-events", "dotnet_{pid}"];
    let refused = run(with_a_file(&trace, &place.path().join("inode"))?);
    if runtime.major() >= 10 {
        refused.expect_code(4).says("0x80004005");
    } else {
        refused.expect_code(6).says("0x80131385");
    }
    runtap(["info", &p]).expect_code(0);
    program.begin();
    program.wait_for("done");
    Ok(())
}

#[test]
fn usage_errors_are_reported_first() {
    let user_events =
        |spec: &str| runtap(["trace", "-p", "4194304", "--clrevents", "gc", "--user-events", spec]);
    user_events("Other=x").expect_code(2).says("Other, which is not recorded");
    user_events("a b").expect_code(2).says("is not a tracepoint name");
    user_events(&format!("{GC}:1,x=y")).expect_code(2).says("is not a list of event ids");
    runtap(["trace", "-p", "1", "--user-events", "x", "-o", "y"]).expect_code(2).says("--output");
    runtap(["trace", "--user-events", "x", "--", "true"]).expect_code(2);
}

/// Returns one message of a client, and the descriptor that follows it; `None` if the client sends nothing.
fn receive(stream: &mut UnixStream) -> Option<(Request, Option<OwnedFd>, Server)> {
    let mut server = Server::with_user_events();
    let mut descriptor = None;
    loop {
        if server.needs_descriptor() {
            let mut byte = [0];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut ancillary = RecvAncillaryBuffer::new(&mut space);
            let mut parts = [IoSliceMut::new(&mut byte)];
            rustix::net::recvmsg(&*stream, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC).unwrap();
            for message in ancillary.drain() {
                if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                    descriptor = descriptors.last();
                }
            }
            server.handle_descriptor();
        } else {
            let mut byte = [0];
            stream.read_exact(&mut byte).ok()?;
            server.handle_bytes(&byte);
        }
        if let Some(Event::Request(request)) = server.poll_event() {
            return Some((request, descriptor, server));
        }
    }
}

/// Simulates a runtime that starts such sessions, and reports the requests and the inode of the received file.
fn serve(listener: &UnixListener, tell: &Sender<(Request, Option<u64>)>) {
    let mut session = None;
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        let Some((request, descriptor, mut server)) = receive(&mut stream) else { continue };
        let inode = descriptor.map(|file| fs::File::from(file).metadata().unwrap().ino());
        let reply = match &request {
            Request::CollectUserEvents { .. } => Reply::SessionStarted(ID),
            Request::StopTracing(id) => Reply::SessionStopped(*id),
            Request::ResumeRuntime => Reply::Resumed,
            _ => continue,
        };
        server.reply(&reply).unwrap();
        while let Some(bytes) = server.poll_transmit() {
            stream.write_all(&bytes).unwrap();
        }
        if inode.is_some() {
            session = Some(stream);
        } else if matches!(request, Request::StopTracing(_)) {
            session = None;
        }
        if tell.send((request, inode)).is_err() {
            break;
        }
    }
    drop(session);
}

fn expect(asked: &Receiver<(Request, Option<u64>)>) -> (Request, Option<u64>) {
    asked.recv_timeout(runtap_testkit::HARD_LIMIT).expect("another request")
}

#[test]
fn the_file_is_handed_over_and_the_session_is_stopped() {
    let place = folder();
    let socket = place.path().join("socket");
    let shown = place.path().join("inode");
    let listener = UnixListener::bind(&socket).unwrap();
    let (tell, asked) = channel();
    thread::spawn(move || serve(&listener, &tell));
    let port = format!("{},connect", socket.display());
    let trace = [
        "trace",
        "--dport",
        &port,
        "--clrevents",
        "gc",
        "--format",
        "json",
        "--user-events",
        "dotnet_{pid}",
        "--user-events",
        "Microsoft-Windows-DotNETRuntime:1,2=collections",
    ];
    let trace = Running::start(require!(with_a_file(&trace, &shown)));
    let (request, inode) = expect(&asked);
    let Request::CollectUserEvents { config, .. } = request else { panic!("{request:?}") };
    assert_eq!(inode, fs::read_to_string(&shown).unwrap().trim().parse().ok(), "it is the kernel's file");
    let tracepoints = &config.providers[0].tracepoints;
    let me = std::process::id();
    assert_eq!(tracepoints.names().collect::<Vec<_>>(), [format!("dotnet_{me}").as_str(), "collections"]);
    assert_eq!(tracepoints.sets[0].ids, [1, 2]);
    assert_eq!(expect(&asked).0, Request::ResumeRuntime);
    trace.signal(Signal::INT);
    assert_eq!(expect(&asked).0, Request::StopTracing(ID));
    let ended = trace.wait();
    let summary = ended.expect_code(0).json();
    assert_eq!((&summary["schema"], &summary["pid"]), (&"runtap.trace/1".into(), &me.into()));
    assert_eq!(summary["tracepoints"][1], "collections");
}
