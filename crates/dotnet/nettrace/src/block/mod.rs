//! The middle storey: what lies in one whole block. Pure functions of a block's bytes and the tables that earlier
//! blocks filled; knows nothing of the stream around the block.

pub(crate) mod blob;
mod bytes;
pub(crate) mod label;
pub(crate) mod netperf;
pub(crate) mod point;
pub(crate) mod stack;
pub(crate) mod thread;

pub(crate) use self::bytes::{Fault, guid};
