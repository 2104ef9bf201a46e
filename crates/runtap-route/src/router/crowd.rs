//! Many clients at once: how many there may be, and who has to leave for the next one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until, timeout};

use super::notice::Teller;

/// How long a client has at least for its request where all places are taken.
const GRACE: Duration = Duration::from_millis(100);
/// How long it may take until the place of one that was disconnected is free.
const LEAVING: Duration = Duration::from_millis(100);

/// How far a client has got: [`Crowd::next_to_leave`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Stage {
    /// It has failed, and waits for nothing but the answer that says so.
    Refused,
    /// It has sent nothing that counts.
    Silent,
    /// It has begun as clients do.
    Greeted,
    /// Its request is there: it stays.
    Asked,
}

/// The stage of one client, which its task moves on.
#[derive(Debug, Clone)]
pub(crate) struct Progress(Arc<AtomicU8>);

impl Default for Progress {
    fn default() -> Self {
        Self(Arc::new(AtomicU8::new(Stage::Silent as u8)))
    }
}

impl Progress {
    pub(crate) fn is_now(&self, stage: Stage) {
        self.0.store(stage as u8, Ordering::Relaxed);
    }

    fn stage(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The clients of a router.
#[derive(Debug)]
pub(crate) struct Crowd {
    room: Arc<Semaphore>,
    /// Those that have not sent a request yet, the oldest first.
    silent: VecDeque<Silent>,
    most_silent: usize,
    /// Of `most_silent`, the places that greetings alone can't take: a new client needs one until its own has come.
    ungreeted: usize,
    teller: Teller,
}

/// A client that has not sent its request yet.
#[derive(Debug)]
struct Silent {
    task: AbortHandle,
    progress: Progress,
    since: Instant,
}

impl Silent {
    fn is_so(&self) -> bool {
        self.progress.stage() != Stage::Asked as u8 && !self.task.is_finished()
    }
}

impl Crowd {
    /// Of `silent` clients no more than a quarter of all are kept: the others need room.
    pub(crate) fn new(connections: usize, silent: usize, teller: Teller) -> Self {
        let most_silent = silent.min(connections / 4).max(1);
        Self {
            room: Arc::new(Semaphore::new(connections.max(1))),
            silent: VecDeque::new(),
            most_silent,
            ungreeted: most_silent / 4,
            teller,
        }
    }

    /// Room for one more. Where there is none, one that has sent nothing makes some at once, unless it has just come.
    pub(crate) async fn admit(&mut self) -> OwnedSemaphorePermit {
        loop {
            if let Ok(permit) = Arc::clone(&self.room).try_acquire_owned() {
                return permit;
            }
            let room = Arc::clone(&self.room).acquire_owned();
            self.silent.retain(Silent::is_so);
            let permit = match self.next_to_leave(self.silent.len()).and_then(|at| self.silent.get(at)) {
                Some(next) if next.since.elapsed() < GRACE => tokio::select! {
                    permit = room => Some(permit),
                    () = sleep_until(next.since + GRACE) => None,
                },
                Some(_) => {
                    self.disconnect_one();
                    timeout(LEAVING, room).await.ok()
                }
                None => Some(room.await),
            };
            match permit {
                Some(Ok(permit)) => return permit,
                // Never closed.
                Some(Err(_closed)) => return std::future::pending().await,
                None => {}
            }
        }
    }

    /// One has come in, and has sent nothing yet. Another one leaves for it, if too many have not sent a request.
    pub(crate) fn enter(&mut self, task: AbortHandle, progress: Progress) {
        self.silent.push_back(Silent { task, progress, since: Instant::now() });
        if self.silent.len() > self.most_silent {
            self.silent.retain(Silent::is_so);
            if self.silent.len() > self.most_silent {
                self.disconnect(self.next_to_leave(self.silent.len().saturating_sub(1)));
            }
        }
    }

    /// Out of descriptors, or of room: the oldest of those that have got least far leaves.
    pub(crate) fn disconnect_one(&mut self) {
        self.silent.retain(Silent::is_so);
        self.disconnect(self.next_to_leave(self.silent.len()));
    }

    fn disconnect(&mut self, at: Option<usize>) {
        if let Some(leaving) = at.and_then(|at| self.silent.remove(at)) {
            leaving.task.abort();
            // Who was refused is counted as that.
            if leaving.progress.stage() != Stage::Refused as u8 {
                self.teller.silent();
            }
        }
    }

    /// Who leaves next of the oldest `among`: one that was refused; one that has not greeted, if more of those are there
    /// than have places of their own; one that has greeted. So neither greetings nor silence drive out the other kind.
    fn next_to_leave(&self, among: usize) -> Option<usize> {
        let oldest = |stage: Stage| {
            self.silent.iter().take(among).position(|silent| silent.progress.stage() == stage as u8)
        };
        let ungreeted = self.silent.iter().filter(|silent| silent.progress.stage() == Stage::Silent as u8);
        let (first, second) = if ungreeted.count() > self.ungreeted {
            (Stage::Silent, Stage::Greeted)
        } else {
            (Stage::Greeted, Stage::Silent)
        };
        oldest(Stage::Refused).or_else(|| oldest(first)).or_else(|| oldest(second))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A crowd in which somebody who says nothing holds each place that he can get.
    async fn enter(crowd: &mut Crowd, stage: Stage) -> AbortHandle {
        let permit = crowd.admit().await;
        let task = tokio::spawn(async move {
            std::future::pending::<()>().await;
            drop(permit);
        });
        let progress = Progress::default();
        progress.is_now(stage);
        crowd.enter(task.abort_handle(), progress);
        task.abort_handle()
    }

    #[tokio::test]
    async fn silence_never_takes_all_places() {
        let mut crowd = Crowd::new(16, 16, Teller::default());
        for _ in 0..100 {
            enter(&mut crowd, Stage::Silent).await;
            tokio::task::yield_now().await;
            assert!(crowd.room.available_permits() >= 11, "{crowd:?}");
        }
        assert_eq!(crowd.teller.statistics().silent(), 96);
    }

    #[tokio::test]
    async fn where_all_places_are_taken_the_silent_one_leaves() {
        let mut crowd = Crowd::new(4, 4, Teller::default());
        let mut asked = Vec::new();
        for _ in 0..3 {
            asked.push(enter(&mut crowd, Stage::Asked).await);
        }
        let silent = enter(&mut crowd, Stage::Silent).await;
        asked.push(enter(&mut crowd, Stage::Asked).await);
        assert!(silent.is_finished());
        assert!(asked.iter().all(|task| !task.is_finished()));
    }

    #[tokio::test]
    async fn who_has_got_least_far_leaves_first() {
        let mut crowd = Crowd::new(16, 3, Teller::default());
        let greeted = enter(&mut crowd, Stage::Greeted).await;
        let silent = enter(&mut crowd, Stage::Silent).await;
        let refused = enter(&mut crowd, Stage::Refused).await;
        for (stage, left) in [(Stage::Greeted, refused), (Stage::Greeted, silent), (Stage::Greeted, greeted)]
        {
            enter(&mut crowd, stage).await;
            tokio::task::yield_now().await;
            assert!(left.is_finished(), "{crowd:?}");
        }
    }

    #[tokio::test]
    async fn the_newcomer_stays_where_all_others_have_greeted() {
        for places in [1, 2, 16] {
            let mut crowd = Crowd::new(places * 4, places, Teller::default());
            let mut greeted = Vec::new();
            for _ in 0..places {
                greeted.push(enter(&mut crowd, Stage::Greeted).await);
            }
            let newcomer = enter(&mut crowd, Stage::Silent).await;
            tokio::task::yield_now().await;
            assert!(!newcomer.is_finished(), "{places}: {crowd:?}");
            let left: Vec<bool> = greeted.iter().map(AbortHandle::is_finished).collect();
            assert_eq!(left.iter().filter(|left| **left).count(), 1, "{places}");
            assert!(left[0], "{places}: the oldest");
        }
    }

    /// A client needs a moment for its greeting, and others come meanwhile.
    #[tokio::test]
    async fn greetings_and_silence_do_not_drive_out_each_other() {
        let mut crowd = Crowd::new(64, 16, Teller::default());
        for _ in 0..32 {
            enter(&mut crowd, Stage::Greeted).await;
        }
        let silent = enter(&mut crowd, Stage::Silent).await;
        for _ in 0..100 {
            enter(&mut crowd, Stage::Greeted).await;
        }
        for _ in 0..3 {
            enter(&mut crowd, Stage::Silent).await;
        }
        tokio::task::yield_now().await;
        assert!(!silent.is_finished(), "{crowd:?}");
        let greeted = enter(&mut crowd, Stage::Greeted).await;
        for _ in 0..100 {
            enter(&mut crowd, Stage::Silent).await;
        }
        tokio::task::yield_now().await;
        assert!(!greeted.is_finished() && silent.is_finished(), "{crowd:?}");
    }
}
