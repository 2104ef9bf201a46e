//! Targets given as a diagnostic port.

use std::path::PathBuf;

use runtap_diag::ports::Port;
use runtap_diag::tool_port::{PortMode, ToolPort, Transport};
use runtap_os::in_a_thread;

use crate::dialogue::{Dialogue, Remark};
use crate::error::Error;
use crate::resolved::ResolvedTarget;
use crate::spec::SpecError;

/// A diagnostic port given by the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortSpec {
    /// The path of the socket.
    pub path: PathBuf,
    /// Which side listens on the port.
    pub role: Role,
}

/// Which side listens on a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A runtime listens; the tool connects.
    Connect,
    /// The tool listens; runtimes connect.
    Listen,
    /// Not specified. It depends on the command and on whether something listens there.
    Either,
}

impl PortSpec {
    /// Parses a port in any form that `dotnet-trace` accepts.
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

    /// Connects to the runtime that listens there, or waits for the first runtime that connects. The caller must handle signals, so
    /// that the socket is deleted.
    pub(crate) async fn resolve(&self, dialogue: &impl Dialogue) -> Result<ResolvedTarget, Error> {
        match self.role {
            Role::Connect | Role::Either => Ok(ResolvedTarget::at_port(&self.path)),
            Role::Listen => self.first(dialogue).await,
        }
    }

    async fn first(&self, dialogue: &impl Dialogue) -> Result<ResolvedTarget, Error> {
        let mut port = Port::bind(&self.path)?;
        dialogue.remark(Remark::Listening(&port));
        let visitors = port.visitors();
        let runtime = loop {
            tokio::select! {
                runtime = port.accept() => break runtime,
                visitor = visitors.next() => dialogue.remark(Remark::RejectedPeer(visitor.peer)),
            }
        };
        let pid = runtime.peer().pid;
        let process = in_a_thread(move || pid.and_then(|pid| runtap_discover::process(pid).ok())).await?;
        Ok(ResolvedTarget::of_port(port, runtime, process))
    }
}
