//! Profilers, section "Profiler Commands" of the specification. The shared folder's profiler records its callbacks, and
//! fails to load if its data begins with "fail".

use std::fs;

use runtap_diag_proto::{AttachProfiler, Request, StartupProfiler, Uuid};
use runtap_testkit::{Skip, shared_dir};

use super::{ALL, CORE31, NO_PORT_31, Note, OWN_SERVER, RUNTIMES, Row};
use crate::cell::{ANSWERED, Found, NOT_SENT, Stop};
use crate::ours::CLASS;
use crate::room::Room;
use crate::target::Target;

pub(super) const ROWS: &[Row] = &[
    Row {
        request: "0x0301 AttachProfiler",
        checked: "the profiler notes its data, and that it is attached",
        section: "AttachProfiler",
        since: 3,
        run: attached,
        notes: &[],
    },
    Row {
        request: "0x0301 AttachProfiler: one that refuses",
        checked: "its own code; a second one attaches",
        section: "AttachProfiler",
        since: 3,
        run: refusing,
        notes: &[Note {
            of: ALL,
            cell: "PROFILER_CANCEL_ACTIVATION",
            why: "Right: the profiler's error code is passed on.",
        }],
    },
    Row {
        request: "0x0301 AttachProfiler: a second one",
        checked: "the error",
        section: "AttachProfiler",
        since: 3,
        run: second,
        notes: &[Note {
            of: ALL,
            cell: "PROFILER_ALREADY_ACTIVE",
            why: "Right: a process can have only one profiler.",
        }],
    },
    Row {
        request: "0x0301 AttachProfiler: a library that is not there",
        checked: "the error",
        section: "AttachProfiler",
        since: 3,
        run: |room| failing(room, CLASS, &room.path("missing.so")),
        notes: &[Note {
            of: ALL,
            cell: NOT_SENT,
            why: "runtap checks the library in the target's file system first. A runtime would reply \
                  MOD_NOT_FOUND.",
        }],
    },
    Row {
        request: "0x0301 AttachProfiler: a class that the library does not have",
        checked: "the error",
        section: "AttachProfiler",
        since: 3,
        run: |room| failing(room, Uuid::from_u128(1), &library()?),
        notes: &[Note {
            of: ALL,
            cell: "CLASS_NOT_AVAILABLE",
            why: "Right: the library was loaded and does not support the class id; its code is passed on.",
        }],
    },
    Row {
        request: "0x0301 AttachProfiler: while suspended at startup",
        checked: "the error",
        section: "AttachProfiler",
        since: 3,
        run: attached_while_suspended,
        notes: &[
            NO_PORT_31,
            Note {
                of: RUNTIMES,
                cell: "NOT_YET_AVAILABLE",
                why: "Right: no profiler can be attached before the runtime has started; 0x0302 sets one \
                      for the start.",
            },
            Note {
                of: OWN_SERVER,
                cell: ANSWERED,
                why: "This program has no runtime that must start first, so it gets the request immediately.",
            },
        ],
    },
    Row {
        request: "0x0302 StartupProfiler: while suspended at startup",
        checked: "the profiler notes its start after the resume",
        section: "Commands",
        since: 6,
        run: at_startup,
        notes: &[NO_PORT_31],
    },
    Row {
        request: "0x0302 StartupProfiler: of a running program",
        checked: "the profiler notes its start",
        section: "Commands",
        since: 6,
        run: too_late,
        notes: &[
            Note {
                of: RUNTIMES,
                cell: NOT_SENT,
                why: "runtap checks whether the runtime has started. A runtime that has started replies \
                      OK, and stores the profiler for a start that is over.",
            },
            Note {
                of: CORE31,
                cell: "BAD_ENCODING",
                why: "The runtime decodes every id of the profiler set as 0x0301, for which the payload is \
                      invalid; section “Errors” has UNKNOWN_COMMAND for an unknown id.",
            },
            Note {
                of: OWN_SERVER,
                cell: ANSWERED,
                why: "runtap sends the request, because it finds no .NET runtime that has started; the \
                      program decides how to handle it after its start.",
            },
        ],
    },
];

fn library() -> Result<String, Stop> {
    let shared = shared_dir().ok_or_else(|| Skip::because("there is no shared folder"))?;
    Ok(shared.join("apps/dotnet/profiler/bin/libdemoprofiler.so").to_string_lossy().into_owned())
}

fn attach(data: &[u8]) -> Result<Request, Stop> {
    let data = data.to_vec();
    Ok(Request::AttachProfiler(AttachProfiler {
        class_id: CLASS,
        path: library()?,
        timeout_ms: 10_000,
        client_data: data,
    }))
}

/// Retries during the first moments of a runtime, as the client does.
fn startup(room: &Room<'_>, target: &Target<'_>) -> Result<(), Stop> {
    let profiler = StartupProfiler { class_id: CLASS, path: library()? };
    Ok(room.run(target.client().startup_profiler(&profiler))?)
}

/// Returns the callbacks that the profiler recorded.
fn notes(room: &Room<'_>) -> Vec<String> {
    let text = fs::read_to_string(room.file("profiler")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Returns whether runtap's server, which loads no library, received the request; `None` for a real runtime.
fn has_received(target: &Target<'_>, line: &str) -> Option<bool> {
    target.requests().map(|requests| requests.iter().any(|each| each == line))
}

fn attached(room: &Room<'_>) -> Found {
    let target = room.target()?;
    target.ask(attach(&[1, 2, 0xff])?)?;
    Ok(has_received(&target, "attach [1, 2, 255]")
        .unwrap_or_else(|| notes(room) == ["attach 3 0102ff", "attached"]))
}

fn refusing(room: &Room<'_>) -> Found {
    let target = room.target()?;
    let refused = target.ask(attach(b"fail")?);
    target.ask(attach(b"")?)?;
    refused.map(|_| false)
}

fn second(room: &Room<'_>) -> Found {
    let target = room.target()?;
    target.ask(attach(b"")?)?;
    target.ask(attach(b"")?).map(|_| false)
}

fn failing(room: &Room<'_>, class_id: Uuid, path: &str) -> Found {
    let target = room.target()?;
    let profiler =
        AttachProfiler { class_id, path: path.to_owned(), timeout_ms: 10_000, client_data: Vec::new() };
    target.ask(Request::AttachProfiler(profiler)).map(|_| false)
}

fn attached_while_suspended(room: &Room<'_>) -> Found {
    let target = room.suspended()?;
    target.ask(attach(b"")?).map(|_| true)
}

fn at_startup(room: &Room<'_>) -> Found {
    let mut target = room.suspended()?;
    startup(room, &target)?;
    target.resume()?;
    Ok(has_received(&target, &format!("startup {CLASS}")).unwrap_or_else(|| notes(room) == ["init"]))
}

fn too_late(room: &Room<'_>) -> Found {
    let mut target = room.target()?;
    startup(room, &target)?;
    target.round();
    Ok(has_received(&target, &format!("startup {CLASS}")).unwrap_or_else(|| notes(room) == ["init"]))
}
