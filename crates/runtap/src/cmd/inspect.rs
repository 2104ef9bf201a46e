//! `runtap inspect FILE`: the objects and blocks of a stream, with their offsets.

use runtap_clr::layout::Layout;
use runtap_nettrace::inspect::Inspected;
use runtap_text::document::{LayoutDocument, Partial};
use runtap_text::{layout_heading, layout_row};

use super::recording::warn_of;
use crate::cli::Inspect;
use crate::exit::{self, expected};
use crate::output::Output;
use crate::units::Count;

pub(crate) fn run(options: &Inspect, output: Output) -> anyhow::Result<u8> {
    let path = &options.file;
    let mut document = LayoutDocument::new(path.display().to_string());
    let (mut layout, mut headed) = (Layout::default(), false);
    let bytes = runtap_files::inspect(path, |found| {
        layout.see(&found);
        if let (true, Inspected::Block(block)) = (output.json(), &found) {
            document.push(block);
        }
        let Some(row) = layout_row(&found).filter(|_| !output.json()) else { return anyhow::Ok(()) };
        // No table where there is nothing to put into it.
        if !std::mem::replace(&mut headed, true) {
            output.text(layout_heading(&output.options()))?;
        }
        output.text(row)
    })?;
    let partial = layout.gap.as_ref().map(|gap| Partial { offset: gap.offset, reason: gap.what.to_string() });
    if layout.blocks_count == 0 {
        let why = partial.map_or_else(|| "it is empty".to_owned(), |partial| partial.reason);
        return Err(expected(exit::USAGE, format!("{} can't be read: {why}", path.display()), None));
    }
    let trailing_bytes = layout.trailing_bytes(bytes);
    if trailing_bytes > 0 {
        output.warning(format_args!("{} bytes follow the end marker", Count(trailing_bytes)));
    }
    let code = if layout.is_damaged || partial.is_some() { exit::PARTIAL } else { exit::OK };
    match &partial {
        Some(partial) => warn_of(path, partial, output),
        None if layout.is_damaged => output.warning(format_args!("{} has damaged blocks", path.display())),
        None => {}
    }
    if output.json() {
        document.finish(&layout, bytes, partial);
        output.document(&document)?;
    }
    Ok(code)
}
