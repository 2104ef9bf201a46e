//! The server connects to ports of `runtap-diag`.

use std::path::Path;

use runtap_diag::ports::Port;
use runtap_diag::{Client, SessionConfig};
use runtap_diag_server::{Builder, ConnectPort, EventPipe, ProcessDescription, ServerThread};
use runtap_nettrace::Metadata;
use runtap_transport::Endpoint;
use tempfile::TempDir;

use crate::target::{Trace, all_of};

/// Starts a server that connects to the ports with these names in `folder`.
fn server(folder: &Path, pipe: &EventPipe, ports: &[(&str, bool)]) -> ServerThread {
    let builder = Builder::new(ProcessDescription::of_this_process()).pipe(pipe.clone());
    let connecting = |builder: Builder, (name, suspend): &(&str, bool)| {
        builder.connect_port(ConnectPort::new(folder.join(name)).suspend(*suspend))
    };
    ports.iter().fold(builder.path(folder.join("default")), connecting).spawn().unwrap()
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

#[tokio::test]
async fn the_program_starts_when_every_suspending_port_was_resumed() {
    let folder = folder();
    let server = server(folder.path(), &EventPipe::new(), &[("a", true), ("b", false), ("c", true)]);
    let dispatcher = server.dispatcher().clone();
    let mut ports = Vec::new();
    for name in ["a", "b", "c"] {
        let mut port = Port::bind(folder.path().join(name)).unwrap();
        let runtime = port.accept().await;
        assert_eq!(runtime.process_id(), u64::from(std::process::id()));
        assert_eq!(runtime.cookie(), dispatcher.description().info.runtime_cookie);
        assert_eq!(runtime.client().process_info().await.unwrap().runtime_cookie, runtime.cookie());
        ports.push((port, runtime));
    }
    // Over the default port, and a port that does not suspend: no effect.
    Client::new(Endpoint::unix(server.path())).resume().await.unwrap();
    ports[1].1.resume().await.unwrap();
    // Twice over one port: no effect either.
    ports[0].1.resume().await.unwrap();
    ports[0].1.resume().await.unwrap();
    assert!(dispatcher.is_suspended());
    ports[2].1.resume().await.unwrap();
    dispatcher.resumed().await;
    assert!(!dispatcher.is_suspended());
    tokio::task::spawn_blocking(move || {
        server.wait_until_resumed();
        server.shut_down();
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_session_over_a_port_keeps_its_connection() {
    let folder = folder();
    let pipe = EventPipe::new();
    let event = pipe.define(Metadata::new("P", 1, "E")).unwrap();
    let server = server(folder.path(), &pipe, &[("a", true)]);
    let mut port = Port::bind(folder.path().join("a")).unwrap();
    let runtime = port.accept().await;
    let client = runtime.client();
    let mut session = client.start_session(&SessionConfig::new(vec![all_of("P")])).await.unwrap();
    runtime.resume().await.unwrap();
    server.dispatcher().resumed().await;
    event.write_here(&[1]);
    client.process_info().await.unwrap();
    let stopping = session.stop();
    let mut bytes = Vec::new();
    while let Some(chunk) = session.next_chunk().await.unwrap() {
        bytes.extend_from_slice(&chunk);
    }
    stopping.await.unwrap();
    let trace = Trace::of_bytes(&bytes);
    assert!(trace.complete);
    assert_eq!(trace.of("P").len(), 1);
    tokio::task::spawn_blocking(move || server.shut_down()).await.unwrap();
}

/// The tool that should have resumed the program is killed; the next listener on the port can do so.
#[tokio::test]
async fn the_program_waits_for_the_successor_of_a_killed_tool() {
    let folder = folder();
    let server = server(folder.path(), &EventPipe::new(), &[("a", true)]);
    let mut port = Port::bind(folder.path().join("a")).unwrap();
    let cookie = port.accept().await.cookie();
    drop(port);
    assert!(server.dispatcher().is_suspended());
    let mut port = Port::bind(folder.path().join("a")).unwrap();
    let dispatcher = server.dispatcher().clone();
    let mut freed = Vec::new();
    port.resume_all(dispatcher.resumed(), |runtime, outcome| freed.push((runtime.cookie(), outcome.is_ok())))
        .await;
    assert_eq!(freed, [(cookie, true)]);
    tokio::task::spawn_blocking(move || server.shut_down()).await.unwrap();
}

#[tokio::test]
async fn the_default_port_can_suspend_too() {
    let folder = folder();
    let builder = Builder::new(ProcessDescription::of_this_process()).path(folder.path().join("default"));
    let server = builder.suspend(true).spawn().unwrap();
    assert!(server.dispatcher().is_suspended());
    Client::new(Endpoint::unix(server.path())).resume().await.unwrap();
    assert!(!server.dispatcher().is_suspended());
    tokio::task::spawn_blocking(move || server.shut_down()).await.unwrap();
}
