//! The properties of meters and instruments.

use super::tags::{self, Tag};

/// The properties of a meter.
#[derive(Debug, Clone, Default)]
pub struct MeterSpec {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) tags: String,
    pub(super) schema_url: String,
}

impl MeterSpec {
    /// Creates a meter with this name, which should contain no comma: tools separate names by commas.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Sets the version.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// Sets the tags of all its measurements.
    #[must_use]
    pub fn tags(mut self, tags: &[Tag<'_>]) -> Self {
        self.tags = tags::text(tags);
        self
    }

    /// Sets the URL of the schema that its names follow.
    #[must_use]
    pub fn schema_url(mut self, url: impl Into<String>) -> Self {
        self.schema_url = url.into();
        self
    }
}

/// The properties of an instrument.
#[derive(Debug, Clone, Default)]
pub struct InstrumentSpec {
    pub(super) name: String,
    pub(super) unit: String,
    pub(super) description: String,
    pub(super) tags: String,
}

impl InstrumentSpec {
    /// Creates an instrument with this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Sets the unit, such as `ms` or `{order}`.
    #[must_use]
    pub fn unit(mut self, unit: impl Into<String>) -> Self {
        self.unit = unit.into();
        self
    }

    /// Sets the description.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// Sets the tags of all its measurements.
    #[must_use]
    pub fn tags(mut self, tags: &[Tag<'_>]) -> Self {
        self.tags = tags::text(tags);
        self
    }
}

impl From<&str> for InstrumentSpec {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}
