//! What runs, by every word that it could be chosen by: to offer while somebody types.

use runtap_discover::{Kind, Options, Process};

use crate::subject::local_name;
use crate::user::Whose;

/// The .NET processes that we may reach.
pub fn dotnet() -> Vec<Process> {
    let mut processes = runtap_discover::processes(Options::default());
    dotnet_only(&mut processes);
    processes
}

pub(crate) fn dotnet_only(processes: &mut Vec<Process>) {
    processes.retain(|process| process.kind == Kind::Dotnet);
}

/// Their names, each once: what would be taken, and nothing that another user has called his program.
pub fn names(whose: Whose<'_>) -> Vec<String> {
    each_once(dotnet().iter().filter(|process| whose.has(process)).map(local_name).collect())
}

/// Their users, each once.
pub fn users() -> Vec<String> {
    each_once(dotnet().into_iter().map(|process| process.user).collect())
}

fn each_once(mut words: Vec<String>) -> Vec<String> {
    words.sort();
    words.dedup();
    words
}
