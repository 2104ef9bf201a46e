//! Readers of formats, which share no code with what writes them.

pub(crate) mod firefox;
pub(crate) mod perfetto;
pub(crate) mod pprof;
pub(crate) mod wire;
