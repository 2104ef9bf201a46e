//! Named sets of providers: `runtap.profiles/1` and its text.

use std::io;

use serde::Serialize;

use crate::{Print, TextOptions};

/// The document `runtap.profiles/1`.
#[derive(Debug, Serialize)]
pub struct ProfilesDocument {
    schema: &'static str,
    profiles: Vec<ProfileRow>,
}

/// A named set of providers.
#[derive(Debug, Serialize)]
pub struct ProfileRow {
    /// Name of the profile.
    pub name: &'static str,
    /// Purpose of the profile.
    pub about: &'static str,
    /// Providers to enable.
    pub providers: Vec<ProviderRow>,
}

/// A provider to enable.
#[derive(Debug, Serialize)]
pub struct ProviderRow {
    name: String,
    keywords: String,
    level: u32,
    arguments: Option<String>,
}

impl ProviderRow {
    /// Creates a row for a provider with its keywords and level.
    pub fn new(name: String, keywords: u64, level: u32, arguments: Option<String>) -> Self {
        Self { name, keywords: format!("{keywords:#x}"), level, arguments }
    }
}

impl ProfilesDocument {
    /// Creates the document.
    pub fn new(profiles: Vec<ProfileRow>) -> Self {
        Self { schema: "runtap.profiles/1", profiles }
    }
}

impl Print for ProfilesDocument {
    fn print(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        let heading = options.heading();
        for ProfileRow { name, about, providers } in &self.profiles {
            writeln!(out, "{heading}{name}{heading:#}  {about}")?;
            for ProviderRow { name, keywords, level, arguments } in providers {
                let more = if arguments.is_some() { ":…" } else { "" };
                writeln!(out, "    {name}:{keywords}:{level}{more}")?;
            }
        }
        Ok(())
    }
}
