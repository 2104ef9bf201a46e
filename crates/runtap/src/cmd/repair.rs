//! `runtap repair FILE`: writes a repaired copy of a recording that every tool can read.

use std::path::Path;

use runtap_convert::RepairedFile;
use runtap_os::output::{Destination, insert_before_extension};
use runtap_text::Output;
use runtap_text::document::RepairDocument;

use crate::cli::Repair;
use crate::exit;
use runtap_text::units::Count;

pub(crate) fn run(options: &Repair, output: Output) -> anyhow::Result<u8> {
    let path = &options.file;
    let to = match &options.output {
        Some(output) if output == Path::new("-") => Destination::Stdout,
        Some(output) => Destination::File(output.clone()),
        None => Destination::File(insert_before_extension(path, ".repaired")),
    };
    let RepairedFile { header, repaired, output: written } = runtap_convert::repair(path, &to)?;
    let written = written.map(|to| match to {
        Destination::File(to) => to.display().to_string(),
        Destination::Stdout => "-".to_owned(),
    });
    let document = RepairDocument::new(path, written, &header, &repaired);
    let to_stdout = to == Destination::Stdout;
    let code = if repaired.bytes_after_end > 0 {
        let bytes = Count(repaired.bytes_after_end);
        output.warning(format_args!(
            "{}: {bytes} bytes follow the end marker, perhaps another recording, and were not read",
            path.display()
        ));
        exit::PARTIAL
    } else {
        exit::OK
    };
    if output.json() {
        output.document_on_free_stream(&document, to_stdout)?;
        return Ok(code);
    }
    output.note(document.remark());
    for line in document.losses() {
        output.note(line);
    }
    if !to_stdout {
        output.print(&document, &output.options())?;
    }
    Ok(code)
}
