//! Selects the events of a session: dotnet-trace's grammar for providers, its profiles and its names of CLR keywords, resolved to
//! one list without duplicates.
//!
//! Nothing here connects to a runtime. Sources: `dotnet-trace collect` of dotnet/diagnostics (grammar, profiles, precedence) and the
//! keyword manifest of dotnet/runtime.
//!
//! ```
//! use runtap_record::providers::{Request, Selection};
//!
//! let lists = ["My-Source:1:4".to_owned()];
//! let request = Request::resolve(&Selection { providers: &lists, clr_events: Some("gc"), ..Selection::default() })?;
//! let names: Vec<_> = request.providers.iter().map(|asked| asked.provider.name.as_str()).collect();
//! assert_eq!(names, ["My-Source", "Microsoft-Windows-DotNETRuntime"]);
//! # Ok::<(), runtap_record::providers::RequestError>(())
//! ```

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::disallowed_methods)]
#![warn(clippy::cast_possible_truncation)]

mod arguments;
mod clr;
mod filter;
mod grammar;
pub mod messages;
mod profiles;
mod request;
mod tracepoints;

pub(crate) use arguments::quoted;
pub use clr::{CLR_PROVIDER, ClrKeyword, KEYWORDS as CLR_KEYWORDS, clr_keywords};
pub use filter::{parse_event_filter, parse_event_ids};
pub use grammar::{ProviderError, ProviderSpec, parse_level};
pub use profiles::{PROFILES, Profile, profile};
pub(crate) use request::METHOD_NAMES;
pub use request::{EnabledBy, Note, Part, Request, RequestError, Requested, Selection};
pub use tracepoints::{TracepointsError, user_events_config};
