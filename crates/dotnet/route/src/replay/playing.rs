//! The runtime's part from its beginning to its end: where tools find it, and the tool that is started for it. Refuses to know
//! what is answered: the [`Player`] does.

use std::process::ExitStatus;
use std::sync::Arc;

use runtap_transport::{Endpoint, Listener};
use tokio::sync::watch;

use super::runtime::Player;
use crate::record::{Command, Error, Stop, conduct};

/// Where tools find us.
#[derive(Debug)]
pub enum Heard {
    /// They dial us.
    Listen(Listener),
    /// We dial their port, as a runtime does that was told to.
    Dial(Endpoint),
}

/// A recording that is played to tools, and to one that is started for it.
#[derive(Debug)]
pub struct Playing {
    /// What is played.
    pub player: Arc<Player>,
    /// Where tools find it.
    pub heard: Heard,
    /// A tool; its end is that of the playing. Without one it ends when everything was played.
    pub command: Option<Command>,
}

impl Playing {
    /// Plays to the end; how the command has ended.
    ///
    /// # Errors
    /// The command can't be started.
    pub async fn run(self, stops: watch::Receiver<Stop>) -> Result<Option<ExitStatus>, Error> {
        let Self { player, heard, command } = self;
        let all = Arc::clone(&player);
        let has_command = command.is_some();
        let enough = async {
            if has_command {
                std::future::pending::<()>().await;
            }
            all.is_over().await;
        };
        conduct(|phases| player.play(heard, phases), command.as_ref(), enough, stops).await
    }
}
