//! Which events a session asks for: dotnet-trace's grammar for providers, its named profiles and its names of
//! CLR keywords, resolved into one list without duplicates.
//!
//! Text only: nothing here talks to a runtime. Sources: `dotnet-trace collect` of dotnet/diagnostics
//! (grammar, profiles, precedence) and the keyword manifest of dotnet/runtime.

mod clr;
mod filter;
mod grammar;
mod profiles;
mod request;
mod tracepoints;

pub use clr::{CLR_PROVIDER, ClrKeyword, KEYWORDS as CLR_KEYWORDS, clr_keywords};
pub use filter::{parse_event_filter, parse_event_ids};
pub use grammar::{ProviderError, ProviderSpec, parse_level};
pub use profiles::{PROFILES, Profile, profile};
pub use request::{EnabledBy, Request, RequestError, Requested, Selection};
pub use tracepoints::{TracepointsError, user_events_config};
