//! `runtap mtp lint FILE`: checks a recording and prints the broken rules and their positions.

use runtap_mtp::transcript::Linter;
use runtap_text::Output;
use runtap_text::test::transcript::{LintDocument, finding, lint_summary};

use super::{each, warn_if_missing};
use crate::cli::MtpLint;
use crate::exit;

pub(super) fn run(options: &MtpLint, output: Output) -> anyhow::Result<u8> {
    let path = &options.file;
    let mut linter = Linter::new();
    let partial = each(path, options.max_size.of(), |located| {
        linter.take(located);
        Ok(())
    })?;
    let (summary, findings) = linter.finish();
    let code = warn_if_missing(path, partial.as_ref(), output);
    if output.json() {
        let file = path.display().to_string();
        output.document(&LintDocument::new(file, &summary, &findings, partial))?;
    } else {
        for found in &findings {
            output.text(finding(found))?;
        }
        output.text(lint_summary(&summary, findings.len()))?;
    }
    Ok(if summary.errors > 0 { exit::FAILED } else { code })
}
