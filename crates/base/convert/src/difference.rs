//! Writes comparisons of two profiles.

use std::path::Path;

use runtap_model::Comparison;
use runtap_os::output::OutputSink;
use runtap_sinks::{Format, difference};

use crate::{Error, OutputFile, Planned, WrittenFiles};

/// Writes a comparison of two files in several formats. A failure of one format does not affect the others.
pub fn write_difference(
    comparison: &Comparison,
    files: [&Path; 2],
    planned: &[Planned],
    absolute: bool,
) -> WrittenFiles {
    let mut how = difference::Options::default();
    how.absolute = absolute;
    how.names = files.map(|file| file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned());
    let mut made = WrittenFiles::default();
    for planned in planned {
        match write(comparison, planned, &how) {
            Ok(file) => made.files.extend(file),
            Err(error) => made.failures.push(error),
        }
    }
    made
}

/// Writes one file. Returns `None` for standard output.
fn write(
    comparison: &Comparison,
    Planned { format, to }: &Planned,
    how: &difference::Options,
) -> Result<Option<OutputFile>, Error> {
    let mut out = OutputSink::open(to)?.begin()?;
    let written = match format.sink() {
        Some(Format::Folded) => difference::write_folded(comparison, &mut out, how),
        _ => difference::write_flamegraph(comparison, &mut out, how),
    };
    written.map_err(Error::of_sink(out.path()))?;
    let (path, bytes) = out.finish()?;
    Ok(path.map(|path| OutputFile::new(path, *format, bytes)))
}
