//! Sessions, section "EventPipe Commands" of the specification. Each session is stopped, and its stream read up to the
//! end mark.

use std::collections::BTreeSet;
use std::fs::File;

use runtap_diag_proto::{
    Buffering, EventFilter, Format, Level, Provider, Reply, Request, SessionConfig, SessionForm, SessionId,
    Tracepoints, UserEventsConfig, UserEventsProvider,
};

use super::{ALL, NO_PORT_31, Note, OWN_SERVER, RUNTIMES, Row};
use crate::cell::{ANSWERED, Found, NOT_KNOWN};
use crate::column::Key;
use crate::recording::{METHODS, RUNDOWN, Seen, mentions};
use crate::room::Room;
use crate::target::Target;

/// The event that filters select, and another event of each round.
const FILTERED: u32 = 2;
const OTHER: u32 = 3;

/// The runtime's own provider, its loader events, and the first assembly that every program loads.
const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
const LOADER: u64 = 0x8;
const FIRST_ASSEMBLY: &str = "System.Private.CoreLib";

const SESSIONS: u64 = 64;

const BUFFERING: Note = Note {
    of: RUNTIMES,
    cell: NOT_KNOWN,
    why: "0x0207 CollectTracing6 comes with .NET 11; runtap's server already supports it. The \
          specification does not contain it yet: its last such section is “CollectTracing5”.",
};

const BUFFERING_HERE: Note = Note {
    of: OWN_SERVER,
    cell: ANSWERED,
    why: "Newer than the released runtimes, so that tools for .NET 11 can be tested. In mode 1, the \
          program's threads wait for space for a limited time (`Limits::blocked_writer`), then events are \
          lost and counted.",
};

pub(super) const ROWS: &[Row] = &[
    Row {
        request: "0x0201 StopTracing",
        checked: "the stream's end mark",
        section: "StopTracing",
        since: 3,
        run: |room| recorded(room, SessionForm::CollectTracing2, |_| {}, |_, _| true),
        notes: &[],
    },
    Row {
        request: "0x0201 StopTracing: of a session that is not there",
        checked: "the same id in the answer",
        section: "StopTracing",
        since: 3,
        run: |room| {
            let id = SessionId(0x1234);
            Ok(room.target()?.ask(Request::StopTracing(id))? == Reply::SessionStopped(id))
        },
        notes: &[],
    },
    Row {
        request: "0x0202 CollectTracing: format 1, nettrace",
        checked: "events with stacks, rundown, end mark",
        section: "CollectTracing",
        since: 3,
        run: |room| recorded(room, SessionForm::CollectTracing, |_| {}, has_stacks_and_rundown),
        notes: &[],
    },
    Row {
        request: "0x0202 CollectTracing: format 0, NetPerf",
        checked: "events with stacks, rundown, end mark",
        section: "CollectTracing",
        since: 3,
        run: |room| {
            recorded(
                room,
                SessionForm::CollectTracing,
                |config| config.format = Format::NetPerf,
                has_stacks_and_rundown,
            )
        },
        notes: &[],
    },
    Row {
        request: "0x0202 CollectTracing: a 65th session",
        checked: "the error",
        section: "CollectTracing",
        since: 3,
        run: one_too_many,
        notes: &[Note {
            of: ALL,
            cell: "E_FAIL",
            why: "Right: the maximum is 64 sessions at a time. The specification has no code for this \
                  error; all runtimes use this code.",
        }],
    },
    Row {
        request: "0x0203 CollectTracing2: with rundown",
        checked: "events, rundown, end mark",
        section: "CollectTracing2",
        since: 3,
        run: |room| recorded(room, SessionForm::CollectTracing2, |_| {}, has_stacks_and_rundown),
        notes: &[],
    },
    Row {
        request: "0x0203 CollectTracing2: without rundown",
        checked: "events, no rundown, end mark",
        section: "CollectTracing2",
        since: 3,
        run: |room| {
            recorded(
                room,
                SessionForm::CollectTracing2,
                |config| config.rundown_keyword = 0,
                |events, _| rundown(events).next().is_none(),
            )
        },
        notes: &[],
    },
    Row {
        request: "0x0203 CollectTracing2: while suspended at startup",
        checked: "events from the program's first one on",
        section: "Diagnostic Ports",
        since: 3,
        run: from_the_start,
        notes: &[NO_PORT_31],
    },
    Row {
        request: "0x0204 CollectTracing3: without stacks",
        checked: "events, none with a stack",
        section: "CollectTracing3",
        since: 9,
        run: |room| {
            recorded(
                room,
                SessionForm::CollectTracing3,
                |config| config.stackwalk = false,
                |events, provider| of(events, provider).all(|event| event.frames == 0),
            )
        },
        notes: &[],
    },
    Row {
        request: "0x0205 CollectTracing4: rundown of the loader only",
        checked: "events, rundown without methods",
        section: "CollectTracing4",
        since: 9,
        run: |room| {
            recorded(
                room,
                SessionForm::CollectTracing4,
                |config| config.rundown_keyword = LOADER,
                |events, _| {
                    rundown(events).next().is_some() && rundown(events).all(|event| event.id != METHODS)
                },
            )
        },
        notes: &[],
    },
    Row {
        request: "0x0206 CollectTracing5: an event filter that lets one event through",
        checked: "that event and no other",
        section: "CollectTracing5",
        since: 10,
        run: |room| filtered(room, &EventFilter::only([FILTERED]), |ids| *ids == BTreeSet::from([FILTERED])),
        notes: &[],
    },
    Row {
        request: "0x0206 CollectTracing5: an event filter that holds one event back",
        checked: "other events, and not that one",
        section: "CollectTracing5",
        since: 10,
        run: |room| {
            filtered(room, &EventFilter::except([FILTERED]), |ids| {
                ids.contains(&OTHER) && !ids.contains(&FILTERED)
            })
        },
        notes: &[],
    },
    Row {
        request: "0x0206 CollectTracing5: into user_events",
        checked: "the error: the passed descriptor is one of /dev/null",
        section: "CollectTracing5",
        since: 10,
        run: user_events,
        notes: &[
            Note {
                of: &[Key::Net10],
                cell: "E_FAIL",
                why: "Right: the runtime accepted the request and the descriptor after it, and could not \
                      register a tracepoint there (section “passing_file_descriptor”). Passing \
                      `user_events_data` itself needs a Linux kernel \
                      with CONFIG_USER_EVENTS.",
            },
            Note {
                of: OWN_SERVER,
                cell: "NOTSUPPORTED",
                why: "runtap's server writes no tracepoints. It reads the request, accepts no descriptor, \
                      and replies like a runtime that was built without the feature (section “Errors” \
                      leaves such codes open).",
            },
        ],
    },
    Row {
        request: "0x0207 CollectTracing6: buffering mode 0, drop",
        checked: "events, end mark",
        section: "CollectTracing5",
        since: 11,
        run: |room| recorded(room, SessionForm::CollectTracing6, |_| {}, |_, _| true),
        notes: &[BUFFERING, BUFFERING_HERE],
    },
    Row {
        request: "0x0207 CollectTracing6: buffering mode 1, block",
        checked: "events, end mark",
        section: "CollectTracing5",
        since: 11,
        run: |room| {
            recorded(
                room,
                SessionForm::CollectTracing6,
                |config| config.buffering = Buffering::Block,
                |_, _| true,
            )
        },
        notes: &[BUFFERING, BUFFERING_HERE],
    },
];

/// Returns the configuration of a small session with the program's own events.
fn config(target: &Target<'_>) -> SessionConfig {
    let mut config = SessionConfig::new(vec![Provider::new(target.about.provider, u64::MAX, Level::Verbose)]);
    config.buffer_mb = 16;
    config
}

fn of<'a>(events: &'a [Seen], provider: &str) -> impl Iterator<Item = &'a Seen> {
    events.iter().filter(move |event| event.provider == provider)
}

fn rundown(events: &[Seen]) -> impl Iterator<Item = &Seen> {
    of(events, RUNDOWN)
}

fn has_stacks_and_rundown(events: &[Seen], provider: &str) -> bool {
    let with_stack = of(events, provider).any(|event| event.frames > 0);
    with_stack && rundown(events).any(|event| event.id == METHODS)
}

/// Records one round; the session must contain its events and end mark, and satisfy `looks_right`.
fn recorded(
    room: &Room<'_>,
    form: SessionForm,
    change: impl FnOnce(&mut SessionConfig),
    looks_right: impl FnOnce(&[Seen], &str) -> bool,
) -> Found {
    let mut target = room.target()?;
    let mut config = config(&target);
    change(&mut config);
    let recording = target.record(form, &config)?;
    let Some(events) = recording.events()? else { return Ok(false) };
    Ok(of(&events, target.about.provider).next().is_some() && looks_right(&events, target.about.provider))
}

fn filtered(
    room: &Room<'_>,
    filter: &EventFilter,
    looks_right: impl FnOnce(&BTreeSet<u32>) -> bool,
) -> Found {
    let change = |config: &mut SessionConfig| {
        for provider in &mut config.providers {
            provider.filter = Some(filter.clone());
        }
    };
    recorded(room, SessionForm::CollectTracing5, change, |events, provider| {
        looks_right(&of(events, provider).map(|event| event.id).collect())
    })
}

fn one_too_many(room: &Room<'_>) -> Found {
    let target = room.target()?;
    let mut config = config(&target);
    (config.buffer_mb, config.rundown_keyword) = (1, 0);
    let mut sessions = Vec::new();
    for _ in 0..SESSIONS {
        sessions.push(room.run(target.client().start_session_as(SessionForm::CollectTracing2, &config))?);
    }
    room.run(target.client().start_session_as(SessionForm::CollectTracing, &config))?;
    Ok(false)
}

fn user_events(room: &Room<'_>) -> Found {
    let target = room.target()?;
    let provider = Provider::new(target.about.provider, u64::MAX, Level::Verbose);
    let tracepoints = Tracepoints::all_to("runtap_conformance");
    let config = UserEventsConfig::new(vec![UserEventsProvider { provider, tracepoints }]);
    let descriptor = File::options().read(true).write(true).open("/dev/null")?;
    room.run(target.client().start_user_events(&config, descriptor.into()))?;
    Ok(true)
}

fn from_the_start(room: &Room<'_>) -> Found {
    let mut target = room.suspended()?;
    let mut config = config(&target);
    config.providers.push(Provider::new(RUNTIME, LOADER, Level::Informational));
    let ours = target.requests().is_some();
    let recording = target.record_start(SessionForm::CollectTracing2, &config)?;
    let Some(events) = recording.events()? else { return Ok(false) };
    let first = of(&events, RUNTIME).any(|event| mentions(&event.payload, FIRST_ASSEMBLY));
    Ok((first || ours) && of(&events, target.about.provider).next().is_some())
}
