//! Has running programs write core dumps of themselves: into a file that the target can write to and nobody else can
//! exchange, and from there to the place where it is wanted.
//!
//! ```no_run
//! use runtap_record::dump::{Kind, Outcome, Prepared, Specification, Wanted};
//! use runtap_target::TargetSpec;
//!
//! # async fn dump(pid: u32) -> Result<(), Box<dyn std::error::Error>> {
//! let prepared = Prepared::open(Specification::new(Kind::Heap, Wanted::Given("app.core".into())))?;
//! let subject = TargetSpec::Pid(pid).resolve(&()).await?;
//! let never = std::future::pending();
//! match prepared.write(&subject, never, &|event| println!("{event:?}")).await? {
//!     Outcome::Written(dump) => println!("{}: {} bytes", dump.path.display(), dump.bytes),
//!     Outcome::Interrupted { goes_on, .. } => println!("not waited for: {goes_on:?}"),
//! }
//! # Ok(()) }
//! ```
//!
//! - A [`Specification`] says what; [`Prepared::open`] opens the files before anybody is asked for anything;
//!   [`Prepared::write`] has a [`ResolvedTarget`](runtap_target::ResolvedTarget) write the dump. What happens meanwhile are [`Event`]s, what there is in the end is the
//!   [`Outcome`].
//! - `place`: where it is wanted, and whether there is room. `way`: where the target writes; the rules are in
//!   `docs/design/trust.md`. `ask`: the request, and how the file grows.
//! - Whether a file is a whole core file (on Windows: minidump) of the target says [`Dump::flaw`].
//!
//! On Windows the target writes beside the place that is wanted, on a disk of this machine, and nothing that is there is
//! replaced (`place/windows.rs`). On macOS [`Prepared::open`] says that it can't be had.
//!
//! Refuses to print, to choose words for people, and to find processes.

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

pub use self::error::{Error, Refusal};
pub use self::event::Event;
pub use self::outcome::{Dump, Flaw, Outcome};
pub use self::prepared::Prepared;
pub use self::spec::{Kind, Specification, Wanted};
