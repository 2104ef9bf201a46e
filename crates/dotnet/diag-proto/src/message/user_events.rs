//! CollectTracing5 and 6 with session type 1: a session whose events go into tracepoints of the Linux kernel
//! (user_events) instead of back to the client. Section "User_events Session Payload" of the specification.
//!
//! ```text
//! u32 session type 1  u64 rundown keyword  u32 n  n × { provider with event filter  tracepoints }
//! ```
//!
//! **The runtime then waits, without a time limit and without serving other clients, for a message of one byte that
//! carries a descriptor of `user_events_data`.** The descriptor must be in a separate message: with the request itself it
//! is lost. [`client::Client::with_descriptor`](crate::client::Client::with_descriptor) takes care of both.

use runtap_wire::{DecodeError, Reader, Writer};

use super::{
    DEFAULT_RUNDOWN_KEYWORD, Provider, SessionForm, Tracepoints, providers, tracepoints, wire_count,
};
use crate::EncodeError;

/// The configuration of a session into user_events, which has no buffer, no format and no stack option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserEventsConfig {
    /// The providers, each once.
    pub providers: Vec<UserEventsProvider>,
    /// Which rundown events are written at the end of the session; 0 means none.
    pub rundown_keyword: u64,
}

/// A provider and the destinations of its events.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UserEventsProvider {
    /// Which events to record.
    pub provider: Provider,
    /// The tracepoints to write them to.
    pub tracepoints: Tracepoints,
}

impl UserEventsConfig {
    /// Creates a session of these providers with the standard rundown.
    pub fn new(providers: Vec<UserEventsProvider>) -> Self {
        Self { providers, rundown_keyword: DEFAULT_RUNDOWN_KEYWORD }
    }

    /// Rejects a configuration that must not be sent.
    ///
    /// # Errors
    /// If a field must not be sent.
    pub fn validate(&self) -> Result<(), EncodeError> {
        providers::validate(self.providers.iter().map(|entry| &entry.provider))?;
        for UserEventsProvider { provider, tracepoints } in &self.providers {
            tracepoints
                .validate()
                .map_err(|source| EncodeError::Tracepoints { provider: provider.name.clone(), source })?;
        }
        Ok(())
    }
}

pub(super) fn encode(
    w: &mut Writer,
    form: SessionForm,
    config: &UserEventsConfig,
) -> Result<(), EncodeError> {
    if !form.has_session_type() {
        return Err(EncodeError::NoSessionType { command: form.command() });
    }
    config.validate()?;
    w.u32(super::collect_tracing::SESSION_TYPE_USER_EVENTS).u64(config.rundown_keyword);
    w.u32(wire_count(config.providers.len()));
    for entry in &config.providers {
        providers::encode_one(w, &entry.provider, true);
        tracepoints::encode(w, &entry.tracepoints);
    }
    Ok(())
}

/// Decodes the fields after the session type.
pub(super) fn decode(r: &mut Reader<'_>) -> Result<UserEventsConfig, DecodeError> {
    let rundown_keyword = r.u64("rundown keyword")?;
    let providers = providers::decode_list(r, |r| {
        let provider = providers::decode_one(r, true)?;
        Ok(UserEventsProvider { provider, tracepoints: tracepoints::decode(r)? })
    })?;
    Ok(UserEventsConfig { providers, rundown_keyword })
}

#[cfg(test)]
#[path = "user_events_tests.rs"]
mod tests;
