//! Windows pipes have no file, and are accessible to their owner only.

use std::io;
use std::path::Path;

use runtap_transport::LocalListener;

#[expect(clippy::unnecessary_wraps, reason = "the Unix version can fail")]
pub(super) fn restrict(_path: &Path) -> io::Result<()> {
    Ok(())
}

pub(super) fn wake(listener: &LocalListener) -> bool {
    listener.wake();
    true
}

pub(super) fn close_name(_path: &Path) {}
