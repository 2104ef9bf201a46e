//! A user namespace in which the kernel can run programs for aarch64, with an emulator.
//! Source: the kernel's `Documentation/admin-guide/binfmt-misc.rst`; System V ABI for `AArch64` (`e_machine` is 183).

use std::path::Path;

use xtask::process::Tool;
use xtask::workspace::Workspace;

/// `e_ident` for 64 bits, little-endian, `e_type` 2 or 3 (the mask ignores the lowest bit) and `e_machine` 183.
const MAGIC: &str = r"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00";
const MASK: &str = r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff";

/// `$1` is the registration; the rest is the command. `F` opens the emulator immediately, so that it works in any root;
/// `P` passes the name that the program was started by.
const SCRIPT: &str = r#"
mount -t binfmt_misc none /proc/sys/fs/binfmt_misc && printf %s "$1" >/proc/sys/fs/binfmt_misc/register || exit 99
shift
exec "$@""#;

/// Returns a command that runs its arguments in a new namespace.
pub(super) fn enter(ws: &Workspace, emulator: &Path) -> Tool {
    let rule = format!(":runtap-aarch64:M::{MAGIC}:{MASK}:{}:FP", emulator.display());
    ws.tool("unshare")
        .args(&["--user", "--map-root-user", "--mount", "sh", "-c", SCRIPT, "sh", &rule])
        .quiet()
}

/// Checks that this kernel supports this, and returns the reason if not.
pub(super) fn can_be_made(ws: &Workspace, emulator: &Path) -> Result<(), String> {
    if enter(ws, emulator).arg("true").works() {
        return Ok(());
    }
    let why = "users can't make namespaces with a binfmt_misc of their own (Linux 6.7)";
    Err(format!("{why}, so programs for aarch64 can't start themselves"))
}
