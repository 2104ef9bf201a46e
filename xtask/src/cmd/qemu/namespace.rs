//! A user namespace in which the kernel starts programs for aarch64.
//!
//! Owns: how the emulator is registered there.
//! Source: the kernel's `Documentation/admin-guide/binfmt-misc.rst`; System V ABI for `AArch64` (`e_machine` is 183).

use std::path::Path;

use crate::process::Tool;
use crate::workspace::Workspace;

/// `e_ident` of 64 bits, little-endian, and `e_type` 2 or 3 (the mask lets the lowest bit be) with `e_machine` 183.
const MAGIC: &str = r"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00";
const MASK: &str = r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff";

/// `$1` is what is registered; the rest is the command. `F` opens the emulator now, so that it is found wherever a program
/// has its root; with `P` it gets the name that the program was started by.
const SCRIPT: &str = r#"
mount -t binfmt_misc none /proc/sys/fs/binfmt_misc && printf %s "$1" >/proc/sys/fs/binfmt_misc/register || exit 99
shift
exec "$@""#;

/// What begins with this runs in a namespace of its own; the command follows.
pub(super) fn enter(ws: &Workspace, emulator: &Path) -> Tool {
    let rule = format!(":runtap-aarch64:M::{MAGIC}:{MASK}:{}:FP", emulator.display());
    ws.tool("unshare")
        .args(&["--user", "--map-root-user", "--mount", "sh", "-c", SCRIPT, "sh", &rule])
        .quiet()
}

/// Whether this kernel lets us: else why not.
pub(super) fn can_be_made(ws: &Workspace, emulator: &Path) -> Result<(), String> {
    if enter(ws, emulator).arg("true").works() {
        return Ok(());
    }
    let why = "users can't make namespaces with a binfmt_misc of their own (Linux 6.7)";
    Err(format!("{why}, so programs for aarch64 can't start themselves"))
}
