//! The side of the tools: a socket that they dial, or a port of a tool that is dialled.

use std::sync::Arc;
use std::time::Duration;

use runtap_diag_proto::Advertise;
use runtap_diag_server::connect_forever;
use runtap_os::my_uid;
use runtap_transport::{Endpoint, Peer, Stream};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::board::Board;
use super::crowd::{Crowd, Origin, Progress};
use super::link::{Gate, Link};
use super::notice::Notice;
use super::relay::Relay;

/// How long it waits when the system is out of descriptors.
const OUT_OF_DESCRIPTORS: Duration = Duration::from_millis(100);

/// Where the tools are.
#[derive(Debug)]
#[non_exhaustive]
pub enum Front {
    /// They dial this.
    Listen(Gate),
    /// A tool listens there for a runtime, and is dialled for each one that there is.
    Dial(Endpoint),
}

impl Front {
    /// Serves tools, for ever.
    pub(crate) async fn serve(&self, relay: &Relay, board: Option<&Arc<Board>>) {
        match (self, board) {
            (Self::Listen(gate), _) => listen(gate, relay).await,
            (Self::Dial(tool), None) => dial_for_one(tool, relay).await,
            (Self::Dial(tool), Some(board)) => dial_for_each(tool, relay, board).await,
        }
    }
}

/// Tools dial in.
async fn listen(gate: &Gate, relay: &Relay) {
    let mut crowd = Crowd::new(relay.limits().connections, relay.limits().silent, relay.teller().clone());
    loop {
        let (link, who) = match gate.accept().await {
            Ok(accepted) => accepted,
            Err(_out_of_descriptors) => {
                crowd.disconnect_one();
                sleep(OUT_OF_DESCRIPTORS).await;
                continue;
            }
        };
        relay.teller().connection();
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

/// One runtime, which listens: the tool is dialled in its name, for as long as it can be reached.
async fn dial_for_one(tool: &Endpoint, relay: &Relay) {
    loop {
        let advertise = relay.identify_patiently().await;
        // Another one may be there by then, with a cookie of its own.
        dial(tool, advertise, relay).await;
    }
}

/// Runtimes that dial in: the tool is dialled for each, when it waits for a request.
async fn dial_for_each(tool: &Endpoint, relay: &Relay, board: &Arc<Board>) {
    let mut arrivals = board.arrivals();
    let mut dialling = JoinSet::new();
    loop {
        tokio::select! {
            Some(arrival) = arrivals.recv() => {
                let (tool, relay, board) = (tool.clone(), relay.clone(), Arc::clone(board));
                dialling.spawn(async move {
                    tokio::select! {
                        biased;
                        () = board.is_gone(&arrival) => {}
                        () = dial(&tool, arrival.advertise, &relay) => {}
                    }
                });
            }
            Some(_ended) = dialling.join_next() => {}
        }
    }
}

/// Dials the tool in the name of a runtime, again after each request, as long as that runtime is there.
async fn dial(tool: &Endpoint, advertise: Advertise, relay: &Relay) {
    let gone = Arc::new(Notify::new());
    let mut told = None;
    let may_know = |peer: Peer| {
        let trusted = peer.uid == 0 || peer.uid == my_uid();
        if !trusted && told.replace(peer.uid) != Some(peer.uid) {
            relay.teller().tell(&Notice::ForeignTool { uid: peer.uid });
        }
        trusted
    };
    let serve = |stream: Stream| {
        let (relay, gone, cookie) = (relay.clone(), Arc::clone(&gone), advertise.runtime_cookie);
        async move {
            let (tell, free) = oneshot::channel();
            let serving = relay.clone();
            relay.teller().connection();
            relay.spawn(async move {
                let free = || {
                    // Nobody waits any more when the router ends.
                    let _ = tell.send(());
                };
                let progress = Progress::default();
                serving.serve(Link::Local(stream), "the tool", Some(cookie), &progress, free).await;
            });
            // An error is a client that has come to its end without an answer.
            let _ = free.await;
            if !relay.is_ready(cookie).await {
                gone.notify_one();
                // Otherwise the tool would be dialled once more, without a runtime.
                std::future::pending::<()>().await;
            }
        }
    };
    tokio::select! {
        never = connect_forever(tool, advertise, may_know, serve) => match never {},
        () = gone.notified() => {}
    }
}
