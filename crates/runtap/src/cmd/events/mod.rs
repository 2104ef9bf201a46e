//! `runtap events FILE`: the events of a recording as lines, or counted.

mod count;

use std::io::BufWriter;
use std::path::Path;

use runtap_clr::{Filter, Names};
use runtap_nettrace::{Item, Observe};

use super::recording::warn_if_partial;
use crate::cli::Events;
use crate::exit::{USAGE, expected, usage};
use crate::output::Output;
use runtap_clr::lines::{Choice, Chooser, Lines, Style};
use runtap_files::Recording;

pub(crate) fn run(options: &Events, output: Output) -> anyhow::Result<u8> {
    let choice = choice(&options.provider, options.filter.as_deref())?;
    let wants_frames = choice.filter.as_ref().is_some_and(Filter::needs_frames);
    if options.count && options.stacks {
        return Err(usage("--count shows no stacks: leave --stacks out"));
    }
    if options.count && options.format == Some(Style::Csv) {
        return Err(usage("--count is printed as text or json"));
    }
    let names = if options.stacks || wants_frames { Some(names_of(&options.file)?) } else { None };
    let chooser = Chooser::new(choice, names);
    if options.count {
        return count::run(options, chooser, output);
    }
    let style = options.format.unwrap_or(Style::Json);
    let mut recording = Recording::open(&options.file)?;
    let stdout = std::io::stdout().lock();
    let mut lines = Lines::new(chooser, style, options.stacks, BufWriter::with_capacity(1 << 16, stdout));
    recording.read_in_order(|item| anyhow::Ok(lines.item(item)?))?;
    lines.flush()?;
    Ok(warn_if_partial(&recording, output))
}

/// Which events, by the options.
///
/// # Errors
/// A filter that is wrong, with its place.
pub(super) fn choice(providers: &[String], filter: Option<&str>) -> anyhow::Result<Choice> {
    let filter = filter.map(str::parse::<Filter>).transpose().map_err(|error| {
        expected(USAGE, format!("--filter: {error}"), format!("here: {}", error.marked()))
    })?;
    Ok(Choice { providers: providers.to_vec(), filter })
}

/// Reads the names of a recording, which stand at its end.
fn names_of(file: &Path) -> anyhow::Result<Names> {
    let mut recording = Recording::open(file)?;
    recording.must_be_read_twice()?;
    let mut names = Names::new();
    recording.read(|item| {
        if !matches!(item, Item::Header(_)) {
            names.item(item);
        }
    })?;
    names.seal();
    Ok(names)
}
