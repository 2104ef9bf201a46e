//! Running processes and users, as candidates for shell completion.

use runtap_discover::{Options, Process, ProcessKind};
use runtap_model::order;

use crate::resolved::local_name;
use crate::user::UserFilter;

/// Returns the .NET processes that the current user can reach.
pub fn dotnet() -> Vec<Process> {
    let mut processes = runtap_discover::processes(Options::default());
    dotnet_only(&mut processes);
    processes
}

pub(crate) fn dotnet_only(processes: &mut Vec<Process>) {
    processes.retain(|process| process.kind == ProcessKind::Dotnet);
}

/// Returns the distinct names of the processes that the user owns.
pub fn names(whose: UserFilter<'_>) -> Vec<String> {
    each_once(dotnet().iter().filter(|process| whose.includes(process)).map(local_name).collect())
}

/// Returns the distinct owners of .NET processes.
pub fn users() -> Vec<String> {
    each_once(dotnet().into_iter().map(|process| process.user).collect())
}

fn each_once(mut words: Vec<String>) -> Vec<String> {
    order::sort(&mut words);
    words.dedup();
    words
}
