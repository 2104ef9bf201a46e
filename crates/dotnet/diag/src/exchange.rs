//! One command on one connection: moves the bytes between a socket and the client's state machine.
//!
//! Maps network errors to [`Error`]. Never retries.

#[cfg(target_os = "linux")]
use std::os::fd::{AsFd, OwnedFd};
use std::{io, time::Duration};

use runtap_diag_proto::{
    EncodeError, Reply, Request,
    client::{Client as Machine, Event, Failure},
};
use runtap_transport::{Endpoint, Stream};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};

use crate::{Error, connector::Connector};

/// The number of bytes to read at a time while waiting for an answer. A session's stream is read elsewhere.
const READ_SIZE: usize = 16 * 1024;

/// A connection with a request that was not sent or not answered yet.
pub(crate) struct Exchange {
    endpoint: Endpoint,
    machine: Machine,
    stream: Stream,
    /// The descriptor that follows the request in a separate message.
    #[cfg(target_os = "linux")]
    descriptor: Option<OwnedFd>,
}

/// The answer to a request that was carried out.
pub(crate) struct Answer {
    pub(crate) reply: Reply,
    /// The connection, which carries a session's stream if the reply is a started session.
    pub(crate) stream: Stream,
    /// The first bytes of that stream, which arrived together with the reply.
    pub(crate) head: Vec<u8>,
}

impl Exchange {
    /// Checks the request, then connects.
    pub(crate) async fn connect(
        connector: &Connector,
        request: Request,
        within: Duration,
    ) -> Result<Self, Error> {
        Self::open(connector, Machine::new(request)?, within).await
    }

    /// Like [`connect`](Self::connect), for a request that a descriptor follows.
    #[cfg(target_os = "linux")]
    pub(crate) async fn connect_with(
        connector: &Connector,
        request: Request,
        descriptor: OwnedFd,
        within: Duration,
    ) -> Result<Self, Error> {
        let mut exchange = Self::open(connector, Machine::with_descriptor(request)?, within).await?;
        exchange.descriptor = Some(descriptor);
        Ok(exchange)
    }

    async fn open(connector: &Connector, machine: Machine, within: Duration) -> Result<Self, Error> {
        let stream = connector.connect(within).await?;
        Ok(Self {
            endpoint: connector.endpoint().clone(),
            machine,
            stream,
            #[cfg(target_os = "linux")]
            descriptor: None,
        })
    }

    /// Returns the id of the process at the other end, in the caller's pid namespace.
    pub(crate) fn process(&self) -> io::Result<u32> {
        if self.endpoint.is_remote() {
            return Err(io::Error::other("the process is on another machine"));
        }
        let peer = self.stream.peer()?;
        peer.pid
            .ok_or_else(|| io::Error::other("the process behind the connection is in another pid namespace"))
    }

    /// Sends the request and waits up to `within` for the complete answer.
    pub(crate) async fn complete(mut self, within: Duration) -> Result<Answer, Error> {
        let outcome = timeout(within, self.converse()).await;
        match outcome {
            Ok(outcome) => {
                let (reply, head) = outcome?;
                Ok(Answer { reply, stream: self.stream, head })
            }
            Err(_elapsed) => Err(self.timed_out(within)),
        }
    }

    /// Sends the request and waits for the complete answer, without a time limit.
    pub(crate) async fn converse(&mut self) -> Result<(Reply, Vec<u8>), Error> {
        self.begin().await?;
        let mut buffer = vec![0; READ_SIZE];
        loop {
            let n = match self.stream.read(&mut buffer).await {
                Err(error) if is_closed(&error) => 0,
                other => other.map_err(|source| self.io(source))?,
            };
            let bytes = buffer.get(..n).unwrap_or_default();
            let taken = self.machine.handle_bytes(bytes);
            if n == 0 {
                self.machine.handle_eof();
            }
            if let Some(event) = self.machine.poll_event() {
                let reply = self.interpret(event)?;
                return Ok((reply, bytes.get(taken..).unwrap_or_default().to_vec()));
            }
        }
    }

    /// Sends the request, if it was not sent yet.
    pub(crate) async fn begin(&mut self) -> Result<(), Error> {
        match self.send().await {
            // The peer may have answered before it closed the connection: its answer takes precedence.
            Err(error) if is_closed(&error) => Ok(()),
            other => other.map_err(|source| self.io(source)),
        }
    }

    async fn send(&mut self) -> io::Result<()> {
        while let Some(bytes) = self.machine.poll_transmit() {
            self.stream.write_all(&bytes).await?;
        }
        #[cfg(target_os = "linux")]
        if let (Some(byte), Some(descriptor)) = (self.machine.poll_descriptor(), &self.descriptor) {
            self.stream.send_descriptor(byte, descriptor.as_fd()).await?;
        }
        Ok(())
    }

    /// Returns the error for an answer that is incomplete after `waited`.
    pub(crate) fn timed_out(&self, waited: Duration) -> Error {
        match self.machine.received() {
            0 => Error::Busy { endpoint: self.endpoint.clone(), waited },
            received => Error::TimedOut { command: self.machine.request().command(), received, waited },
        }
    }

    fn interpret(&self, event: Event) -> Result<Reply, Error> {
        let command = self.machine.request().command();
        Err(match event {
            Event::Reply(reply) => return Ok(reply),
            Event::Failed(Failure::Closed { received }) => Error::Closed { command, received },
            Event::Failed(Failure::Protocol(source)) => Error::Protocol { command, source },
            Event::Failed(Failure::Rejected(reply)) => Error::Refused { command, reply },
            other => self.io(io::Error::other(format!("{other:?}"))),
        })
    }

    pub(crate) fn io(&self, source: io::Error) -> Error {
        Error::Io { endpoint: self.endpoint.clone(), source }
    }
}

/// Returns whether the peer closed the connection, as opposed to a failure on this side.
fn is_closed(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::NotConnected
    )
}

/// Returns the error for an answer that does not belong to the request.
pub(crate) fn wrong_reply(request: &Request) -> Error {
    Error::Invalid(EncodeError::WrongReply { command: request.command() })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use runtap_diag_proto::{ErrorReply, Hresult};

    use super::*;

    /// A server that rejects a request before reading it: the write fails, but the answer can be read.
    #[tokio::test]
    async fn an_answer_counts_even_if_the_request_could_not_be_written() {
        let (stream, mut peer) = Stream::pair().unwrap();
        let answer = ErrorReply::from(Hresult::E_FAIL).to_bytes().unwrap();
        peer.write_all(&answer).await.unwrap();
        drop(peer);
        let machine = Machine::new(Request::ResumeRuntime).unwrap();
        let mut exchange = Exchange { endpoint: Endpoint::unix("/x"), machine, stream, descriptor: None };
        let error = exchange.converse().await.unwrap_err();
        assert_eq!(error.hresult(), Some(Hresult::E_FAIL), "{error}");
    }
}
