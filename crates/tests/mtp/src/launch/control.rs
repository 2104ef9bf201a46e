//! The control pipe: every process of an application waits there for a word of ours, and one word is known: cancel.

use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use runtap_mtp_proto::server::{Application, Connection, Event, Mode, Pipe as Kind, Settings};
use runtap_mtp_proto::{ControlKind, Limits};

use runtap_transport::LocalStream;

use crate::pipe::Pipe;

/// Bytes of the largest message that is accepted: real ones have less than 100.
const LARGEST: u32 = 4 << 10;

/// The control pipe of one application.
#[derive(Debug)]
pub(crate) struct Control {
    pipe: Pipe,
    shared: Arc<Mutex<Waiting>>,
}

/// The processes that wait.
#[derive(Debug, Default)]
struct Waiting {
    processes: Vec<Process>,
    /// Those that come now are told at once.
    cancelled: bool,
}

/// One of them.
#[derive(Debug)]
struct Process {
    number: u64,
    stream: LocalStream,
    connection: Connection,
}

impl Control {
    pub(crate) fn listen(path: PathBuf) -> io::Result<Self> {
        let shared = Arc::<Mutex<Waiting>>::default();
        let own = Arc::clone(&shared);
        let pipe = Pipe::listen(path, move |number, stream| serve(number, &stream, &own))?;
        Ok(Self { pipe, shared })
    }

    pub(crate) fn path(&self) -> &Path {
        self.pipe.path()
    }

    /// Tells all to cancel their sessions. Returns whether anybody listens.
    pub(crate) fn cancel(&self) -> bool {
        let mut waiting = lock(&self.shared);
        waiting.cancelled = true;
        waiting.processes.iter_mut().filter_map(tell).count() > 0
    }

    /// Nobody is told anything any more.
    pub(crate) fn close(&mut self) {
        self.pipe.shut();
    }
}

fn lock(shared: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `None`: it does not wait, or has gone.
fn tell(process: &mut Process) -> Option<()> {
    let answer = process.connection.control(ControlKind::CANCEL_SESSION)?;
    process.stream.write_all(&answer).ok()
}

/// A process asks, and waits for the answer. Closing its end is its way to leave.
fn serve(number: u64, mut stream: &LocalStream, shared: &Mutex<Waiting>) {
    // What is asked here depends on nothing that was said elsewhere.
    let limits = Limits { frame: LARGEST, ..Limits::default() };
    let mut application = Application::new(Settings { limits, ..Settings::new(Mode::Run) });
    let Ok(own) = stream.try_clone() else { return };
    let connection = application.connect(Kind::Control);
    lock(shared).processes.push(Process { number, stream: own, connection });
    let mut buffer = [0; 256];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        let mut waiting = lock(shared);
        let cancelled = waiting.cancelled;
        let process = waiting.processes.iter_mut().find(|process| process.number == number);
        let Some(process) = process else { break };
        let bytes = buffer.get(..count).unwrap_or_default();
        let output = application.handle_bytes(&mut process.connection, bytes);
        if output.events.contains(&Event::ControlWaiting) && cancelled {
            tell(process);
        }
        // Anything else is answered by nothing: there is nothing else to be asked here.
        if output.close {
            break;
        }
    }
    lock(shared).processes.retain(|process| process.number != number);
}
