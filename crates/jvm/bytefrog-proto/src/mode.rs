//! Modes of an agent, the commands that change them, and which command is legal when.
//!
//! Owns: [`Mode`], [`Command`], and the one table of legal transitions ([`State::after`], [`State::path_to`]), which both sides
//! use. Source: the code of the original agents (bytefrog 884936f, Code Pulse d12eede); the specification has no table.
//!
//! | command | legal in | leads to | in any other mode the original agent |
//! |---|---|---|---|
//! | start | initializing, once | tracing, or suspended if suspend came before | ends with an error |
//! | stop | after start | shutting down | before start: hangs in `premain` for ever |
//! | pause | tracing | paused | ends with an error |
//! | unpause | paused | tracing | ends with an error; ignores it when shutting down |
//! | suspend | initializing, tracing | suspended | ends with an error |
//! | unsuspend | initializing, suspended | tracing | ends with an error; ignores it when shutting down |

use std::fmt;

/// The mode in a heartbeat: an ASCII letter. Others than those below can come, and are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModeByte(pub u8);

/// What an agent does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// `I`: waits for start.
    Initializing,
    /// `T`: traces.
    Tracing,
    /// `P`: the program waits at its next traced call.
    Paused,
    /// `S`: the program runs and nothing is recorded.
    Suspended,
    /// `X`: what is buffered is sent, then the connections end.
    ShuttingDown,
}

impl Mode {
    /// All modes.
    pub const ALL: [Self; 5] =
        [Self::Initializing, Self::Tracing, Self::Paused, Self::Suspended, Self::ShuttingDown];

    /// The letter in a heartbeat.
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
    /// The mode, if it is a known one.
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

/// A message of HQ without content: its id is all there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Command {
    /// Run the program.
    Start,
    /// Detach from it. The program goes on.
    Stop,
    /// Block its threads at their next traced call.
    Pause,
    /// Let them go on.
    Unpause,
    /// Stop recording.
    Suspend,
    /// Record again.
    Unsuspend,
}

impl Command {
    /// All commands in the order of their ids.
    pub const ALL: [Self; 6] =
        [Self::Start, Self::Stop, Self::Pause, Self::Unpause, Self::Suspend, Self::Unsuspend];

    /// The id on the wire, 2 to 7.
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

    /// The name, as the specification has it.
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

/// Where an agent is: its mode, and whether its program runs. Between suspend and start it says `S` and still waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct State {
    /// What its heartbeats say.
    pub mode: Mode,
    /// Whether start has come.
    pub started: bool,
}

/// What a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// The agent is in this state then.
    To(State),
    /// Nothing: it is shutting down.
    Ignored,
    /// The agent ends with an error; on stop before start the originals hang instead.
    Illegal,
}

impl State {
    /// Before anything was sent.
    pub const NEW: Self = Self { mode: Mode::Initializing, started: false };

    /// What a command does to an agent in this state.
    pub fn after(self, command: Command) -> Effect {
        let to = |mode| Effect::To(Self { mode, ..self });
        match (command, self.mode) {
            (Command::Start, _) if self.started => Effect::Illegal,
            (Command::Start, Mode::Suspended) => Effect::To(Self { mode: Mode::Suspended, started: true }),
            (Command::Start, Mode::Initializing) => Effect::To(Self { mode: Mode::Tracing, started: true }),
            (Command::Unpause | Command::Unsuspend | Command::Stop, Mode::ShuttingDown) => Effect::Ignored,
            (Command::Stop, _) if self.started => to(Mode::ShuttingDown),
            (Command::Pause, Mode::Tracing) => to(Mode::Paused),
            (Command::Unpause, Mode::Paused) => to(Mode::Tracing),
            (Command::Suspend, Mode::Initializing | Mode::Tracing) => to(Mode::Suspended),
            (Command::Unsuspend, Mode::Initializing) => to(Mode::Initializing),
            (Command::Unsuspend, Mode::Suspended) if self.started => to(Mode::Tracing),
            (Command::Unsuspend, Mode::Suspended) => to(Mode::Initializing),
            _ => Effect::Illegal,
        }
    }

    /// The commands that lead to a mode, in their order: from suspended to paused it is unsuspend and pause. `None`: none do.
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
            // A paused program can't be left waiting.
            (Mode::Paused, true, Mode::ShuttingDown) => &[Unpause, Stop],
            (_, true, Mode::ShuttingDown) => &[Stop],
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> impl Iterator<Item = State> {
        Mode::ALL.into_iter().flat_map(|mode| [false, true].map(|started| State { mode, started }))
    }

    /// The states that legal commands lead to.
    fn reachable() -> Vec<State> {
        let mut found = vec![State::NEW];
        let mut next = 0;
        while let Some(state) = found.get(next).copied() {
            next += 1;
            for command in Command::ALL {
                if let Effect::To(to) = state.after(command)
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
        let waiting = State { mode: Mode::Suspended, started: false };
        assert!(reachable.contains(&waiting));
        assert!(all().filter(|state| !reachable.contains(state)).all(|state| {
            !state.started && state.mode != Mode::Initializing
                || state.mode == Mode::Initializing && state.started
        }));
    }

    #[test]
    fn every_path_is_legal_and_ends_where_it_says() {
        let mut paths = 0;
        for from in reachable() {
            for mode in Mode::ALL {
                let Some(path) = from.path_to(mode) else { continue };
                let end = path.iter().fold(from, |state, command| match state.after(*command) {
                    Effect::To(state) => state,
                    effect => panic!("{command} in {state:?} of {from:?} to {mode}: {effect:?}"),
                });
                assert_eq!((end.mode, end.started), (mode, true), "{from:?}");
                paths += 1;
            }
        }
        // Back to initializing nothing leads; from shutting down, and to it before start, neither.
        assert_eq!(paths, 3 * 2 + 3 * 4 + 1);
    }

    #[test]
    fn what_the_originals_refuse() {
        let state = |mode| State { mode, started: true };
        let illegal =
            |mode, command| assert_eq!(state(mode).after(command), Effect::Illegal, "{command} in {mode}");
        for mode in [Mode::Paused, Mode::Suspended, Mode::ShuttingDown] {
            illegal(mode, Command::Pause);
            illegal(mode, Command::Suspend);
        }
        illegal(Mode::Tracing, Command::Unpause);
        illegal(Mode::Tracing, Command::Unsuspend);
        illegal(Mode::Paused, Command::Unsuspend);
        illegal(Mode::Tracing, Command::Start);
        assert_eq!(State::NEW.after(Command::Stop), Effect::Illegal);
        assert_eq!(State::NEW.after(Command::Pause), Effect::Illegal);
        assert_eq!(state(Mode::ShuttingDown).after(Command::Unpause), Effect::Ignored);
        assert_eq!(State::NEW.after(Command::Unsuspend), Effect::To(State::NEW));
    }
}
