//! A port as a target: who is there first, and the first runtime that dials in.

use std::path::PathBuf;

use runtap_diag::ports::Port;
use runtap_diag::tool_port::{PortMode, ToolPort, Transport};
use runtap_os::in_a_thread;

use crate::dialogue::{Dialogue, Remark};
use crate::error::Error;
use crate::spec::SpecError;
use crate::subject::Subject;

/// A diagnostic port that somebody has named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortSpec {
    /// The socket.
    pub path: PathBuf,
    /// Who is there first.
    pub role: Role,
}

/// Who is at a port first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A runtime listens there.
    Connect,
    /// Runtimes dial in there.
    Listen,
    /// Nothing was said: it depends on what is to be done, and on who is there.
    Either,
}

impl PortSpec {
    /// A port in every form that `dotnet-trace` takes.
    pub(crate) fn parse(port: &str) -> Result<Self, SpecError> {
        let told = ToolPort::parse(port, Transport::NATIVE)
            .map_err(|error| SpecError::Port { port: port.to_owned(), error })?;
        if told.transport != Transport::NATIVE {
            return Err(SpecError::Pipe { port: port.to_owned() });
        }
        let role = match told.mode {
            _ if !port.contains(',') => Role::Either,
            PortMode::Connect => Role::Connect,
            PortMode::Listen => Role::Listen,
        };
        Ok(Self { path: PathBuf::from(told.address), role })
    }

    /// Whoever listens there, or the first that dials in. Who calls this handles signals: the socket must not stay behind.
    pub(crate) async fn resolve(&self, dialogue: &impl Dialogue) -> Result<Subject, Error> {
        match self.role {
            Role::Connect | Role::Either => Ok(Subject::at_port(&self.path)),
            Role::Listen => self.first(dialogue).await,
        }
    }

    async fn first(&self, dialogue: &impl Dialogue) -> Result<Subject, Error> {
        let mut port = Port::bind(&self.path)?;
        dialogue.remark(Remark::Listening(&port));
        let visitors = port.visitors();
        let runtime = loop {
            tokio::select! {
                runtime = port.accept() => break runtime,
                visitor = visitors.next() => dialogue.remark(Remark::Stranger(visitor.peer)),
            }
        };
        let pid = runtime.peer().pid;
        let process = in_a_thread(move || pid.and_then(|pid| runtap_discover::process(pid).ok())).await?;
        Ok(Subject::of_port(port, runtime, process))
    }
}
