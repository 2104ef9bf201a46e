//! The side of the runtime: where it listens, or where it dials in.

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

use super::link::{Gate, Link};

/// Where the runtime is.
#[derive(Debug)]
#[non_exhaustive]
pub enum Back {
    /// It listens there, and is dialled once for each request.
    Dial(RuntimeAddress),
    /// It dials in here, says who it is, and does so again after each request.
    Listen(Gate),
}

/// Where a runtime listens.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum RuntimeAddress {
    /// A socket of this machine.
    Local(Endpoint),
    /// One of these, the first that answers.
    Tcp(Vec<SocketAddr>),
}

/// Why there is no connection to a runtime.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DialError {
    /// By its socket.
    #[error(transparent)]
    Local(#[from] ConnectError),
    /// By TCP.
    #[error("connect to {address}: {source}")]
    Tcp {
        /// Where.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// It did not say who it is.
    #[error("{0} does not say who it is")]
    Unknown(String),
}

impl RuntimeAddress {
    /// A connection that nothing was sent on: to be used at once, because the runtime serves nobody else until then.
    ///
    /// # Errors
    /// Nobody listens, or does not answer in time.
    pub async fn connect(&self, within: Duration) -> Result<Link, DialError> {
        match self {
            Self::Local(endpoint) => Ok(Link::Local(endpoint.connect(within).await?)),
            Self::Tcp(addresses) => {
                let dialled = timeout(within, TcpStream::connect(&addresses[..])).await;
                let dialled = dialled.unwrap_or_else(|elapsed| Err(elapsed.into()));
                let stream =
                    dialled.map_err(|source| DialError::Tcp { address: self.to_string(), source })?;
                Ok(Link::tcp(stream))
            }
        }
    }

    /// Who it is, as it would say itself if it dialled in.
    ///
    /// # Errors
    /// It can't be reached, or does not answer.
    pub(crate) async fn identify(&self, within: Duration) -> Result<Advertise, DialError> {
        let unknown = || DialError::Unknown(self.to_string());
        let link = self.connect(within).await?;
        match timeout(within, ask(link)).await {
            Ok(Ok(Some(advertise))) => Ok(advertise),
            _ => Err(unknown()),
        }
    }
}

/// The oldest form of the question, which every runtime knows.
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
