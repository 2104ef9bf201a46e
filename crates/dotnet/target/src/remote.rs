//! A process of another machine, behind the router of that machine: `runtap://HOST:PORT[/PID|NAME]`.
//!
//! Its endpoint is a bridge of this process: a thread that dials the router, proves that it knows the token, and moves the
//! bytes, for each connection anew. Whoever has the client needs to know nothing of it. Owns the choice among what the router
//! lists; the handshake is `runtap_transport::remote`'s.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use runtap_diag::Client;
use runtap_transport::remote::{
    AddressError, ClientHandshake, HandshakeError, RemoteAddress, RemoteProcess, RemoteSelector, Request,
    Token, drive, nonce,
};
use runtap_transport::{Bridge, ConnectRequest, Endpoint};
use runtap_wire::DecodeError;
use thiserror::Error;
use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::error::{Error, Row};
use crate::subject::Subject;

/// For dialling a router and the handshake; it may have to ask all its processes who they are.
const PATIENCE: Duration = Duration::from_secs(10);
/// Room for requests, and for what is answered.
const UPWARD: usize = 4 << 10;
const DOWNWARD: usize = 64 << 10;

/// A process of another machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteSpec {
    /// Where, and which.
    pub address: RemoteAddress,
    /// What that router knows, too.
    pub token: Token,
}

/// Why a router does not do what it was asked for.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// The name of its machine is not known.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// It can't be dialled, or the connection broke.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It does not know who we are, or we do not believe it.
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    /// Its list can't be read.
    #[error("its list can't be read: {0}")]
    List(#[from] DecodeError),
    /// It did not answer.
    #[error("the router did not answer within {} s", PATIENCE.as_secs())]
    TooSlow,
}

impl RemoteSpec {
    /// What the router offers, all of it.
    ///
    /// # Errors
    /// It can't be reached, or refuses.
    pub async fn list(&self) -> Result<Vec<RemoteProcess>, Error> {
        let listed = async { Ok(RemoteProcess::decode(&self.ask(Request::List).await?.0)?) };
        listed.await.map_err(|source| self.failed(source))
    }

    /// What is meant, of what the router offers.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub async fn meant(&self) -> Result<Vec<RemoteProcess>, Error> {
        let mut listed = self.list().await?;
        match &self.address.which {
            RemoteSelector::Only => {}
            RemoteSelector::Pid(pid) => listed.retain(|one| one.pid == *pid),
            RemoteSelector::Name(name) => listed.retain(|one| one.name == *name),
        }
        Ok(listed)
    }

    /// The only one that is meant.
    pub(crate) async fn resolve(&self) -> Result<Subject, Error> {
        let mut subjects = self.resolve_all().await?;
        match (subjects.pop(), subjects.is_empty()) {
            (Some(only), true) => Ok(only.0),
            (last, _) => {
                let processes = subjects.into_iter().chain(last).map(|(_, row)| row).collect();
                Err(Error::Several { name: self.address.to_string(), processes })
            }
        }
    }

    /// All that are meant, as they stand in a list; at least one.
    pub(crate) async fn resolve_all(&self) -> Result<Vec<(Subject, Row)>, Error> {
        let meant = self.meant().await?;
        if meant.is_empty() {
            return Err(Error::NoRemote { address: self.address.to_string() });
        }
        meant.into_iter().map(|one| Ok((self.subject(&one)?, Row::from(&one)))).collect()
    }

    /// A client of one of them.
    fn subject(&self, listed: &RemoteProcess) -> Result<Subject, Error> {
        let address = RemoteAddress { which: RemoteSelector::Pid(listed.pid), ..self.address.clone() };
        let (bridge, calls) = Bridge::new(address.to_string());
        let spec = Self { address, token: self.token.clone() };
        let request = Request::Open { pid: listed.pid, started: listed.started };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        // Ends when nobody is left who could dial.
        thread::Builder::new().name("remote".to_owned()).spawn(move || {
            runtime.block_on(carry(Arc::new(spec), request, calls));
        })?;
        let client = Client::new(Endpoint::Bridge(Arc::new(bridge)));
        Ok(Subject::new(client, None).on_another_machine(listed.pid))
    }

    /// A connection on which the router has done what was asked for, and what it has said.
    async fn ask(&self, request: Request) -> Result<(Vec<u8>, TcpStream), RemoteError> {
        let asking = async {
            // Where it leads is for whoever has typed it: the token is not sent.
            let addresses = self.address.router.resolve(true).await?;
            let mut stream = TcpStream::connect(&addresses[..]).await?;
            stream.set_nodelay(true)?;
            let router = stream.peer_addr()?;
            let mut handshake = ClientHandshake::new(self.token.clone(), nonce()?, router, request);
            let answer = drive(&mut handshake, &mut stream).await??;
            Ok((answer, stream))
        };
        timeout(PATIENCE, asking).await.unwrap_or(Err(RemoteError::TooSlow))
    }

    fn failed(&self, source: RemoteError) -> Error {
        Error::Remote { address: self.address.router.to_string(), source }
    }
}

impl From<&RemoteProcess> for Row {
    fn from(listed: &RemoteProcess) -> Self {
        let RemoteProcess { pid, user, command_line, .. } = listed;
        Self { pid: *pid, user: user.clone(), command_line: command_line.clone() }
    }
}

/// Makes a connection for each call.
async fn carry(spec: Arc<RemoteSpec>, request: Request, mut calls: mpsc::UnboundedReceiver<ConnectRequest>) {
    while let Some(ConnectRequest { stream, answer }) = calls.recv().await {
        let spec = Arc::clone(&spec);
        tokio::spawn(async move {
            let connecting = async {
                let local = stream.into_stream()?;
                let (_nothing, remote) = spec.ask(request).await.map_err(io::Error::other)?;
                Ok((local, remote))
            };
            match connecting.await {
                Ok((mut local, mut remote)) => {
                    if answer.send(Ok(())).is_ok() {
                        // One side has gone: the other one learns it by the end of the connection.
                        let _ =
                            copy_bidirectional_with_sizes(&mut local, &mut remote, UPWARD, DOWNWARD).await;
                    }
                }
                Err(error) => {
                    // Who dialled may have given up.
                    let _ = answer.send(Err(error));
                }
            }
        });
    }
}
