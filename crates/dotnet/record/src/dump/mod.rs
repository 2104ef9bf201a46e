//! Requests core dumps from running programs. The target writes to a file that only the target can write to and that no other user
//! can replace; from there the dump is moved to its destination.
//!
//! ```no_run
//! use runtap_record::dump::{DumpKind, DumpOutcome, Prepared, Specification, Destination};
//! use runtap_target::TargetSpec;
//!
//! # async fn dump(pid: u32) -> Result<(), Box<dyn std::error::Error>> {
//! let prepared = Prepared::open(Specification::new(DumpKind::Heap, Destination::Exact("app.core".into())))?;
//! let subject = TargetSpec::Pid(pid).resolve(&()).await?;
//! let never = std::future::pending();
//! match prepared.write(&subject, never, &|event| println!("{event:?}")).await? {
//!     DumpOutcome::Written(dump) => println!("{}: {} bytes", dump.path.display(), dump.bytes),
//!     DumpOutcome::Interrupted { still_writing_to, .. } => println!("not waited for: {still_writing_to:?}"),
//! }
//! # Ok(()) }
//! ```
//!
//! - A [`Specification`] describes the dump. [`Prepared::open`] opens the files before any request is sent; [`Prepared::write`]
//!   requests the dump from a [`ResolvedTarget`](runtap_target::ResolvedTarget). [`Event`]s report the progress, the [`DumpOutcome`] is
//!   the result.
//! - `place`: the destination, and whether there is enough space. `way`: where the target writes; the rules are in
//!   `docs/design/trust.md`. `ask`: the request, and how the file grows.
//! - [`Dump::flaw`] checks whether the file is a complete core file (on Windows: minidump) of the target.
//!
//! On Windows the target writes beside the destination, which must be on a local disk, and no existing file is replaced
//! (`place/windows.rs`). On macOS [`Prepared::open`] returns an error.
//!
//! The module prints nothing and does not search for processes.

mod arguments;
#[cfg(any(target_os = "linux", windows))]
mod ask;
mod error;
mod event;
mod outcome;
#[cfg(any(target_os = "linux", windows))]
#[cfg_attr(windows, path = "place/windows.rs")]
mod place;
#[cfg_attr(not(any(target_os = "linux", windows)), path = "unsupported.rs")]
mod prepared;
#[cfg_attr(not(any(target_os = "linux", windows)), allow(dead_code, reason = "no dump is asked for there"))]
mod spec;
#[cfg(target_os = "linux")]
mod way;

pub use self::arguments::normalize_args;
pub use self::error::{Error, Refusal};
pub use self::event::Event;
pub use self::outcome::{Dump, DumpOutcome, Flaw};
pub use self::prepared::Prepared;
pub use self::spec::{Destination, DumpKind, Specification};
