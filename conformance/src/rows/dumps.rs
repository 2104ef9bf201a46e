//! Core dumps, section "Dump Commands" of the specification.

use runtap_diag_proto::{CoreDump, DumpFlags, DumpForm, DumpType, Reply, Request};

use super::{NO_PORT_31, Note, OWN_SERVER, RUNTIMES, Row};
use crate::cell::{ANSWERED, Found, NO_EFFECT, Stop};
use crate::column::Key;
use crate::core_file;
use crate::room::Room;
use crate::target::Target;
use crate::wire;

pub(super) const ROWS: &[Row] = &[
    Row {
        request: "0x0101 GenerateCoreDump: type 1, mini",
        checked: "a core file of the process",
        section: "CreateCoreDump",
        since: 3,
        run: |room| written(room, DumpForm::GenerateCoreDump, DumpType::MINI, DumpFlags::NONE),
        notes: &[],
    },
    Row {
        request: "0x0102 GenerateCoreDump2: type 1, crash report",
        checked: "a core file of the process, and the report beside it",
        section: "Commands",
        since: 6,
        run: |room| written(room, DumpForm::GenerateCoreDump2, DumpType::MINI, DumpFlags::CRASH_REPORT),
        notes: &[],
    },
    Row {
        request: "0x0103 GenerateCoreDump3: type 1, mini",
        checked: "a core file of the process",
        section: "Commands",
        since: 7,
        run: |room| written(room, DumpForm::GenerateCoreDump3, DumpType::MINI, DumpFlags::NONE),
        notes: &[],
    },
    Row {
        request: "0x0103 GenerateCoreDump3: type 2, with heap",
        checked: "a core file of the process",
        section: "Commands",
        since: 7,
        run: |room| written(room, DumpForm::GenerateCoreDump3, DumpType::WITH_HEAP, DumpFlags::NONE),
        notes: &[],
    },
    Row {
        request: "0x0103 GenerateCoreDump3: type 3, triage",
        checked: "a core file of the process",
        section: "Commands",
        since: 7,
        run: |room| written(room, DumpForm::GenerateCoreDump3, DumpType::TRIAGE, DumpFlags::NONE),
        notes: &[],
    },
    Row {
        request: "0x0103 GenerateCoreDump3: type 4, full",
        checked: "a core file of the process",
        section: "Commands",
        since: 7,
        run: |room| written(room, DumpForm::GenerateCoreDump3, DumpType::FULL, DumpFlags::NONE),
        notes: &[],
    },
    Row {
        request: "0x0103 GenerateCoreDump3: into a folder that is not there",
        checked: "an error with a text",
        section: "Commands",
        since: 7,
        run: nowhere,
        notes: &[Note {
            of: &Key::ALL,
            cell: "E_FAIL",
            why: "Right: nothing can be written there. The text after the code, which only this form has, \
                  reports this.",
        }],
    },
    Row {
        request: "0x0103 GenerateCoreDump3: type 1, while suspended at startup",
        checked: "a core file of the process",
        section: "Commands",
        since: 7,
        run: |room| suspended(room, DumpType::MINI),
        notes: &[
            NO_PORT_31,
            Note {
                of: RUNTIMES,
                cell: NO_EFFECT,
                why: "The runtime replies OK and writes nothing: createdump can't read a process that has \
                      not started. runtap therefore does not send the request, and checks the file after \
                      every dump.",
            },
            Note {
                of: OWN_SERVER,
                cell: ANSWERED,
                why: "The program writes its dump itself, suspended or not.",
            },
        ],
    },
    Row {
        request: "0x0103 GenerateCoreDump3: type 4, while suspended at startup",
        checked: "a core file of the process",
        section: "Commands",
        since: 7,
        run: |room| suspended(room, DumpType::FULL),
        notes: &[NO_PORT_31],
    },
];

fn written(room: &Room<'_>, form: DumpForm, kind: DumpType, flags: DumpFlags) -> Found {
    let target = room.target()?;
    let dump = CoreDump::new(room.path("core"), kind).with_flags(flags);
    target.ask(Request::GenerateCoreDump { form, dump: dump.clone() })?;
    let report = !flags.contains(DumpFlags::CRASH_REPORT) || room.file("core.crashreport.json").is_file();
    is_there(room, &target, &dump).map(|core| core && (report || target.requests().is_some()))
}

fn is_there(room: &Room<'_>, target: &Target<'_>, dump: &CoreDump) -> Found {
    if let Some(requests) = target.requests() {
        return Ok(requests == [format!("dump {} {} {}", dump.path, dump.kind.0, dump.flags.0)]);
    }
    let core = room.file("core");
    Ok(core.is_file() && core_file::process_id(&core)? == Some(target.id()))
}

/// Skips the client's check of the directory.
fn nowhere(room: &Room<'_>) -> Found {
    let target = room.target()?;
    let dump = CoreDump::new(room.path("missing/core"), DumpType::MINI);
    let request = Request::GenerateCoreDump { form: DumpForm::GenerateCoreDump3, dump };
    match wire::ask(room, target.endpoint(), &request)? {
        Ok(reply) => Ok(reply != Reply::Done),
        Err(error) if error.message.as_ref().is_some_and(String::is_empty) => Ok(false),
        Err(error) => Err(Stop::from(error.hresult)),
    }
}

/// Skips the client's check of the process.
fn suspended(room: &Room<'_>, kind: DumpType) -> Found {
    let target = room.suspended()?;
    let dump = CoreDump::new(room.path("core"), kind);
    let request = Request::GenerateCoreDump { form: DumpForm::GenerateCoreDump3, dump: dump.clone() };
    wire::ask(room, target.endpoint(), &request)?.map_err(|error| error.hresult)?;
    is_there(room, &target, &dump)
}
