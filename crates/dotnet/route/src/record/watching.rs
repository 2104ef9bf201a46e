//! Blocking waits on a separate thread, which checks from time to time whether the result is still needed.

use tokio::sync::oneshot;

/// Returns the result of `wait`. It receives the sender of its answer, and should give up once the sender is closed.
pub(super) async fn on_a_thread(wait: impl FnOnce(&oneshot::Sender<()>) -> bool + Send + 'static) -> bool {
    let (sender, receiver) = oneshot::channel();
    let watching = std::thread::Builder::new().name("watch".to_owned()).spawn(move || {
        if wait(&sender) {
            // The receiver may have been dropped.
            let _ = sender.send(());
        }
    });
    watching.is_ok() && receiver.await.is_ok()
}
