//! The runner's work per frame of an application, without sockets and threads: for a tool that counts instructions.

use anyhow::{Result, bail};
use runtap_mtp_proto::server::{Application, Event, Mode, Pipe, Settings};
use runtap_mtp_proto::{Frame, Limits, Message, SessionEventType};

use super::application::{handshake, results, session};
use super::throughput::EXECUTION;

/// Results per message.
const RESULTS_PER_MESSAGE: usize = 32;

/// Makes all frames of an application with `count` results.
pub(crate) fn make(count: usize) -> Result<Vec<u8>> {
    let mut all = Message::Handshake(handshake(EXECUTION)).to_frame()?;
    all.extend(session(EXECUTION, SessionEventType::START).to_frame()?);
    for start in (0..count).step_by(RESULTS_PER_MESSAGE) {
        all.extend(results(EXECUTION, start..(start + RESULTS_PER_MESSAGE).min(count), "").to_frame()?);
    }
    all.extend(session(EXECUTION, SessionEventType::END).to_frame()?);
    Ok(all)
}

/// Processes the frames and returns the number of results.
pub(crate) fn take(mut bytes: &[u8]) -> Result<u64> {
    let mut application = Application::new(Settings { is_ide: true, ..Settings::new(Mode::Run) });
    let mut connection = application.connect(Pipe::Data);
    let mut seen = 0;
    while !bytes.is_empty() {
        let (_, size) = Frame::parse(bytes, Limits::default())?;
        let (frame, rest) = bytes.split_at(size);
        bytes = rest;
        let output = application.handle_bytes(&mut connection, frame);
        if let Some(violation) = output.violations().next() {
            bail!("{violation:?}");
        }
        for event in output.events {
            if let Event::Message(Message::TestResults(message)) = event {
                seen += message.successful.map_or(0, |tests| tests.len()) as u64;
            }
        }
    }
    Ok(seen)
}
