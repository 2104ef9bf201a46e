//! CollectTracing 1 to 6 (0x0202 to 0x0207): the payload that starts a streaming session.
//!
//! ```text
//! 0202  u32 buffer MB  u32 format                                       providers
//! 0203  u32 buffer MB  u32 format  u8 rundown                           providers
//! 0204  u32 buffer MB  u32 format  u8 rundown           u8 stackwalk    providers
//! 0205  u32 buffer MB  u32 format  u64 rundown keyword  u8 stackwalk    providers
//! 0206  u32 session type 0, then as 0205, each provider with an event filter
//! 0207  as 0206, then u32 buffering mode
//! ```
//!
//! `user_events.rs` has the payload of session type 1. The layout follows from the [`SessionForm`] alone: 0204 in the
//! layout of 0205, or the reverse, crashes .NET 9.

use runtap_wire::{DecodeError, DecodeErrorKind, Reader, Writer};

use super::{
    Buffering, DEFAULT_RUNDOWN_KEYWORD, Format, RundownFallback, SessionConfig, SessionForm,
    UserEventsConfig, providers, user_events,
};
use crate::{EncodeError, error::unexpected};

/// The events are sent over the connection.
const SESSION_TYPE_STREAMING: u32 = 0;

/// The events are written to tracepoints of the kernel.
pub(super) const SESSION_TYPE_USER_EVENTS: u32 = 1;

/// The destination of a session's events, with its configuration.
pub(super) enum Destination {
    Stream(SessionConfig),
    UserEvents(UserEventsConfig),
}

pub(super) fn encode(w: &mut Writer, form: SessionForm, config: &SessionConfig) -> Result<(), EncodeError> {
    config.validate()?;
    if form.has_session_type() {
        w.u32(SESSION_TYPE_STREAMING);
    }
    w.u32(config.buffer_mb);
    w.u32(match config.format {
        Format::NetPerf => 0,
        Format::Nettrace => 1,
    });
    let rundown = config.effective_rundown(form);
    if form.has_rundown_keyword() {
        w.u64(rundown);
    } else if form.has_rundown_flag() {
        w.u8(u8::from(rundown != 0));
    }
    if form.has_stackwalk() {
        w.u8(u8::from(config.stackwalk));
    }
    providers::encode(w, &config.providers, form.has_filters());
    if form.has_buffering() {
        w.u32(match config.buffering {
            Buffering::Drop => 0,
            Buffering::Block => 1,
        });
    }
    Ok(())
}

/// Decodes a payload as a runtime does. Fields that the form lacks get the value that it implies.
pub(super) fn decode(r: &mut Reader<'_>, form: SessionForm) -> Result<Destination, DecodeError> {
    if form.has_session_type() {
        let offset = r.offset();
        match r.u32("session type")? {
            SESSION_TYPE_STREAMING => {}
            SESSION_TYPE_USER_EVENTS => return user_events::decode(r).map(Destination::UserEvents),
            number => return Err(unexpected(offset, "session type", number, "0 or 1")),
        }
    }
    decode_stream(r, form).map(Destination::Stream)
}

fn decode_stream(r: &mut Reader<'_>, form: SessionForm) -> Result<SessionConfig, DecodeError> {
    let offset = r.offset();
    let buffer_mb = r.u32("circular buffer size")?;
    if buffer_mb == 0 {
        let kind = DecodeErrorKind::TooSmall { value: 0, least: 1 };
        return Err(DecodeError::new(offset, "circular buffer size", kind));
    }
    let offset = r.offset();
    let format = match r.u32("format")? {
        0 => Format::NetPerf,
        1 => Format::Nettrace,
        number => return Err(unexpected(offset, "format", number, "0 or 1")),
    };
    let rundown_keyword = if form.has_rundown_keyword() {
        r.u64("rundown keyword")?
    } else if form.has_rundown_flag() && r.u8("rundown")? == 0 {
        0
    } else {
        DEFAULT_RUNDOWN_KEYWORD
    };
    let stackwalk = !form.has_stackwalk() || r.u8("stackwalk")? != 0;
    let providers = providers::decode(r, form.has_filters())?;
    let offset = r.offset();
    let buffering = if form.has_buffering() {
        match r.u32("buffering mode")? {
            0 => Buffering::Drop,
            1 => Buffering::Block,
            number => return Err(unexpected(offset, "buffering mode", number, "0 or 1")),
        }
    } else {
        Buffering::Drop
    };
    Ok(SessionConfig {
        providers,
        buffer_mb,
        format,
        rundown_keyword,
        rundown_fallback: RundownFallback::default(),
        stackwalk,
        buffering,
    })
}

#[cfg(test)]
#[path = "collect_tracing_tests.rs"]
mod tests;
