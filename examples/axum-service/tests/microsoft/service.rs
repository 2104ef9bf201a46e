//! The service as a child process, and its own counts.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// A running service, which is stopped when this value is dropped.
pub(crate) struct Service {
    child: Child,
    port: Option<u16>,
    /// The directory of its socket, for tools that search there.
    pub dir: TempDir,
}

impl Service {
    pub(crate) fn new() -> Self {
        let mut service = Self::starting(None);
        service.wait_until_it_listens();
        service
    }

    /// Starts the service, which waits for the tool at this port, if there is one.
    pub(crate) fn starting(port: Option<&Path>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_axum-service"));
        command.env("TMPDIR", dir.path()).env_remove("DOTNET_DiagnosticPorts");
        if let Some(port) = port {
            command.env("DOTNET_DiagnosticPorts", format!("{},suspend", port.display()));
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        Self { child, port: None, dir }
    }

    pub(crate) fn wait_until_it_listens(&mut self) {
        let mut line = String::new();
        BufReader::new(self.child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        self.port = Some(line.trim().strip_prefix("listening ").unwrap().parse().unwrap());
    }

    pub(crate) fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// Returns the status and body of a response.
    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port.unwrap())).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    pub(crate) fn truth(&self) -> Value {
        serde_json::from_str(&self.get("/truth").1).unwrap()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = self.child.kill();
        }
        // A process that has exited needs no signal.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
    }
}
