//! The HTTP transport of MTP 2.4: each request is a POST with one frame, and each response has one frame. There is one
//! connection with one request at a time. After `Connection: close`, a new connection is opened without a second
//! handshake.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use runtap_mtp_proto::host::{Connection, Reply};

use super::endpoint::Endpoint;
use super::response::ResponseReader;
use super::{HttpError, ReplyLimit};
use crate::HostError;

#[derive(Debug)]
pub(crate) struct Http {
    endpoint: Endpoint,
    /// The header of a request, up to the content length.
    head: String,
    stream: Option<TcpStream>,
    timeout: Duration,
    limit: ReplyLimit,
}

impl Http {
    pub(super) fn new(endpoint: &str, token: &str, timeout: Duration) -> Result<Self, HostError> {
        let endpoint = Endpoint::parse(endpoint)?;
        if token.is_empty() || !token.bytes().all(|c| c.is_ascii_graphic()) {
            return Err(HttpError::Token.into());
        }
        let (authority, path) = (&endpoint.authority, &endpoint.path);
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {authority}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/octet-stream\r\nContent-Length: "
        );
        let mut this = Self { endpoint, head, stream: None, timeout, limit: ReplyLimit::NONE };
        this.stream = Some(this.connect_with_retry()?);
        Ok(this)
    }

    fn connect_with_retry(&self) -> Result<TcpStream, HostError> {
        let started = Instant::now();
        loop {
            let error = match self.connect(self.timeout.saturating_sub(started.elapsed())) {
                Ok(stream) => {
                    // Requests are written in one operation, so delaying packets has no benefit.
                    stream.set_nodelay(true).map_err(lost)?;
                    return Ok(stream);
                }
                Err(error) => error,
            };
            let waited = started.elapsed();
            if error.kind() != io::ErrorKind::ConnectionRefused || waited >= self.timeout {
                let server = format!("http://{}", self.endpoint.authority);
                return Err(HostError::Connect { server, waited, error: Arc::new(error) });
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Connects to the first address that accepts. Needs a time limit, because a full backlog drops packets and the
    /// kernel retries for minutes.
    fn connect(&self, left: Duration) -> io::Result<TcpStream> {
        let left = left.max(Duration::from_millis(1));
        let mut error = io::ErrorKind::InvalidInput.into();
        for address in &self.endpoint.addresses {
            match TcpStream::connect_timeout(address, left) {
                Ok(stream) => return Ok(stream),
                Err(other) => error = other,
            }
        }
        Err(error)
    }

    /// Sets the time limit for replies.
    pub(super) fn set_limit(&mut self, limit: ReplyLimit) -> Result<(), HostError> {
        self.limit = limit;
        match &self.stream {
            // Reset the time limit of the last exchange.
            Some(stream) => stream.set_read_timeout(None).map_err(lost),
            None => Ok(()),
        }
    }

    pub(super) fn exchange(&mut self, frame: &[u8], connection: &mut Connection) -> Result<Reply, HostError> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => self.connect_with_retry()?,
        };
        let mut request = format!("{}{}\r\n\r\n", self.head, frame.len()).into_bytes();
        request.extend_from_slice(frame);
        let deadline = self.limit.deadline();
        stream.write_all(&request).map_err(lost)?;
        let mut reader = ResponseReader::new();
        let mut buffer = [0; 4096];
        let response = loop {
            if let Some(response) = reader.next()? {
                break response;
            }
            if let Some(left) = deadline.left().map_err(lost)? {
                stream.set_read_timeout(Some(left)).map_err(lost)?;
            }
            match stream.read(&mut buffer) {
                Ok(0) => return Err(HttpError::Truncated(reader.len()).into()),
                Ok(count) => reader.feed(buffer.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(lost(error)),
            }
        };
        if response.is_reusable {
            self.stream = Some(stream);
        }
        connection.handle_bytes(&response.body)?.ok_or_else(|| HttpError::NoFrame.into())
    }
}

fn lost(error: io::Error) -> HostError {
    HostError::Lost(Arc::new(error))
}
