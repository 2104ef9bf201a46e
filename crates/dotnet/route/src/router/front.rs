//! The tools' side: a socket to which tools connect, or a port of a tool to which the router connects.

use std::sync::Arc;
use std::time::Duration;

use runtap_diag_proto::Advertise;
use runtap_diag_server::connect_forever;
use runtap_os::my_uid;
use runtap_transport::{Endpoint, Peer, Stream};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::board::RuntimeRegistry;
use super::crowd::{ClientPool, Origin, Progress};
use super::link::{Acceptor, Link};
use super::notice::Notice;
use super::relay::Relay;

/// The pause if the system is out of descriptors.
const OUT_OF_DESCRIPTORS: Duration = Duration::from_millis(100);

/// Where the tools are.
#[derive(Debug)]
#[non_exhaustive]
pub enum Front {
    /// Tools connect to this address.
    Listen(Acceptor),
    /// A tool listens for runtimes. The router connects to it once per runtime.
    Connect(Endpoint),
}

impl Front {
    /// Serves tools forever.
    pub(crate) async fn serve(&self, relay: &Relay, board: Option<&Arc<RuntimeRegistry>>) {
        match (self, board) {
            (Self::Listen(gate), _) => listen(gate, relay).await,
            (Self::Connect(tool), None) => connect_for_one(tool, relay).await,
            (Self::Connect(tool), Some(board)) => connect_for_each(tool, relay, board).await,
        }
    }
}

/// Serves tools that connect.
async fn listen(gate: &Acceptor, relay: &Relay) {
    let mut crowd =
        ClientPool::new(relay.limits().connections, relay.limits().silent, relay.reporter().clone());
    loop {
        let (link, who) = match gate.accept().await {
            Ok(accepted) => accepted,
            Err(_out_of_descriptors) => {
                crowd.disconnect_one();
                sleep(OUT_OF_DESCRIPTORS).await;
                continue;
            }
        };
        relay.reporter().connection();
        let origin = Origin::of_link(&link);
        let permit = crowd.admit().await;
        let progress = Progress::default();
        let (serving, its) = (relay.clone(), progress.clone());
        let task = relay.spawn(async move {
            serving.serve(link, &who, None, &its, || {}).await;
            drop(permit);
        });
        crowd.enter(task, progress, origin);
    }
}

/// Connects to the tool on behalf of a runtime that listens, while the runtime can be reached.
async fn connect_for_one(tool: &Endpoint, relay: &Relay) {
    loop {
        let advertise = relay.identify_patiently().await;
        // Another runtime may be there by then, with another cookie.
        connect_tool(tool, advertise, relay).await;
    }
}

/// Connects to the tool on behalf of each runtime that connects, when it waits for a request.
async fn connect_for_each(tool: &Endpoint, relay: &Relay, board: &Arc<RuntimeRegistry>) {
    let mut arrivals = board.arrivals();
    let mut connecting = JoinSet::new();
    loop {
        tokio::select! {
            Some(arrival) = arrivals.recv() => {
                let (tool, relay, board) = (tool.clone(), relay.clone(), Arc::clone(board));
                connecting.spawn(async move {
                    tokio::select! {
                        biased;
                        () = board.is_gone(&arrival) => {}
                        () = connect_tool(&tool, arrival.advertise, &relay) => {}
                    }
                });
            }
            Some(_ended) = connecting.join_next() => {}
        }
    }
}

/// Connects to the tool on behalf of a runtime, again after each request, while that runtime is connected.
async fn connect_tool(tool: &Endpoint, advertise: Advertise, relay: &Relay) {
    let gone = Arc::new(Notify::new());
    let mut told = None;
    let may_know = |peer: Peer| {
        let trusted = peer.uid == 0 || peer.uid == my_uid();
        if !trusted && told.replace(peer.uid) != Some(peer.uid) {
            relay.reporter().report(&Notice::ForeignTool { uid: peer.uid });
        }
        trusted
    };
    let serve = |stream: Stream| {
        let (relay, gone, cookie) = (relay.clone(), Arc::clone(&gone), advertise.runtime_cookie);
        async move {
            let (tell, free) = oneshot::channel();
            let serving = relay.clone();
            relay.reporter().connection();
            relay.spawn(async move {
                let free = || {
                    // The receiver is gone when the router stops.
                    let _ = tell.send(());
                };
                let progress = Progress::default();
                serving.serve(Link::Local(stream), "the tool", Some(cookie), &progress, free).await;
            });
            // An error means that the client has ended without an answer.
            let _ = free.await;
            if !relay.is_ready(cookie).await {
                gone.notify_one();
                // Otherwise the router would connect to the tool once more, without a runtime.
                std::future::pending::<()>().await;
            }
        }
    };
    tokio::select! {
        never = connect_forever(tool, advertise, may_know, serve) => match never {},
        () = gone.notified() => {}
    }
}
