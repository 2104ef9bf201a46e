//! Messages about a recording.

use runtap_model::Message;

use super::Event;

/// Returns the message for an event.
pub fn event(event: &Event<'_>) -> Option<Message> {
    Some(match event {
        Event::Opened { conn, peer } => {
            let peer =
                peer.pid.map_or_else(|| "an unknown process".to_owned(), |pid| format!("process {pid}"));
            Message::Detail(format!("{conn}: {peer} connected"))
        }
        Event::Closing { open } => {
            let open =
                if *open == 1 { "1 open connection".to_owned() } else { format!("{open} open connections") };
            Message::Note(format!("waiting for {open} to close; Ctrl-C again closes all connections"))
        }
        Event::Unreachable { conn, error } => Message::Warning(format!("{conn}: {error}")),
        Event::NotWritten(error) => Message::Warning(format!(
            "the transcript ends here, but connections continue to be forwarded: {error}"
        )),
        Event::Closed { conn, stream } => {
            let stream = stream.as_ref().map(|path| format!("; its stream is in {}", path.display()));
            Message::Detail(format!("{conn}: closed{}", stream.unwrap_or_default()))
        }
    })
}
