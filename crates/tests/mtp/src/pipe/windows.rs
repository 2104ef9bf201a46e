//! A pipe has no file, and is for its owner alone from the beginning.

use std::io;
use std::path::Path;

use runtap_transport::LocalListener;

#[expect(clippy::unnecessary_wraps, reason = "the same as on Unix")]
pub(super) fn restrict(_path: &Path) -> io::Result<()> {
    Ok(())
}

pub(super) fn wake(listener: &LocalListener) -> bool {
    listener.wake();
    true
}

pub(super) fn close_name(_path: &Path) {}
