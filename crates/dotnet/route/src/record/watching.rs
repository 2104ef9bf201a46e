//! A wait that blocks, on a thread of its own, which looks now and then whether anybody still wants to know.

use tokio::sync::oneshot;

/// Whether it came to pass. The wait is given the sender of its answer: once that is closed, it gives up.
pub(super) async fn on_a_thread(wait: impl FnOnce(&oneshot::Sender<()>) -> bool + Send + 'static) -> bool {
    let (sender, receiver) = oneshot::channel();
    let watching = std::thread::Builder::new().name("watch".to_owned()).spawn(move || {
        if wait(&sender) {
            // Nobody may want to know any more.
            let _ = sender.send(());
        }
    });
    watching.is_ok() && receiver.await.is_ok()
}
