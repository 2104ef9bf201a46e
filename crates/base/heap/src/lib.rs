//! Graphs of the objects in the heap of a program: how many there are of each type, what keeps them alive, and what would
//! be freed without an object.
//!
//! - [`Graph`] contains objects, their types, references and roots, in at most 40 bytes an object (with five references
//!   each). [`GraphBuilder`] creates one from the addresses that a runtime or a file states.
//! - [`Dominators`] computes what each object keeps alive alone (its *retained size*).
//! - [`type_rows`] sums objects by type, [`TypeChange`] compares two graphs, [`path_to_root`] returns a shortest path from
//!   a root to an object.
//! - [`hprof`] reads heap dumps of JVMs, [`gcdump`] reads and writes those of .NET programs, [`writers`] has other formats.
//! - [`ClassHistogram`] reads the sums by class that a JVM prints.
//!
//! The crate does no I/O: readers accept bytes in pieces. All algorithms are iterative, so a chain of any length takes no
//! stack. Memory is bounded by the size of the input, and no input causes a panic.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::disallowed_methods)]
#![warn(clippy::cast_possible_truncation)]

mod addresses;
mod builder;
mod compare;
mod dense;
mod dominators;
pub mod gcdump;
mod graph;
mod histogram;
pub mod hprof;
mod paths;
mod root;
mod totals;
pub mod writers;

pub use builder::GraphBuilder;
pub use compare::{TypeChange, compare};
pub use dominators::Dominators;
pub use graph::{Graph, Incomplete, ObjectId, Root, TypeId, TypeName};
pub use histogram::{ClassCount, ClassHistogram};
pub use paths::{PathToRoot, path_to_root};
pub use root::RootKind;
pub use runtap_wire::DecodeError;
pub use totals::{RootCount, TypeOrder, TypeRow, root_counts, type_rows};
