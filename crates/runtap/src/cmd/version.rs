//! `runtap version`: prints the version.

use runtap_text::Output;
use runtap_text::document::VersionDocument;

pub(crate) fn run(output: Output) -> anyhow::Result<u8> {
    let (version, commit) = (env!("CARGO_PKG_VERSION"), option_env!("RUNTAP_COMMIT"));
    output.show(&VersionDocument::new(version, commit, env!("RUNTAP_TARGET")))?;
    Ok(crate::exit::OK)
}
