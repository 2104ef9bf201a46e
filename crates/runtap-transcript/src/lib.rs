//! Recorded messages of both directions of a protocol, with times, as JSON Lines.
