//! The runtime's side: a runtime that listens, or one that connects.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use runtap_diag_proto::client::{Client, Event};
use runtap_diag_proto::{Advertise, InfoForm, Reply, Request};
use runtap_transport::{ConnectError, Endpoint};
use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::link::{Acceptor, Link};

/// Where the runtime is.
#[derive(Debug)]
#[non_exhaustive]
pub enum Back {
    /// The runtime listens. The router connects to it once per request.
    Connect(RuntimeAddress),
    /// The runtime connects to this address, identifies itself, and connects again after each request.
    Listen(Acceptor),
}

/// The address of a runtime that listens.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum RuntimeAddress {
    /// A socket of this machine.
    Local(Endpoint),
    /// TCP addresses, of which the first that answers is used.
    Tcp(Vec<SocketAddr>),
}

/// An error while connecting to a runtime.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RuntimeConnectError {
    /// Connecting to a local socket failed.
    #[error(transparent)]
    Local(#[from] ConnectError),
    /// Connecting over TCP failed.
    #[error("connect to {address}: {source}")]
    Tcp {
        /// The address.
        address: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The runtime did not identify itself.
    #[error("{0} does not identify itself")]
    Unknown(String),
}

impl RuntimeAddress {
    /// Opens a connection. It must be used at once, because the runtime does not serve other clients until then.
    ///
    /// # Errors
    /// Returns an error if nothing listens, or does not answer in time.
    pub async fn connect(&self, within: Duration) -> Result<Link, RuntimeConnectError> {
        match self {
            Self::Local(endpoint) => Ok(Link::Local(endpoint.connect(within).await?)),
            Self::Tcp(addresses) => {
                let connected = timeout(within, TcpStream::connect(&addresses[..])).await;
                let connected = connected.unwrap_or_else(|elapsed| Err(elapsed.into()));
                let stream = connected
                    .map_err(|source| RuntimeConnectError::Tcp { address: self.to_string(), source })?;
                Ok(Link::tcp(stream))
            }
        }
    }

    /// Queries the identity of the runtime, in the form in which it would send it on connecting.
    ///
    /// # Errors
    /// Returns an error if the runtime can't be reached or does not answer.
    pub(crate) async fn identify(&self, within: Duration) -> Result<Advertise, RuntimeConnectError> {
        let unknown = || RuntimeConnectError::Unknown(self.to_string());
        let link = self.connect(within).await?;
        match timeout(within, ask(link)).await {
            Ok(Ok(Some(advertise))) => Ok(advertise),
            _ => Err(unknown()),
        }
    }
}

/// Sends the oldest form of the query, which every runtime supports.
async fn ask(mut link: Link) -> io::Result<Option<Advertise>> {
    let Ok(mut machine) = Client::new(Request::ProcessInfo(InfoForm::ProcessInfo)) else { return Ok(None) };
    while let Some(bytes) = machine.poll_transmit() {
        link.write_all(&bytes).await?;
    }
    let mut buffer = [0; 1024];
    loop {
        let n = link.read(&mut buffer).await?;
        machine.handle_bytes(buffer.get(..n).unwrap_or_default());
        if n == 0 {
            machine.handle_eof();
        }
        match machine.poll_event() {
            None => {}
            Some(Event::Reply(Reply::ProcessInfo(info))) => {
                return Ok(Some(Advertise {
                    runtime_cookie: info.runtime_cookie,
                    process_id: info.process_id,
                }));
            }
            Some(_) => return Ok(None),
        }
    }
}

impl fmt::Display for RuntimeAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(endpoint) => endpoint.fmt(f),
            Self::Tcp(addresses) => match addresses.first() {
                Some(first) => first.fmt(f),
                None => f.write_str("no address"),
            },
        }
    }
}
