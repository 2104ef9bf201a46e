//! The middle layer: the contents of one complete block, as functions of the block's bytes and the tables that earlier
//! blocks filled.

pub(crate) mod blob;
mod bytes;
pub(crate) mod label;
pub(crate) mod netperf;
pub(crate) mod point;
pub(crate) mod stack;
pub(crate) mod thread;

pub(crate) use self::bytes::{Fault, guid};
