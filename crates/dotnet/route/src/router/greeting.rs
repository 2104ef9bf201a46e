//! Accepts runtimes and waits until they have identified themselves. Any process can connect and send nothing, so connections that
//! delay make room for the next one.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use runtap_diag_proto::Advertise;
use runtap_os::loopback::Shares;
use runtap_wire::Reader;
use tokio::io::AsyncReadExt;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::board::RuntimeRegistry;
use super::crowd::Origin;
use super::link::{Acceptor, Link};
use super::notice::Notice;

/// The maximum number of connections that have not identified themselves.
const GREETING: usize = 64;
/// The pause if the system is out of descriptors.
const OUT_OF_DESCRIPTORS: Duration = Duration::from_millis(100);

/// A connection that has not identified itself.
struct Greeting {
    task: AbortHandle,
    who: String,
    origin: Origin,
}

/// Accepts runtimes forever.
pub(crate) async fn accept(board: Arc<RuntimeRegistry>, gate: Acceptor) {
    let mut tasks = JoinSet::new();
    // Oldest first.
    let mut greetings = Vec::new();
    loop {
        while tasks.try_join_next().is_some() {}
        let accepted = gate.accept().await;
        greetings.retain(|greeting: &Greeting| !greeting.task.is_finished());
        let (link, who) = match accepted {
            Ok(accepted) => accepted,
            Err(_out_of_descriptors) => {
                disconnect_one(&board, &mut greetings);
                sleep(OUT_OF_DESCRIPTORS).await;
                continue;
            }
        };
        if greetings.len() >= GREETING {
            disconnect_one(&board, &mut greetings);
        }
        let origin = Origin::of_link(&link);
        let (board, name) = (Arc::clone(&board), who.clone());
        let task = tasks.spawn(async move {
            let why = match timeout(board.limits.advertise, greet(link)).await {
                Ok(Ok((advertise, link))) => return board.runtime_connected(advertise, link, origin),
                Ok(Err(error)) => error.to_string(),
                Err(_elapsed) => "it did not identify itself in time".to_owned(),
            };
            board.reporter.report(&Notice::NoRuntime { who: name, why });
        });
        greetings.push(Greeting { task, who, origin });
    }
}

/// Disconnects the oldest connection of the origin with the most connections, if there is one that has not identified itself.
fn disconnect_one(board: &RuntimeRegistry, greetings: &mut Vec<Greeting>) {
    let shares: Shares<Origin> = greetings.iter().map(|greeting| greeting.origin).collect();
    let oldest = greetings.iter().position(|greeting| shares.has_most(&greeting.origin));
    if let Some(Greeting { task, who, .. }) = oldest.map(|at| greetings.remove(at)) {
        task.abort();
        let why = "it had not identified itself when other connections arrived".to_owned();
        board.reporter.report(&Notice::NoRuntime { who, why });
    }
}

/// Reads the Advertise message and no further byte.
async fn greet(mut link: Link) -> io::Result<(Advertise, Link)> {
    let mut bytes = [0; Advertise::LEN];
    link.read_exact(&mut bytes).await?;
    let wrong = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    let advertise = Advertise::decode(&mut Reader::new(&bytes)).map_err(wrong)?;
    Ok((advertise, link))
}
