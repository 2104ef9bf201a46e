//! Open files do not pass pipes: there are none of them.

/// An open file that came with a message.
#[derive(Debug)]
pub enum Descriptor {}

/// One that goes along with a message.
pub type Lent<'a> = &'a Descriptor;

/// Lends one to a message.
pub fn lend(descriptor: &Descriptor) -> Lent<'_> {
    descriptor
}

/// How many we may have: the system sets no limit that is ever reached.
pub fn most_descriptors() -> usize {
    usize::MAX
}
