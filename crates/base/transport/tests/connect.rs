//! Connecting and listening over real sockets.

#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use runtap_transport::{BindError, BindOptions, ConnectFailure, Endpoint, Listener};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Long enough never to be reached.
const PATIENT: Duration = Duration::from_mins(1);
const SHORT: Duration = Duration::from_millis(20);

fn temp_dir() -> TempDir {
    tempfile::Builder::new().prefix("rt").tempdir().unwrap()
}

/// A socket file whose listener is gone, as a killed process leaves it.
fn stale(path: &Path) {
    drop(UnixListener::bind(path).unwrap());
}

/// A path of exactly `length` bytes in a fresh folder below `dir`.
fn path_of_length(dir: &Path, length: usize) -> PathBuf {
    let mut path = dir.to_owned();
    while length - path.as_os_str().len() > 60 {
        path.push("d".repeat(40));
    }
    fs::create_dir_all(&path).unwrap();
    let name = length - path.as_os_str().len() - 1;
    path.push("s".repeat(name));
    assert_eq!(path.as_os_str().len(), length);
    path
}

async fn echoes(listener: &Listener, endpoint: &Endpoint) {
    let mut client = endpoint.connect(PATIENT).await.unwrap();
    let (mut server, peer) = listener.accept().await.unwrap();
    assert_eq!(peer.pid, Some(std::process::id()));
    client.write_all(b"ping").await.unwrap();
    let mut got = [0; 4];
    server.read_exact(&mut got).await.unwrap();
    assert_eq!(&got, b"ping");
    server.write_all(b"pong").await.unwrap();
    client.read_exact(&mut got).await.unwrap();
    assert_eq!(&got, b"pong");
}

#[tokio::test]
async fn missing_stale_and_non_sockets_are_distinguished() {
    let dir = temp_dir();
    let at = |name: &str| Endpoint::unix(dir.path().join(name));

    let error = at("none").connect(PATIENT).await.unwrap_err();
    assert!(matches!(error.reason, ConnectFailure::NotFound), "{error}");
    let error = at("none/none").connect(PATIENT).await.unwrap_err();
    assert!(matches!(error.reason, ConnectFailure::NotFound), "{error}");
    let error = Endpoint::unix("").connect(PATIENT).await.unwrap_err();
    assert!(matches!(error.reason, ConnectFailure::NotFound), "{error}");

    stale(&dir.path().join("stale"));
    let error = at("stale").connect(PATIENT).await.unwrap_err();
    assert!(matches!(error.reason, ConnectFailure::Refused), "{error}");
    assert!(error.to_string().contains("stale: no process is listening"), "{error}");
    let error = at("stale").connect_blocking(PATIENT).unwrap_err();
    assert!(matches!(error.reason, ConnectFailure::Refused), "{error}");

    fs::write(dir.path().join("file"), "").unwrap();
    let error = at("file").connect(PATIENT).await.unwrap_err();
    assert!(matches!(error.reason, ConnectFailure::NoSocket), "{error}");
    let error = at("file/below").connect(PATIENT).await.unwrap_err();
    assert!(matches!(error.reason, ConnectFailure::NotFound), "{error}");
}

#[tokio::test]
async fn a_full_queue_is_busy_and_served_once_it_empties() {
    let dir = temp_dir();
    let path = dir.path().join("s");
    let server = UnixListener::bind(&path).unwrap();
    rustix::net::listen(&server, 0).unwrap();
    let endpoint = Endpoint::unix(&path);
    let mut waiting = Vec::new();
    let busy = loop {
        match endpoint.connect(SHORT).await {
            Ok(stream) => waiting.push(stream),
            Err(error) => break error,
        }
        assert!(waiting.len() < 100, "the queue never fills");
    };
    assert!(matches!(busy.reason, ConnectFailure::Busy { waited } if waited >= SHORT), "{busy}");
    let error = endpoint.connect_blocking(SHORT).unwrap_err();
    assert!(matches!(error.reason, ConnectFailure::Busy { .. }), "{error}");

    let patient = tokio::spawn(async move { endpoint.connect(PATIENT).await });
    tokio::task::yield_now().await;
    server.accept().unwrap();
    patient.await.unwrap().unwrap();
}

#[tokio::test]
async fn paths_longer_than_the_kernel_takes() {
    let dir = temp_dir();
    for length in [106, 107, 108, 109, 400] {
        let path = path_of_length(dir.path(), length);
        let listener = Listener::bind(&path, BindOptions::default()).unwrap();
        assert_eq!(listener.path(), path);
        echoes(&listener, &listener.endpoint()).await;
        let client = listener.endpoint().connect_blocking(PATIENT).unwrap();
        assert!(client.peer_addr().is_ok(), "{length}");
        drop(listener);
        assert!(!path.exists(), "{length}");
    }
    let error = Endpoint::unix(path_of_length(dir.path(), 300)).connect(PATIENT).await.unwrap_err();
    assert!(matches!(error.reason, ConnectFailure::NotFound), "{error}");
}

#[tokio::test]
async fn the_blocking_client_really_blocks() {
    let dir = temp_dir();
    let listener = Listener::bind(dir.path().join("s"), BindOptions::default()).unwrap();
    let client = listener.endpoint().connect_blocking(PATIENT).unwrap();
    let flags = rustix::fs::fcntl_getfl(&client).unwrap();
    assert!(!flags.contains(rustix::fs::OFlags::NONBLOCK));
}

#[tokio::test]
async fn a_listener_is_private_and_cleans_up() {
    let dir = temp_dir();
    let path = dir.path().join("s");
    let listener = Listener::bind(&path, BindOptions::default()).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
    echoes(&listener, &listener.endpoint()).await;
    drop(listener);
    assert!(!path.exists());
}

/// Whatever the umask takes from new files.
#[tokio::test]
async fn a_listener_can_let_everybody_in() {
    let dir = temp_dir();
    let path = dir.path().join("s");
    let options = BindOptions::default().everybody(true);
    let listener = Listener::bind(&path, options).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o666);
    echoes(&listener, &listener.endpoint()).await;
    // A link in its place is not followed.
    let other = dir.path().join("other");
    fs::write(&other, "").unwrap();
    let mode = fs::metadata(&other).unwrap().permissions().mode();
    std::os::unix::fs::symlink(&other, dir.path().join("link")).unwrap();
    assert!(Listener::bind(dir.path().join("link"), options).is_err());
    assert_eq!(fs::metadata(&other).unwrap().permissions().mode(), mode);
}

#[tokio::test]
async fn a_listener_leaves_its_successor_alone() {
    let dir = temp_dir();
    let path = dir.path().join("s");
    let first = Listener::bind(&path, BindOptions::default()).unwrap();
    fs::remove_file(&path).unwrap();
    let second = Listener::bind(&path, BindOptions::default()).unwrap();
    first.remove_file();
    drop(first);
    echoes(&second, &second.endpoint()).await;
}

#[tokio::test]
async fn only_stale_sockets_are_replaced() {
    let dir = temp_dir();
    let path = dir.path().join("s");
    let replace = BindOptions::default().replace_stale(true);

    let living = UnixListener::bind(&path).unwrap();
    let error = Listener::bind(&path, replace).unwrap_err();
    assert!(matches!(error, BindError::InUse { .. }), "{error}");
    UnixStream::connect(&path).unwrap();

    drop(living);
    let error = Listener::bind(&path, BindOptions::default()).unwrap_err();
    assert!(matches!(error, BindError::InUse { .. }), "{error}");
    let listener = Listener::bind(&path, replace).unwrap();
    echoes(&listener, &listener.endpoint()).await;
    drop(listener);

    fs::write(&path, "precious").unwrap();
    let error = Listener::bind(&path, replace).unwrap_err();
    assert!(matches!(error, BindError::InUse { .. }), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");

    let error = Listener::bind(dir.path().join("no/such/s"), replace).unwrap_err();
    assert!(matches!(error, BindError::Io { .. }), "{error}");
}
