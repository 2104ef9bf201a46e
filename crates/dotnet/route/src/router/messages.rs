//! Messages about the connections of a router.

use runtap_model::Message;
use runtap_model::units::{Seconds, Things};

use super::Notice;

/// Returns the message for a notice. Warnings are for all users; the other notices are details.
pub fn notice(notice: &Notice) -> Message {
    match notice {
        Notice::Runtime { process_id } => {
            Message::Detail(format!("the runtime of process {process_id} is connected"))
        }
        Notice::RuntimeGone { process_id } => {
            Message::Detail(format!("the runtime of process {process_id} has disconnected"))
        }
        Notice::Another { process_id, routed } => Message::Warning(format!(
            "process {process_id} has connected and is waiting: this router already represents the \
             runtime of process {routed}; start another router on another port for process {process_id}"
        )),
        Notice::NoPlace { process_id, places, count } => {
            let text = format!(
                "disconnected the runtime of process {process_id}: the limit of {places} connected \
                 runtimes is reached, which users and machines share ({count} disconnected so far); start \
                 another router on another port"
            );
            // A runtime without a place connects again and again.
            if *count == 1 { Message::Warning(text) } else { Message::Detail(text) }
        }
        Notice::NoRuntime { who, why } => Message::Warning(format!(
            "rejected a connection from {who}, which is not a .NET runtime: {why}; only runtimes should connect to this address"
        )),
        Notice::Unproven { who, why } => Message::Warning(format!(
            "rejected a connection from {who}: {why}; if it is yours, give both sides the same token file"
        )),
        Notice::Waiting(clients) => {
            let verb = if *clients == 1 { "is" } else { "are" };
            let clients = Things(*clients as u64, "client");
            Message::Detail(format!("the runtime is busy: {clients} {verb} waiting"))
        }
        Notice::Refused { who, why } => Message::Detail(format!("{who}: not forwarded: {why}")),
        Notice::NotReached { who, command, why } => Message::Warning(format!("{who}: {command}: {why}")),
        Notice::Broken { who, command, why } => Message::Detail(format!("{who}: {command}: {why}")),
        Notice::Carried { who, command, error, bytes, took } => {
            let outcome = match error {
                Some(error) => format!("rejected by the runtime with {}", error.hresult),
                None => format!("{bytes} bytes"),
            };
            Message::Detail(format!("{who}: {command}: {outcome}, {:.3}", Seconds(*took)))
        }
        Notice::ForeignTool { uid } => Message::Warning(format!(
            "the tool's port belongs to a process of user {uid}, so nothing was sent to it; run the tool as your own user"
        )),
    }
}
