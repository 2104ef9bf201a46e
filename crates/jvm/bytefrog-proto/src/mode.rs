//! The modes of an agent, the commands that change them, and which command is legal in which mode.
//!
//! Contains [`Mode`], [`Command`], and the table of legal transitions ([`AgentState::after`],
//! [`AgentState::path_to`]), which both sides use. The source is the code of the original agents (bytefrog 884936f,
//! Code Pulse d12eede); the specification has no such table.
//!
//! | command | legal in | leads to | effect on the original agent in other modes |
//! |---|---|---|---|
//! | start | initializing, once | tracing, or suspended if suspend came before | fails with an error |
//! | stop | after start | shutting down | before start: hangs in `premain` forever |
//! | pause | tracing | paused | fails with an error |
//! | unpause | paused | tracing | fails with an error; ignores it when shutting down |
//! | suspend | initializing, tracing | suspended | fails with an error |
//! | unsuspend | initializing, suspended | tracing | fails with an error; ignores it when shutting down |

use std::fmt;

/// The mode in a heartbeat, an ASCII letter. Unknown letters are preserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModeByte(pub u8);

/// The mode of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// `I`: the agent waits for start.
    Initializing,
    /// `T`: the agent traces the program.
    Tracing,
    /// `P`: the threads of the program block at their next traced call.
    Paused,
    /// `S`: the program runs, but nothing is recorded.
    Suspended,
    /// `X`: the agent sends what is buffered and then closes its connections.
    ShuttingDown,
}

impl Mode {
    /// All modes.
    pub const ALL: [Self; 5] =
        [Self::Initializing, Self::Tracing, Self::Paused, Self::Suspended, Self::ShuttingDown];

    /// Returns the letter in heartbeats.
    pub fn byte(self) -> ModeByte {
        ModeByte(match self {
            Self::Initializing => b'I',
            Self::Tracing => b'T',
            Self::Paused => b'P',
            Self::Suspended => b'S',
            Self::ShuttingDown => b'X',
        })
    }
}

impl ModeByte {
    /// Returns the mode; `None` if the letter is unknown.
    pub fn mode(self) -> Option<Mode> {
        Mode::ALL.into_iter().find(|mode| mode.byte() == self)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Initializing => "initializing",
            Self::Tracing => "tracing",
            Self::Paused => "paused",
            Self::Suspended => "suspended",
            Self::ShuttingDown => "shutting down",
        })
    }
}

/// A message of HQ that has no fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Command {
    /// Start the program.
    Start,
    /// Detach from the program, which continues.
    Stop,
    /// Block the program's threads at their next traced call.
    Pause,
    /// Unblock the program's threads.
    Unpause,
    /// Stop recording.
    Suspend,
    /// Resume recording.
    Unsuspend,
}

impl Command {
    /// All commands, in the order of their IDs.
    pub const ALL: [Self; 6] =
        [Self::Start, Self::Stop, Self::Pause, Self::Unpause, Self::Suspend, Self::Unsuspend];

    /// Returns the message ID, 2 to 7.
    pub fn id(self) -> u8 {
        match self {
            Self::Start => 2,
            Self::Stop => 3,
            Self::Pause => 4,
            Self::Unpause => 5,
            Self::Suspend => 6,
            Self::Unsuspend => 7,
        }
    }

    /// Returns the name of the command, as in the specification.
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Pause => "pause",
            Self::Unpause => "unpause",
            Self::Suspend => "suspend",
            Self::Unsuspend => "unsuspend",
        }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The state of an agent: its mode, and whether its program was started. Between suspend and start the mode is
/// suspended, but the program still waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AgentState {
    /// The mode that its heartbeats report.
    pub mode: Mode,
    /// Whether start was sent.
    pub started: bool,
}

/// The effect of a command on an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CommandEffect {
    /// The agent changes to this state.
    To(AgentState),
    /// The command has no effect: the agent is shutting down.
    Ignored,
    /// The agent fails with an error; on stop before start, the original agents hang instead.
    Illegal,
}

impl AgentState {
    /// The state before any command.
    pub const NEW: Self = Self { mode: Mode::Initializing, started: false };

    /// Returns the effect of a command on an agent in this state.
    pub fn after(self, command: Command) -> CommandEffect {
        let to = |mode| CommandEffect::To(Self { mode, ..self });
        match (command, self.mode) {
            (Command::Start, _) if self.started => CommandEffect::Illegal,
            (Command::Start, Mode::Suspended) => {
                CommandEffect::To(Self { mode: Mode::Suspended, started: true })
            }
            (Command::Start, Mode::Initializing) => {
                CommandEffect::To(Self { mode: Mode::Tracing, started: true })
            }
            (Command::Unpause | Command::Unsuspend | Command::Stop, Mode::ShuttingDown) => {
                CommandEffect::Ignored
            }
            (Command::Stop, _) if self.started => to(Mode::ShuttingDown),
            (Command::Pause, Mode::Tracing) => to(Mode::Paused),
            (Command::Unpause, Mode::Paused) => to(Mode::Tracing),
            (Command::Suspend, Mode::Initializing | Mode::Tracing) => to(Mode::Suspended),
            (Command::Unsuspend, Mode::Initializing) => to(Mode::Initializing),
            (Command::Unsuspend, Mode::Suspended) if self.started => to(Mode::Tracing),
            (Command::Unsuspend, Mode::Suspended) => to(Mode::Initializing),
            _ => CommandEffect::Illegal,
        }
    }

    /// Returns the commands that lead to a mode, in order, such as unsuspend and pause from suspended to paused.
    /// `None` if there are none.
    pub fn path_to(self, mode: Mode) -> Option<&'static [Command]> {
        use Command::{Pause, Start, Stop, Suspend, Unpause, Unsuspend};
        Some(match (self.mode, self.started, mode) {
            (from, true, to) if from == to => &[],
            (Mode::Initializing, false, Mode::Tracing) => &[Start],
            (Mode::Initializing, false, Mode::Suspended) => &[Suspend, Start],
            (Mode::Initializing, false, Mode::Paused) => &[Start, Pause],
            (Mode::Suspended, false, Mode::Suspended) => &[Start],
            (Mode::Suspended, false, Mode::Tracing) => &[Unsuspend, Start],
            (Mode::Suspended, false, Mode::Paused) => &[Unsuspend, Start, Pause],
            (Mode::Tracing, true, Mode::Paused) => &[Pause],
            (Mode::Tracing, true, Mode::Suspended) => &[Suspend],
            (Mode::Paused, true, Mode::Tracing) => &[Unpause],
            (Mode::Paused, true, Mode::Suspended) => &[Unpause, Suspend],
            (Mode::Suspended, true, Mode::Tracing) => &[Unsuspend],
            (Mode::Suspended, true, Mode::Paused) => &[Unsuspend, Pause],
            // A paused program must not stay blocked.
            (Mode::Paused, true, Mode::ShuttingDown) => &[Unpause, Stop],
            (_, true, Mode::ShuttingDown) => &[Stop],
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> impl Iterator<Item = AgentState> {
        Mode::ALL.into_iter().flat_map(|mode| [false, true].map(|started| AgentState { mode, started }))
    }

    /// Returns the states that legal commands lead to.
    fn reachable() -> Vec<AgentState> {
        let mut found = vec![AgentState::NEW];
        let mut next = 0;
        while let Some(state) = found.get(next).copied() {
            next += 1;
            for command in Command::ALL {
                if let CommandEffect::To(to) = state.after(command)
                    && !found.contains(&to)
                {
                    found.push(to);
                }
            }
        }
        found
    }

    #[test]
    fn six_states_can_be_reached() {
        let reachable = reachable();
        assert_eq!(reachable.len(), 6);
        let waiting = AgentState { mode: Mode::Suspended, started: false };
        assert!(reachable.contains(&waiting));
        assert!(all().filter(|state| !reachable.contains(state)).all(|state| {
            !state.started && state.mode != Mode::Initializing
                || state.mode == Mode::Initializing && state.started
        }));
    }

    #[test]
    fn every_path_is_legal_and_leads_to_its_mode() {
        let mut paths = 0;
        for from in reachable() {
            for mode in Mode::ALL {
                let Some(path) = from.path_to(mode) else { continue };
                let end = path.iter().fold(from, |state, command| match state.after(*command) {
                    CommandEffect::To(state) => state,
                    effect => panic!("{command} in {state:?} of {from:?} to {mode}: {effect:?}"),
                });
                assert_eq!((end.mode, end.started), (mode, true), "{from:?}");
                paths += 1;
            }
        }
        // No path leads to initializing, from shutting down, or to shutting down before start.
        assert_eq!(paths, 3 * 2 + 3 * 4 + 1);
    }

    #[test]
    fn commands_that_the_originals_reject_are_illegal() {
        let state = |mode| AgentState { mode, started: true };
        let illegal = |mode, command| {
            assert_eq!(state(mode).after(command), CommandEffect::Illegal, "{command} in {mode}");
        };
        for mode in [Mode::Paused, Mode::Suspended, Mode::ShuttingDown] {
            illegal(mode, Command::Pause);
            illegal(mode, Command::Suspend);
        }
        illegal(Mode::Tracing, Command::Unpause);
        illegal(Mode::Tracing, Command::Unsuspend);
        illegal(Mode::Paused, Command::Unsuspend);
        illegal(Mode::Tracing, Command::Start);
        assert_eq!(AgentState::NEW.after(Command::Stop), CommandEffect::Illegal);
        assert_eq!(AgentState::NEW.after(Command::Pause), CommandEffect::Illegal);
        assert_eq!(state(Mode::ShuttingDown).after(Command::Unpause), CommandEffect::Ignored);
        assert_eq!(AgentState::NEW.after(Command::Unsuspend), CommandEffect::To(AgentState::NEW));
    }
}
