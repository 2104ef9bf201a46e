//! `runtap list-profiles`: what `--profile` takes, and what each asks for.

use std::fmt::Write as _;

use runtap_providers::PROFILES;
use serde::Serialize;

use crate::exit;
use crate::output::{HEADING, Output};

/// `runtap.profiles/1`
#[derive(Serialize)]
struct Document {
    schema: &'static str,
    profiles: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    name: &'static str,
    about: &'static str,
    providers: Vec<Asked>,
}

#[derive(Serialize)]
struct Asked {
    name: String,
    keywords: String,
    level: u32,
    arguments: Option<String>,
}

pub(super) fn run(output: Output) -> anyhow::Result<u8> {
    let profiles: Vec<Row> = PROFILES
        .iter()
        .map(|profile| Row {
            name: profile.name,
            about: profile.about,
            providers: profile
                .providers()
                .into_iter()
                .map(|provider| Asked {
                    name: provider.name,
                    keywords: format!("{:#x}", provider.keywords),
                    level: provider.level.number(),
                    arguments: provider.arguments,
                })
                .collect(),
        })
        .collect();
    if output.json() {
        output.document(&Document { schema: "runtap.profiles/1", profiles })?;
        return Ok(exit::OK);
    }
    let mut text = String::new();
    for Row { name, about, providers } in &profiles {
        // Writing to a String can't fail.
        let _ = writeln!(text, "{HEADING}{name}{HEADING:#}  {about}");
        for Asked { name, keywords, level, arguments } in providers {
            let more = if arguments.is_some() { ":…" } else { "" };
            let _ = writeln!(text, "    {name}:{keywords}:{level}{more}");
        }
    }
    output.text(text)?;
    Ok(exit::OK)
}
