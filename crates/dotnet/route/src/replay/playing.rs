//! A complete replay as the runtime: the address at which tools find it, and the tool that is started for it. The replies are
//! the [`Player`]'s.

use std::process::ExitStatus;
use std::sync::Arc;

use runtap_transport::{Endpoint, Listener};
use tokio::sync::watch;

use super::runtime::Player;
use crate::record::{Command, Error, Stop, conduct};

/// The way in which tools connect.
#[derive(Debug)]
pub enum ToolConnection {
    /// Tools connect to this listener.
    Listen(Listener),
    /// The replay connects to a tool's port, as a runtime with such a configuration does.
    Connect(Endpoint),
}

/// A recording that is played to tools, and optionally to a tool that is started for it.
#[derive(Debug)]
pub struct Playing {
    /// The player of the recording.
    pub player: Arc<Player>,
    /// The way in which tools connect.
    pub heard: ToolConnection,
    /// A tool; the replay ends when it exits. Without a tool, the replay ends when everything was played.
    pub command: Option<Command>,
}

impl Playing {
    /// Plays until the end. Returns the exit status of the command.
    ///
    /// # Errors
    /// Fails if the command can't be started.
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
