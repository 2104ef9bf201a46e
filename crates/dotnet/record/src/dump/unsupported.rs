//! Systems without dumps: everything compiles, but no dump can be opened.

use std::convert::Infallible;

use runtap_target::ResolvedTarget;

use crate::dump::{DumpOutcome, Error, Event, Specification};

/// A prepared dump. There are none on this system.
#[derive(Debug)]
pub struct Prepared(Infallible);

impl Prepared {
    /// Returns [`Error::Unsupported`].
    ///
    /// # Errors
    /// Always returns an error.
    pub fn open(_spec: Specification) -> Result<Self, Error> {
        Err(Error::Unsupported)
    }

    /// Never called on this system.
    ///
    /// # Errors
    /// None.
    pub async fn write(
        self,
        _target: &ResolvedTarget,
        _stopped: impl Future<Output = ()>,
        _tell: &dyn Fn(Event<'_>),
    ) -> Result<DumpOutcome, Error> {
        match self.0 {}
    }
}
