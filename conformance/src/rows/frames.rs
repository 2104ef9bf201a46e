//! Undefined command sets and ids, and invalid headers: sections "Headers" and "Errors" of the specification. Harmless
//! on every runtime: such messages are rejected before the payload is examined.

use runtap_diag_proto::{Command, Header, MAGIC};
use runtap_wire::Writer;

use super::{ALL, CORE31, Note, Row};
use crate::cell::{Found, NOT_KNOWN, Stop};
use crate::room::Room;
use crate::wire;

const RIGHT: Note = Note {
    of: ALL,
    cell: NOT_KNOWN,
    why: "Right: UNKNOWN_COMMAND is the reply to an unknown set or id (section “Errors”).",
};

pub(super) const ROWS: &[Row] = &[
    Row {
        request: "0x0500: a set that is none",
        checked: "the error",
        section: "Errors",
        since: 3,
        run: |room| command(room, 0x0500),
        notes: &[RIGHT],
    },
    Row {
        request: "0x01ff: no dump command",
        checked: "the error",
        section: "Errors",
        since: 3,
        run: |room| command(room, 0x01ff),
        notes: &[RIGHT],
    },
    Row {
        request: "0x02ff: no EventPipe command",
        checked: "the error",
        section: "Errors",
        since: 3,
        run: |room| command(room, 0x02ff),
        notes: &[RIGHT],
    },
    Row {
        request: "0x03ff: no profiler command",
        checked: "the error",
        section: "Errors",
        since: 3,
        run: |room| command(room, 0x03ff),
        notes: &[
            RIGHT,
            Note {
                of: CORE31,
                cell: "BAD_ENCODING",
                why: "The runtime decodes every id of the profiler set as 0x0301, for which the payload is \
                      invalid; section “Errors” has UNKNOWN_COMMAND for an unknown id.",
            },
        ],
    },
    Row {
        request: "0x04ff: no process command",
        checked: "the error",
        section: "Errors",
        since: 3,
        run: |room| command(room, 0x04ff),
        notes: &[RIGHT],
    },
    Row {
        request: "another magic",
        checked: "the error",
        section: "Headers",
        since: 3,
        run: |room| message(room, *b"DOTNET_IPC_V2\0", 20),
        notes: &[Note {
            of: ALL,
            cell: "UNKNOWN_MAGIC",
            why: "Right: the first 14 bytes are not those of this protocol (sections “Headers” and “Errors”).",
        }],
    },
    Row {
        request: "a size of 19",
        checked: "the error",
        section: "Headers",
        since: 3,
        run: |room| message(room, MAGIC, 19),
        notes: &[Note {
            of: ALL,
            cell: "BAD_ENCODING",
            why: "Right: a message is at least as long as its header (sections “Headers” and “Errors”).",
        }],
    },
];

fn command(room: &Room<'_>, number: u16) -> Found {
    send(room, &Header { magic: MAGIC, size: 20, command: Command(number), reserved: 0 })
}

fn message(room: &Room<'_>, magic: [u8; 14], size: u16) -> Found {
    send(room, &Header { magic, size, command: Command::PROCESS_INFO, reserved: 0 })
}

fn send(room: &Room<'_>, header: &Header) -> Found {
    let target = room.target()?;
    let mut w = Writer::new();
    header.encode(&mut w);
    let error = wire::refusal(room, target.endpoint(), w.as_bytes())?;
    // The runtime must still answer the next request.
    target.must_answer()?;
    Err(Stop::from(error.hresult))
}
