//! Replacements for systems without sampling: everything compiles, and starting fails.

use std::convert::Infallible;

use crate::{Names, Options, Sample, StartError, Statistics};

/// A sampler; no value exists on this system.
#[derive(Debug)]
pub struct Sampler(Infallible);

impl Sampler {
    /// Fails with [`StartError::Unsupported`].
    ///
    /// # Errors
    /// Always.
    pub fn start(
        _options: Options,
        _on_sample: impl FnMut(&Sample<'_>) + Send + 'static,
    ) -> Result<Self, StartError> {
        Err(StartError::Unsupported)
    }

    /// Never called on this system.
    pub fn set_active(&self, _active: bool) {
        match self.0 {}
    }

    /// Never called on this system.
    pub fn statistics(&self) -> Statistics {
        match self.0 {}
    }
}

/// A namer; no value exists on this system.
#[derive(Debug)]
pub struct Namer(Infallible);

impl Namer {
    /// Never called on this system.
    pub fn new(sampler: &Sampler) -> Self {
        match sampler.0 {}
    }

    /// Never called on this system.
    pub fn add(&mut self, _functions: impl IntoIterator<Item = (u64, String)>) {
        match self.0 {}
    }

    /// Never called on this system.
    pub fn names(&mut self, _addresses: impl IntoIterator<Item = u64>) -> Names {
        match self.0 {}
    }
}
