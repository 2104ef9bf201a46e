//! `runtap events FILE`: the events of a recording as lines, or counted.

use std::io::BufWriter;
use std::path::Path;

use runtap_clr::{EventCounts, Filter, Names};
use runtap_nettrace::{Item, Observe};

use runtap_text::{Missing, TextOptions, document};

use super::recording::{partial_of, warn_if_partial};
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
        return count(options, chooser, output);
    }
    let style = options.format.unwrap_or(Style::Json);
    let mut recording = Recording::open(&options.file)?;
    let stdout = std::io::stdout().lock();
    let mut lines = Lines::new(chooser, style, options.stacks, BufWriter::with_capacity(1 << 16, stdout));
    recording.read_in_order(|item| anyhow::Ok(lines.item(item)?))?;
    lines.flush()?;
    Ok(warn_if_partial(&recording, output))
}

fn count(options: &Events, mut chooser: Chooser, output: Output) -> anyhow::Result<u8> {
    let mut recording = Recording::open(&options.file)?;
    let mut counts = EventCounts::new();
    if chooser.takes_all() {
        recording.read_parallel(&mut counts, EventCounts::new)?;
    } else {
        recording.read(|item| counts.chosen(&mut chooser, item))?;
    }
    let file = options.file.display().to_string();
    let (lost, partial) = (recording.lost(), partial_of(&recording));
    let counts = document::CountsDocument::new(&file, recording.header(), &counts, lost, partial);
    if output.json() {
        output.document(&counts)?;
    } else {
        let is_chosen = options.filter.is_some() || !options.provider.is_empty();
        let advice = is_chosen.then_some((|_| "none matches --filter and --provider") as fn(Missing) -> _);
        output.print(&counts, &TextOptions { advice, ..output.options() })?;
    }
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
