//! `runtap events FILE`: prints the events of a recording as lines, or counts them.

use std::io::BufWriter;

use runtap_clr::lines::{Choice, Chooser, Lines, Matched, Style};
use runtap_clr::{EventCounts, Filter};
use runtap_convert::method_names;
use runtap_convert::source::Recording;
use runtap_text::{Missing, Output, TextOptions, document, unmet_messages};

use super::recording::{partial_of, warn_if_partial};
use crate::cli::Events;
use crate::exit::{USAGE, usage, with_list};

pub(crate) fn run(options: &Events, output: Output) -> anyhow::Result<u8> {
    let choice = choice(&options.provider, options.filter.as_deref())?;
    let wants_frames = choice.filter.as_ref().is_some_and(Filter::needs_frames);
    if options.count && options.stacks {
        return Err(usage("--count shows no stacks; omit --stacks"));
    }
    if options.count && options.format == Some(Style::Csv) {
        return Err(usage("--count is printed as text or json"));
    }
    let names = if options.stacks || wants_frames { Some(method_names(&options.file)?) } else { None };
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
    warn_of_unmet(&lines.matched(), options.filter.is_some(), "", output);
    Ok(warn_if_partial(&recording, output))
}

fn count(options: &Events, mut chooser: Chooser, output: Output) -> anyhow::Result<u8> {
    let mut recording = Recording::open(&options.file)?;
    let mut counts = EventCounts::new();
    if chooser.takes_all() {
        recording.read_parallel(&mut counts, EventCounts::new)?;
    } else {
        recording.read(&mut |item| counts.chosen(&mut chooser, item))?;
    }
    warn_of_unmet(&chooser.matched(), options.filter.is_some(), "", output);
    let file = options.file.display().to_string();
    let (lost, partial) = (recording.lost(), partial_of(&recording));
    let counts = document::CountsDocument::new(&file, recording.header(), &counts, lost, partial);
    if output.json() {
        output.document(&counts)?;
    } else {
        let is_chosen = options.filter.is_some() || !options.provider.is_empty();
        let advice = is_chosen.then_some((|_| "none was chosen") as fn(Missing) -> _);
        output.print(&counts, &TextOptions { advice, ..output.options() })?;
    }
    Ok(warn_if_partial(&recording, output))
}

/// Returns the selection of events by providers and a filter.
///
/// # Errors
/// The filter is invalid; the error marks the position.
pub(super) fn choice(providers: &[String], filter: Option<&str>) -> anyhow::Result<Choice> {
    let filter = filter.map(str::parse::<Filter>).transpose().map_err(|error| {
        let marked = error.caret().lines().map(str::to_owned).collect();
        with_list(USAGE, format!("--filter: {error}"), marked, None)
    })?;
    Ok(Choice { providers: providers.to_vec(), filter })
}

/// Warns about names in the selection that no event has, and if no event matched. Each message starts with `subject`.
pub(super) fn warn_of_unmet(matched: &Matched, has_filter: bool, subject: &str, output: Output) {
    output.messages(unmet_messages(matched, has_filter, subject));
}
