//! Runtimes that dial in, until they have said who they are. Whoever keeps the router waiting for that makes room for the next
//! one: anybody can connect, and say nothing.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use runtap_diag_proto::Advertise;
use runtap_wire::Reader;
use tokio::io::AsyncReadExt;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::board::Board;
use super::link::{Gate, Link};
use super::notice::Notice;

/// Connections that have not said yet who they are.
const GREETING: usize = 64;
/// How long it waits when the system is out of descriptors.
const OUT_OF_DESCRIPTORS: Duration = Duration::from_millis(100);

/// A connection that has not said yet who it is.
struct Greeting {
    task: AbortHandle,
    who: String,
}

/// Lets runtimes in, for ever.
pub(crate) async fn accept(board: Arc<Board>, gate: Gate) {
    let mut tasks = JoinSet::new();
    // The oldest first.
    let mut greetings = VecDeque::new();
    loop {
        while tasks.try_join_next().is_some() {}
        let (link, who) = match gate.accept().await {
            Ok(accepted) => accepted,
            Err(_out_of_descriptors) => {
                disconnect_oldest(&board, &mut greetings);
                sleep(OUT_OF_DESCRIPTORS).await;
                continue;
            }
        };
        greetings.retain(|greeting: &Greeting| !greeting.task.is_finished());
        if greetings.len() >= GREETING {
            disconnect_oldest(&board, &mut greetings);
        }
        let (board, name) = (Arc::clone(&board), who.clone());
        let task = tasks.spawn(async move {
            let why = match timeout(board.limits.advertise, greet(link)).await {
                Ok(Ok((advertise, link))) => return board.dialled_in(advertise, link),
                Ok(Err(error)) => error.to_string(),
                Err(_elapsed) => "it has not said who it is".to_owned(),
            };
            board.teller.tell(&Notice::NoRuntime { who: name, why });
        });
        greetings.push_back(Greeting { task, who });
    }
}

fn disconnect_oldest(board: &Board, greetings: &mut VecDeque<Greeting>) {
    while let Some(Greeting { task, who }) = greetings.pop_front() {
        if !task.is_finished() {
            task.abort();
            let why = "it has not said who it is, and others have come".to_owned();
            return board.teller.tell(&Notice::NoRuntime { who, why });
        }
    }
}

/// Reads the Advertise message, and not a byte more.
async fn greet(mut link: Link) -> io::Result<(Advertise, Link)> {
    let mut bytes = [0; Advertise::LEN];
    link.read_exact(&mut bytes).await?;
    let wrong = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    let advertise = Advertise::decode(&mut Reader::new(&bytes)).map_err(wrong)?;
    Ok((advertise, link))
}
