//! Readers of the formats that are no text, which share no code with what writes them.

pub(crate) mod perfetto;
pub(crate) mod pprof;
pub(crate) mod wire;
