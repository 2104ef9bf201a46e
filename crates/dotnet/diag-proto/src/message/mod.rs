//! The messages: one file per command, and files for the header, the command names and the error codes.
//!
//! [`Request`] and [`Reply`] combine them; the file of each command documents the layout of its payload.

mod advertise;
mod attach_profiler;
mod collect_tracing;
mod command;
mod core_dump;
mod header;
mod hresult;
mod perf_map;
mod process_environment;
mod process_info;
pub(crate) mod providers;
mod reply;
mod request;
mod result;
mod resume_runtime;
mod session;
mod set_environment_variable;
mod startup_hook;
mod startup_profiler;
mod stop_tracing;
mod tracepoints;
mod user_events;
mod verbatim;

use runtap_wire::{DecodeError, DecodeErrorKind, Reader, Utf16};

use crate::EncodeError;

pub use self::{
    advertise::Advertise,
    attach_profiler::AttachProfiler,
    command::{Command, CommandSet},
    core_dump::{CoreDump, DumpFlags, DumpForm, DumpType},
    header::{HEADER_LEN, Header, MAGIC, MAX_MESSAGE},
    hresult::Hresult,
    perf_map::PerfMapType,
    process_environment::{EnvironmentDecoder, MAX_ENVIRONMENT, Variable},
    process_info::{InfoForm, ProcessInfo},
    providers::{EventFilter, Level, MAX_FILTER_IDS, MAX_PROVIDERS, Provider, merge_providers},
    reply::{ErrorReply, Reply},
    request::Request,
    session::{
        Buffering, DEFAULT_RUNDOWN_KEYWORD, Downgrade, Format, RundownFallback, SessionConfig, SessionForm,
    },
    startup_profiler::StartupProfiler,
    stop_tracing::SessionId,
    tracepoints::{TracepointError, TracepointSet, Tracepoints},
    user_events::{UserEventsConfig, UserEventsProvider},
    verbatim::Verbatim,
};
pub(crate) use self::{
    header::{Frame, FrameError, frame},
    process_environment::continuation_size,
    reply::decode_ok,
};

/// Reads a string of the protocol. `None` is the null string (count 0). As in the runtime, the string is truncated at
/// the first NUL; unpaired surrogates become U+FFFD.
pub(crate) fn string(r: &mut Reader<'_>, what: &'static str) -> Result<Option<String>, DecodeError> {
    let start = r.clone();
    let units = r.u32(what)?;
    // A count that does not fit is reported at the start of the string, and the reader stays there.
    match r.utf16_counted(units, what) {
        Ok(text) => Ok(text.map(Utf16::until_nul).map(|text| text.to_string())),
        Err(error) => {
            *r = start;
            Err(error)
        }
    }
}

/// Reads a string that must not be null.
fn not_null(r: &mut Reader<'_>, what: &'static str) -> Result<String, DecodeError> {
    let offset = r.offset();
    string(r, what)?.ok_or_else(|| DecodeError::new(offset, what, DecodeErrorKind::Invalid("is null")))
}

/// Rejects a text that a runtime would truncate.
fn no_nul<'a>(field: &'static str, text: &'a str) -> Result<&'a str, EncodeError> {
    if text.contains('\0') { Err(EncodeError::EmbeddedNul { field }) } else { Ok(text) }
}

/// Rejects an empty text, and one that a runtime would truncate.
pub(crate) fn required<'a>(field: &'static str, text: &'a str) -> Result<&'a str, EncodeError> {
    if text.is_empty() { Err(EncodeError::Empty { field }) } else { no_nul(field, text) }
}

/// Reads the number of elements of a list; at most `limit`.
fn bounded_count(r: &mut Reader<'_>, what: &'static str, limit: usize) -> Result<u32, DecodeError> {
    let offset = r.offset();
    let count = r.u32(what)?;
    if usize::try_from(count).is_ok_and(|n| n <= limit) {
        return Ok(count);
    }
    let kind = DecodeErrorKind::TooLarge { value: u64::from(count), limit: limit as u64 };
    Err(DecodeError::new(offset, what, kind))
}

/// Converts a count that was checked against a much lower limit.
fn wire_count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
