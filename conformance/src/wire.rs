//! Requests sent without the client's checks, which would reject them although they do no harm, and malformed messages.

use anyhow::Context as _;
use runtap_diag_proto::client::{Client, Event, Failure};
use runtap_diag_proto::{Command, ErrorReply, HEADER_LEN, Header, Reply, Request};
use runtap_transport::{Endpoint, Stream};
use runtap_wire::Reader;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::cell::Stop;
use crate::room::Room;
use crate::target::LIMIT;

async fn send(endpoint: &Endpoint, bytes: &[u8]) -> anyhow::Result<Stream> {
    let mut stream = endpoint.connect(LIMIT).await?;
    stream.write_all(bytes).await?;
    Ok(stream)
}

/// Sends a well-formed request and returns the reply.
pub(crate) fn ask(
    room: &Room<'_>,
    endpoint: &Endpoint,
    request: &Request,
) -> Result<Result<Reply, ErrorReply>, Stop> {
    let conversation = async {
        let mut machine = Client::new(request.clone())?;
        let mut stream = send(endpoint, &machine.poll_transmit().unwrap_or_default()).await?;
        let mut buffer = [0; 4096];
        loop {
            let n = stream.read(&mut buffer).await?;
            machine.handle_bytes(buffer.get(..n).unwrap_or_default());
            if n == 0 {
                machine.handle_eof();
            }
            match machine.poll_event() {
                Some(Event::Reply(reply)) => return Ok(Ok(reply)),
                Some(Event::Failed(Failure::Rejected(error))) => return Ok(Err(error)),
                Some(other) => anyhow::bail!("{:?}: {other:?}", request.command()),
                None => {}
            }
        }
    };
    Ok(room.run_limited(conversation)??)
}

/// Sends arbitrary bytes and nothing after them, and returns the error reply.
pub(crate) fn refusal(room: &Room<'_>, endpoint: &Endpoint, bytes: &[u8]) -> Result<ErrorReply, Stop> {
    let conversation = async {
        let mut stream = send(endpoint, bytes).await?;
        let mut header = [0; HEADER_LEN];
        stream.read_exact(&mut header).await.context("no reply")?;
        let header = Header::decode(&mut Reader::new(&header))?;
        anyhow::ensure!(header.command == Command::ERROR, "answered with {:?}", header.command);
        let mut payload = vec![0; usize::from(header.size).saturating_sub(HEADER_LEN)];
        stream.read_exact(&mut payload).await.context("half a reply")?;
        Ok(ErrorReply::decode(&payload)?)
    };
    Ok(room.run_limited(conversation)??)
}
