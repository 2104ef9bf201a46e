//! `runtap licenses`: prints the licenses of runtap and its dependencies.
//!
//! The list is compiled in. `cargo xtask licenses` generates it, and the checks compare it with `Cargo.lock`.

use runtap_text::Output;
use runtap_text::document::LicensesDocument;

pub(crate) fn run(output: Output) -> anyhow::Result<u8> {
    output.show(&LicensesDocument::read(include_str!("../../licenses.txt")))?;
    Ok(crate::exit::OK)
}
