//! Entry point of the fuzz target for everything that parses texts of the kernel and files of processes, since other processes
//! control their contents. Built for fuzzing only.

use runtap_transport::linux::{Capabilities, Status, parse_stat};

use super::environment::Environment;
use super::{clients, memory, mounts, sockets, tree, unix_diag};

/// Parses a text with every parser. Returns how many things were found in it.
pub fn read_as_all(text: &[u8]) -> usize {
    let environment = Environment::parse(text);
    let java = crate::jvm::counters_file::parse(text);
    let counters = crate::PerfData::new(text).map_or(0, |data| data.flatten().count());
    let mut listed = Vec::new();
    let _ = unix_diag::parse(text, &mut listed);
    let mounts = mounts::parse(text);
    let _ = memory::parse(text);
    let lines = text.split(|byte| *byte == b'\n');
    usize::from(environment.tmpdir.is_some())
        + usize::from(java.is_some())
        + counters
        + listed.len()
        + mounts.len()
        + lines.filter_map(sockets::parse_bound).count()
        + usize::from(parse_stat(text).is_some())
        + usize::from(Status::parse(text).is_some())
        + usize::from(tree::parse(text).is_some())
        + usize::from(clients::parse_call(text).is_some())
        + usize::from(str::from_utf8(text).is_ok_and(|text| Capabilities::parse(text).is_some()))
}
