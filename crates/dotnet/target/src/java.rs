//! Selects a Java program by name.

use runtap_discover::{Options, Process, ProcessKind, System};
use runtap_jvm_attach::{AttachError, Jvm};
use runtap_os::my_uid;

use crate::resolved::local_name;

/// An error that is returned if a name selects no Java program, or more than one.
#[derive(Debug)]
pub enum JavaNameError {
    /// No Java program of the current user has this name.
    NotFound {
        /// A .NET program of the current user that has this name.
        dotnet: Option<u32>,
    },
    /// Several Java programs of the current user have this name.
    Ambiguous(Vec<Process>),
}

/// Returns the id of the only Java program of the current user that has this name: its main class or its JAR file.
/// Reads the files of all processes, which may block.
///
/// # Errors
/// Fails if there is no such program, or more than one.
pub fn find_by_name(name: &str) -> Result<u32, JavaNameError> {
    let listed = System::current().processes(Options::default());
    let own = |process: &&Process, kind| process.kind == kind && process.uid == my_uid();
    let is_named = |process: &&Process| process.java.as_ref().and_then(|java| java.main()) == Some(name);
    // The performance data of a container that shares /tmp carries the container's process ids, which belong to other
    // processes here.
    let is_jvm =
        |process: &&Process| matches!(Jvm::examine(process.pid), Ok(_) | Err(AttachError::OpenJ9 { .. }));
    let java = listed.iter().filter(|process| own(process, ProcessKind::Jvm));
    let found: Vec<&Process> = java.filter(is_named).filter(is_jvm).collect();
    match &found[..] {
        [one] => Ok(one.pid),
        [] => {
            let mut dotnet = listed.iter().filter(|process| own(process, ProcessKind::Dotnet));
            let dotnet = dotnet.find(|process| local_name(process) == name);
            Err(JavaNameError::NotFound { dotnet: dotnet.map(|process| process.pid) })
        }
        several => Err(JavaNameError::Ambiguous(several.iter().copied().cloned().collect())),
    }
}
