//! Named sets of providers: `runtap.profiles/1`, and its text.

use std::io;

use serde::Serialize;

use crate::{Print, TextOptions};

/// `runtap.profiles/1`
#[derive(Debug, Serialize)]
pub struct ProfilesDocument {
    schema: &'static str,
    profiles: Vec<ProfileRow>,
}

/// A set of providers.
#[derive(Debug, Serialize)]
pub struct ProfileRow {
    /// What it is called.
    pub name: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// What it asks for.
    pub providers: Vec<ProviderRow>,
}

/// A provider that is asked for.
#[derive(Debug, Serialize)]
pub struct ProviderRow {
    name: String,
    keywords: String,
    level: u32,
    arguments: Option<String>,
}

impl ProviderRow {
    /// With keywords, at a level.
    pub fn new(name: String, keywords: u64, level: u32, arguments: Option<String>) -> Self {
        Self { name, keywords: format!("{keywords:#x}"), level, arguments }
    }
}

impl ProfilesDocument {
    /// Of these.
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
