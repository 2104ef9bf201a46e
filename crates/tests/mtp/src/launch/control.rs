//! The control pipe: every process of an application waits there for a command. The only command is cancel.

use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use runtap_mtp_proto::server::{Application, Connection, Event, Mode, Pipe as Kind, Settings};
use runtap_mtp_proto::{ControlKind, Limits};

use runtap_transport::LocalStream;

use crate::pipe::Pipe;

/// The maximum size of a message in bytes. Real messages have less than 100 bytes.
const MAX_MESSAGE_SIZE: u32 = 4 << 10;

/// The control pipe of one application.
#[derive(Debug)]
pub(crate) struct Control {
    pipe: Pipe,
    shared: Arc<Mutex<Waiting>>,
}

/// The waiting processes.
#[derive(Debug, Default)]
struct Waiting {
    processes: Vec<Process>,
    /// Whether the session is canceled. Processes that connect later are notified immediately.
    cancelled: bool,
}

/// A waiting process.
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

    /// Makes all processes cancel their sessions. Returns whether any process was notified.
    pub(crate) fn cancel(&self) -> bool {
        let mut waiting = lock(&self.shared);
        waiting.cancelled = true;
        waiting.processes.iter_mut().filter_map(send_cancel).count() > 0
    }

    /// Closes the pipe.
    pub(crate) fn close(&mut self) {
        self.pipe.shut();
    }
}

fn lock(shared: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends the cancel command. `None` if the process is not waiting, or has disconnected.
fn send_cancel(process: &mut Process) -> Option<()> {
    let answer = process.connection.control(ControlKind::CANCEL_SESSION)?;
    process.stream.write_all(&answer).ok()
}

/// Serves one process, which sends a request and waits for the answer until it closes the connection.
fn serve(number: u64, mut stream: &LocalStream, shared: &Mutex<Waiting>) {
    // Requests on this pipe do not depend on the other connections.
    let limits = Limits { frame: MAX_MESSAGE_SIZE, ..Limits::default() };
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
            send_cancel(process);
        }
        // Other requests are not answered: the control pipe has no others.
        if output.close {
            break;
        }
    }
    lock(shared).processes.retain(|process| process.number != number);
}
