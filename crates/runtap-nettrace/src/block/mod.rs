//! The middle storey: what lies in one whole block. Pure functions of a block's bytes and the tables that earlier
//! blocks filled; knows nothing of the stream around the block.

pub(crate) mod blob;
pub(crate) mod stack;
