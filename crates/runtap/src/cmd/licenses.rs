//! `runtap licenses`: prints the licenses of runtap and its dependencies.
//!
//! The list is compiled in. `cargo xtask licenses` generates it, and the checks compare it with `Cargo.lock`.

use runtap_text::Output;
use runtap_text::document::LicensesDocument;

use crate::embedded;

const COMPRESSED_LIST: &[u8] = include_bytes!(env!("RUNTAP_LICENSES"));

pub(crate) fn run(output: Output) -> anyhow::Result<u8> {
    let list = String::from_utf8(embedded::decompress(COMPRESSED_LIST)?)?;
    output.show(&LicensesDocument::read(&list))?;
    Ok(crate::exit::OK)
}
