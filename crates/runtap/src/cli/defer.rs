//! Verbs whose options are made when they are called, and not at each start: most of a start's instructions are the making
//! of options that nobody uses.

use std::ops::Deref;

use clap::builder::Resettable;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches, Subcommand};

/// The options of a verb. What asks for the whole tree has to [build](Command::build) it first.
#[derive(Debug)]
pub(crate) struct Deferred<T>(pub(crate) T);

impl<T: FromArgMatches> FromArgMatches for Deferred<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl<T> Deref for Deferred<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Subcommand> Subcommand for Deferred<T> {
    fn augment_subcommands(command: Command) -> Command {
        command.defer(|command| with(command, T::augment_subcommands))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        command.defer(|command| with(command, T::augment_subcommands_for_update))
    }

    fn has_subcommand(name: &str) -> bool {
        T::has_subcommand(name)
    }
}

impl<T: Args> Args for Deferred<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(|command| with(command, T::augment_args))
    }

    fn augment_args_for_update(command: Command) -> Command {
        command.defer(|command| with(command, T::augment_args_for_update))
    }
}

/// What the verb is about was said before: the texts of the parts that its options are made of must not take that place.
fn with(command: Command, augment: impl FnOnce(Command) -> Command) -> Command {
    let (about, long) = (command.get_about().cloned(), command.get_long_about().cloned());
    augment(command).about(Resettable::from(about)).long_about(Resettable::from(long))
}
