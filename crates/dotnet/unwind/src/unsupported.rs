//! Where stacks can't be sampled: everything compiles, and starting is refused.

use std::convert::Infallible;

use crate::{Names, Options, Sample, StartError, Statistics};

/// Can't be had here: there is no value of it.
#[derive(Debug)]
pub struct Sampler(Infallible);

impl Sampler {
    /// Always [`StartError::Unsupported`].
    ///
    /// # Errors
    /// Always.
    pub fn start(
        _options: Options,
        _on_sample: impl FnMut(&Sample<'_>) + Send + 'static,
    ) -> Result<Self, StartError> {
        Err(StartError::Unsupported)
    }

    /// Never called.
    pub fn set_active(&self, _active: bool) {
        match self.0 {}
    }

    /// Never called.
    pub fn statistics(&self) -> Statistics {
        match self.0 {}
    }
}

/// Can't be had here: there is no value of it.
#[derive(Debug)]
pub struct Namer(Infallible);

impl Namer {
    /// Never called.
    pub fn new(sampler: &Sampler) -> Self {
        match sampler.0 {}
    }

    /// Never called.
    pub fn add(&mut self, _functions: impl IntoIterator<Item = (u64, String)>) {
        match self.0 {}
    }

    /// Never called.
    pub fn names(&mut self, _addresses: impl IntoIterator<Item = u64>) -> Names {
        match self.0 {}
    }
}
