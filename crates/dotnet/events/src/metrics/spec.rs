//! What meters and instruments are called.

use super::tags::{self, Tag};

/// What a meter is called.
#[derive(Debug, Clone, Default)]
pub struct MeterSpec {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) tags: String,
    pub(super) schema_url: String,
}

impl MeterSpec {
    /// A meter of this name. Tools separate names by commas: it should have none.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// With a version.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// With tags that all measurements have.
    #[must_use]
    pub fn tags(mut self, tags: &[Tag<'_>]) -> Self {
        self.tags = tags::text(tags);
        self
    }

    /// With the URL of the schema that its names follow.
    #[must_use]
    pub fn schema_url(mut self, url: impl Into<String>) -> Self {
        self.schema_url = url.into();
        self
    }
}

/// What an instrument is called.
#[derive(Debug, Clone, Default)]
pub struct InstrumentSpec {
    pub(super) name: String,
    pub(super) unit: String,
    pub(super) description: String,
    pub(super) tags: String,
}

impl InstrumentSpec {
    /// An instrument of this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// With the unit that it counts in, such as `ms` or `{order}`.
    #[must_use]
    pub fn unit(mut self, unit: impl Into<String>) -> Self {
        self.unit = unit.into();
        self
    }

    /// With a description.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// With tags that all its measurements have.
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
