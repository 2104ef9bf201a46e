//! Console events that request a stop: Ctrl-C and Ctrl-Break, and the end of the console, the session and the system. After the
//! latter three, the system grants some seconds before it terminates the program.

use std::io;

use tokio::signal::windows::{ctrl_break, ctrl_c, ctrl_close, ctrl_logoff, ctrl_shutdown};
use tokio::sync::watch;

use super::Requests;

/// The corresponding signal numbers, as used by shells.
const INTERRUPT: u8 = 2;
const HANGUP: u8 = 1;
const TERMINATE: u8 = 15;

/// Starts a task for each event.
pub(super) fn listen(requests: &watch::Sender<Requests>) -> io::Result<()> {
    macro_rules! count {
        ($signal:expr, $number:expr) => {{
            let (mut signal, requests) = ($signal?, requests.clone());
            tokio::spawn(async move {
                let mut again = false;
                while signal.recv().await.is_some() {
                    requests.send_modify(|requests| requests.count(Some($number), again));
                    again = true;
                }
            });
        }};
    }
    count!(ctrl_c(), INTERRUPT);
    count!(ctrl_break(), INTERRUPT);
    count!(ctrl_close(), HANGUP);
    count!(ctrl_logoff(), TERMINATE);
    count!(ctrl_shutdown(), TERMINATE);
    Ok(())
}
