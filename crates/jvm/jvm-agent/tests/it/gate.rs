//! An HQ that reads nothing until released, and a program that executes commands one by one meanwhile, so that losses do not
//! depend on timing.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};

use runtap_testkit::{Jdk, Skip};

use crate::common::traced;

/// A proxy between agents and HQ: the control connection passes, and only the two hellos of data connections until
/// it is opened.
pub(crate) struct Gate {
    pub(crate) port: u16,
    open: Arc<(Mutex<bool>, Condvar)>,
}

impl Gate {
    pub(crate) fn before(port: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let gate = Self { port: listener.local_addr().unwrap().port(), open: Arc::default() };
        let open = Arc::clone(&gate.open);
        std::thread::spawn(move || {
            for agent in listener.incoming().flatten() {
                let Ok(hq) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { return };
                let (back_from, back_to) = (hq.try_clone().unwrap(), agent.try_clone().unwrap());
                std::thread::spawn(move || pass(back_from, back_to));
                let open = Arc::clone(&open);
                std::thread::spawn(move || {
                    let (mut agent, mut hq, mut hello) = (agent, hq, [0; 2]);
                    if agent.read_exact(&mut hello).is_err() || hq.write_all(&hello).is_err() {
                        return;
                    }
                    if hello[0] == 0x1e {
                        let (is_open, changed) = &*open;
                        drop(changed.wait_while(is_open.lock().unwrap(), |open| !*open).unwrap());
                    }
                    pass(agent, hq);
                });
            }
        });
        gate
    }

    pub(crate) fn open(&self) {
        *self.open.0.lock().unwrap() = true;
        self.open.1.notify_all();
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}

/// A number of calls of which more than half have no room in the thread's ring and the buffers of two connections.
pub(crate) const MANY: u64 = 1_000_000;

/// A running `demo.Turns`.
pub(crate) struct Turns {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Turns {
    pub(crate) fn start(jdk: &Jdk, port: u16, options: &str) -> Result<Self, Skip> {
        Ok(Self::spawn(traced(jdk, port, options, &["demo.Turns"])?))
    }

    /// Starts the program, or a command that becomes it.
    pub(crate) fn spawn(mut java: Command) -> Self {
        let mut child = java.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, input, output: BufReader::new(output) }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a line, and waits until the program has executed it.
    pub(crate) fn turn(&mut self, line: &str) {
        self.say(line);
        self.hear(line);
    }

    pub(crate) fn say(&mut self, line: &str) {
        writeln!(self.input, "{line}").unwrap();
    }

    pub(crate) fn hear(&mut self, line: &str) {
        let mut answer = String::new();
        self.output.read_line(&mut answer).unwrap();
        assert_eq!(answer, format!("did {line}\n"));
    }

    pub(crate) fn end(mut self) {
        drop(self.input);
        assert!(self.child.wait().unwrap().success());
    }
}
