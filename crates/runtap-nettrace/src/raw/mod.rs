//! The lowest storey: first bytes, tags, frames of objects. Knows nothing of what lies inside an object.

pub(crate) mod envelope;
