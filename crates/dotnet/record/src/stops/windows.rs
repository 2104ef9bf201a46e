//! What a console says that means "enough": Ctrl-C and Ctrl-Break, its end, the end of the session and of the system.
//! After these three the system gives a program some seconds, and then ends it.

use std::io;

use tokio::signal::windows::{ctrl_break, ctrl_c, ctrl_close, ctrl_logoff, ctrl_shutdown};
use tokio::sync::watch;

use super::Requests;

/// As what an interruption ends a program, by the numbers that shells use.
const INTERRUPT: u8 = 2;
const HANGUP: u8 = 1;
const TERMINATE: u8 = 15;

/// Counts each of them, on a task of its own.
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
