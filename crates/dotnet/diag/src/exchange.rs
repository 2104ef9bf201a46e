//! One command on one connection: moves the bytes between a socket and the client's state machine.
//!
//! Owns the mapping of what happens on the wire to [`Error`]. Refuses to retry anything.

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

use crate::{Error, dial::Dial};

/// Bytes read at a time while an answer is awaited. A session's stream is read elsewhere.
const READ: usize = 16 * 1024;

/// A connection with a request that was not sent yet, or not answered yet.
pub(crate) struct Exchange {
    endpoint: Endpoint,
    machine: Machine,
    stream: Stream,
    /// Follows the request, in a message of its own.
    #[cfg(target_os = "linux")]
    descriptor: Option<OwnedFd>,
}

/// A request that was carried out.
pub(crate) struct Answer {
    pub(crate) reply: Reply,
    /// The connection, which is a session's stream if the reply says so.
    pub(crate) stream: Stream,
    /// The first bytes of that stream: they came together with the reply.
    pub(crate) head: Vec<u8>,
}

impl Exchange {
    /// Checks the request, then dials.
    pub(crate) async fn connect(dial: &Dial, request: Request, within: Duration) -> Result<Self, Error> {
        Self::dial(dial, Machine::new(request)?, within).await
    }

    /// As [`connect`](Self::connect), for a request that a descriptor follows.
    #[cfg(target_os = "linux")]
    pub(crate) async fn connect_with(
        dial: &Dial,
        request: Request,
        descriptor: OwnedFd,
        within: Duration,
    ) -> Result<Self, Error> {
        let mut exchange = Self::dial(dial, Machine::with_descriptor(request)?, within).await?;
        exchange.descriptor = Some(descriptor);
        Ok(exchange)
    }

    async fn dial(dial: &Dial, machine: Machine, within: Duration) -> Result<Self, Error> {
        let stream = dial.connect(within).await?;
        Ok(Self {
            endpoint: dial.endpoint().clone(),
            machine,
            stream,
            #[cfg(target_os = "linux")]
            descriptor: None,
        })
    }

    /// The process at the other end, by its id in our pid namespace.
    pub(crate) fn process(&self) -> io::Result<u32> {
        if self.endpoint.is_remote() {
            return Err(io::Error::other("the process is on another machine"));
        }
        let peer = self.stream.peer()?;
        peer.pid.ok_or_else(|| {
            io::Error::other("the process behind the connection lies in another pid namespace")
        })
    }

    /// Sends the request and waits for the whole answer, `within` from now.
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

    /// Sends the request and waits for the whole answer, without limit.
    pub(crate) async fn converse(&mut self) -> Result<(Reply, Vec<u8>), Error> {
        self.begin().await?;
        let mut buffer = vec![0; READ];
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
                let reply = self.judge(event)?;
                return Ok((reply, bytes.get(taken..).unwrap_or_default().to_vec()));
            }
        }
    }

    /// Sends the request, if that was not done yet.
    pub(crate) async fn begin(&mut self) -> Result<(), Error> {
        match self.send().await {
            // The peer may have answered before it closed: what it said counts more.
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

    /// The error for an answer that is not complete after `waited`.
    pub(crate) fn timed_out(&self, waited: Duration) -> Error {
        match self.machine.received() {
            0 => Error::Busy { endpoint: self.endpoint.clone(), waited },
            received => Error::TimedOut { command: self.machine.request().command(), received, waited },
        }
    }

    fn judge(&self, event: Event) -> Result<Reply, Error> {
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

/// Whether the peer is gone, as opposed to a failure of this side.
fn is_closed(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::NotConnected
    )
}

/// The error for an answer that fits no question.
pub(crate) fn wrong_reply(request: &Request) -> Error {
    Error::Invalid(EncodeError::WrongReply { command: request.command() })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use runtap_diag_proto::{ErrorReply, Hresult};

    use super::*;

    /// What a server does that refuses before it has read: the write fails, the answer is there all the same.
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
