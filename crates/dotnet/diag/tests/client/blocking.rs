//! The blocking client with a peer that runs on a separate thread.

use std::{os::unix::net::UnixListener, sync::mpsc, thread, time::Duration};

use runtap_diag::{Error, Reply, Request, Timeouts, Variable, blocking::Client};
use runtap_transport::Endpoint;
use tokio::{io::AsyncWriteExt, sync::oneshot};

use crate::support::{ID, Peer, Runtime, closed, ok, read_request, sample_config, sample_info};

/// Runs a peer until the returned value is dropped.
fn serve<T>(peer: impl FnOnce() -> (Endpoint, T) + Send + 'static) -> (Endpoint, oneshot::Sender<()>) {
    let (tell, ready) = mpsc::channel();
    let (end, ended) = oneshot::channel();
    thread::spawn(move || {
        let driver = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        driver.block_on(async {
            let (endpoint, _peer) = peer();
            tell.send(endpoint).unwrap();
            let _ = ended.await;
        });
    });
    (ready.recv().unwrap(), end)
}

fn runtime() -> (Endpoint, oneshot::Sender<()>) {
    serve(|| {
        let runtime = Runtime::new(Vec::new(), vec![1; 20_000_000]);
        (runtime.peer.client().endpoint().clone(), runtime)
    })
}

#[test]
fn all_commands_work_without_async() {
    let (endpoint, _running) = runtime();
    let client = Client::new(endpoint).unwrap();
    assert_eq!(client.process_info().unwrap(), sample_info());
    assert_eq!(client.environment().unwrap(), [Variable::new("A", "b")]);
    client.resume().unwrap();

    let mut session = client.start_session(&sample_config()).unwrap();
    assert_eq!(session.id(), ID);
    let stopping = session.stop();
    let mut len = 0;
    while let Some(chunk) = session.next_chunk().unwrap() {
        len += chunk.len();
    }
    stopping.wait().unwrap();
    assert_eq!(len, 20_000_000);
}

#[test]
fn one_thread_may_take_chunks_while_another_waits_for_the_stop() {
    let (endpoint, _running) = runtime();
    let client = Client::new(endpoint).unwrap();
    let mut session = client.start_session(&sample_config()).unwrap();
    let stopping = session.stop();
    drop(client);
    let taking = thread::spawn(move || {
        let mut len = 0;
        while let Some(chunk) = session.next_chunk().unwrap() {
            len += chunk.len();
        }
        len
    });
    stopping.wait().unwrap();
    assert_eq!(taking.join().unwrap(), 20_000_000);
}

#[test]
fn a_stop_is_sent_even_if_everything_is_dropped_at_once() {
    let (tell, stopped) = mpsc::channel();
    let (endpoint, _running) = serve(|| {
        let peer = Peer::new(move |_, mut stream| {
            let tell = tell.clone();
            async move {
                match read_request(&mut stream).await.unwrap() {
                    Request::StopTracing(id) => tell.send(id).unwrap(),
                    request => {
                        stream.write_all(&ok(&request, &Reply::SessionStarted(ID))).await.unwrap();
                        closed(&mut stream).await;
                    }
                }
            }
        });
        (peer.client().endpoint().clone(), peer)
    });
    let client = Client::new(endpoint).unwrap();
    let session = client.start_session(&sample_config()).unwrap();
    let stopping = session.stop();
    drop((client, session, stopping));
    assert_eq!(stopped.recv(), Ok(ID));
}

#[test]
fn a_silent_peer_is_busy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    // The kernel accepts the connection; the peer never reads.
    let _listener = UnixListener::bind(&path).unwrap();
    let limit = Duration::from_millis(20);
    let client = Client::new(Endpoint::unix(path)).unwrap().with_timeouts(Timeouts::all(limit));
    let error = client.process_info().unwrap_err();
    assert!(matches!(error, Error::Busy { waited, .. } if waited == limit), "{error}");
}
