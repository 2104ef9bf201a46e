//! The messages: one file per command, plus the header, the names of commands and the error codes.
//!
//! [`Request`] and [`Reply`] join them; how each payload is laid out stands in the file of its command.

mod advertise;
mod collect_tracing;
mod command;
mod header;
mod hresult;
mod process_environment;
mod process_info;
mod providers;
mod reply;
mod request;
mod resume_runtime;
mod session;
mod stop_tracing;

use runtap_wire::{DecodeError, Reader, Utf16};

pub use self::{
    advertise::Advertise,
    command::{Command, CommandSet},
    header::{HEADER_LEN, Header, MAGIC, MAX_MESSAGE},
    hresult::Hresult,
    process_environment::{EnvironmentDecoder, MAX_ENVIRONMENT, Variable},
    process_info::{InfoForm, ProcessInfo},
    providers::{EventFilter, Level, MAX_FILTER_IDS, MAX_PROVIDERS, Provider, merge_providers},
    reply::{ErrorReply, Reply},
    request::Request,
    session::{
        Buffering, DEFAULT_RUNDOWN_KEYWORD, Downgrade, Format, RundownFallback, SessionConfig, SessionForm,
    },
    stop_tracing::SessionId,
};
pub(crate) use self::{
    header::{Frame, FrameError, frame},
    reply::decode_ok,
};

/// A string of the protocol. `None` is the null string (count 0). Units from the first NUL on are cut off, as the
/// runtime does, and unpaired surrogates become U+FFFD.
fn string(r: &mut Reader<'_>, what: &'static str) -> Result<Option<String>, DecodeError> {
    let start = r.clone();
    let units = r.u32(what)?;
    // A count that does not fit is reported where the string begins, and the cursor stays there.
    match r.utf16_counted(units, what) {
        Ok(text) => Ok(text.map(Utf16::until_nul).map(|text| text.to_string())),
        Err(error) => {
            *r = start;
            Err(error)
        }
    }
}
