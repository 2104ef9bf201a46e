//! Where no dump is written: everything compiles, and nothing is opened.

use std::convert::Infallible;

use runtap_target::ResolvedTarget;

use crate::dump::{Error, Event, Outcome, Specification};

/// Can't be had here: there is no value of it.
#[derive(Debug)]
pub struct Prepared(Infallible);

impl Prepared {
    /// Always [`Error::Unsupported`].
    ///
    /// # Errors
    /// Always.
    pub fn open(_spec: Specification) -> Result<Self, Error> {
        Err(Error::Unsupported)
    }

    /// Never called.
    ///
    /// # Errors
    /// None.
    pub async fn write(
        self,
        _target: &ResolvedTarget,
        _stopped: impl Future<Output = ()>,
        _tell: &dyn Fn(Event<'_>),
    ) -> Result<Outcome, Error> {
        match self.0 {}
    }
}
