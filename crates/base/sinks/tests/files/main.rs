//! What the sinks write: as snapshots to read, as laws for any recording, and at the edges.

mod difference;
mod edges;
mod firefox_shape;
mod laws;
mod laws_binary;
mod laws_spans;
mod read;
mod recordings;
mod several;
mod snapshots;
mod sources;
