//! The task that drains a session's stream, and its pace.
//!
//! A runtime sends a block of 100 KiB in some twenty small writes. To be woken for each of them costs several times as
//! much as to read them, and a socket holds two blocks. So the task rests after a read that came too early, at most for
//! [`LONGEST`], and not at all beside a writer that fills the socket meanwhile: such a one is never waited for.

use std::{future::poll_fn, time::Duration};

use runtap_transport::Stream;

use crate::buffer::Buffer;

/// A socket is as good as full when that much was in it. Linux lets a writer put some 200 KiB into one.
const FULL: usize = 128 * 1024;
/// Less than that came too early.
const LITTLE: usize = 32 * 1024;
/// The longest rest, and the steps of its length.
const LONGEST: Duration = Duration::from_millis(4);
const STEP: Duration = Duration::from_millis(1);

/// Reads a stream to its end.
pub(crate) async fn drain(mut stream: Stream, buffer: Buffer) {
    let mut rest = Duration::ZERO;
    while let Some(n) = poll_fn(|cx| buffer.poll_fill(&mut stream, cx)).await {
        if n >= FULL {
            rest /= 2;
        } else if n < LITTLE {
            rest = (rest + STEP).min(LONGEST);
        }
        if n < FULL && rest >= STEP {
            stream = match stream.rest(rest).await {
                Ok(stream) => stream,
                Err(error) => return buffer.fail(error),
            };
        }
    }
}
