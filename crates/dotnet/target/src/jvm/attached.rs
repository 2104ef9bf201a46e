//! What a virtual machine reports over the attach protocol: its system properties, its arguments and its threads.

use std::collections::BTreeMap;
use std::time::Duration;

use runtap_discover::Java;
use runtap_jvm_attach::codec::Request;
use runtap_jvm_attach::{AttachError, Client, Jvm, ThreadDumpOptions, Timeouts, VirtualThreads};
use runtap_os::in_a_thread;

use super::{ThreadDumpReply, ThreadRequest};
use crate::error::Error;

pub(crate) use crate::attach_messages::instead_of_attaching;

/// The time-out of each step. An idle machine answers within milliseconds.
const DEADLINE: Duration = Duration::from_secs(2);
/// The time-out of a thread dump, which may contain millions of virtual threads.
const THREADS_DEADLINE: Duration = Duration::from_mins(1);
/// The beginning of the line with the arguments of the machine, in the reply to `VM.command_line`.
const ARGUMENTS: &str = "jvm_args:";

/// Completes the description of a machine.
///
/// # Errors
/// Returns why the machine did not report anything.
pub(super) async fn describe(pid: u32, start_time: u64, java: &mut Java) -> Result<(), String> {
    let reported = async {
        let client = attach(pid, start_time, Timeouts::all(DEADLINE)).await?;
        let properties = client.properties().await?;
        let command_line = client.execute(&Request::jcmd("VM.command_line".as_ref())).await?;
        Ok::<_, AttachError>((properties, String::from_utf8_lossy(&command_line).into_owned()))
    };
    let (properties, command_line) = reported.await.map_err(|error| error.to_string())?;
    complete(java, &properties, &command_line);
    Ok(())
}

/// Returns the threads of a machine.
pub(super) async fn thread_dump(
    pid: u32,
    start_time: u64,
    request: ThreadRequest,
) -> Result<ThreadDumpReply, Error> {
    let mut timeouts = Timeouts::default();
    timeouts.reply = THREADS_DEADLINE;
    let client = attach(pid, start_time, timeouts).await?;
    let options =
        ThreadDumpOptions { synchronizers: request.lock_owners, virtual_threads: request.virtual_threads };
    let (dump, threads) = client.thread_dump(options).await?;
    let (has_virtual_threads, why_not) = match threads {
        VirtualThreads::Unsupported => (None, None),
        VirtualThreads::NotRequested => (Some(false), None),
        VirtualThreads::Included => (Some(true), None),
        VirtualThreads::Failed(error) => (Some(false), Some(error.to_string())),
    };
    Ok(ThreadDumpReply { dump, has_virtual_threads, why_not })
}

/// Attaches to the process that had this id when it was selected.
async fn attach(pid: u32, start_time: u64, timeouts: Timeouts) -> Result<Client, AttachError> {
    let examined = in_a_thread(move || Jvm::examine(pid)).await;
    let jvm = examined.map_err(|_no_thread| AttachError::NoProcess { pid })??;
    if jvm.start_time() != start_time {
        return Err(AttachError::NoProcess { pid });
    }
    Client::attach(jvm, timeouts).await
}

/// Replaces the values that the machine reported.
fn complete(java: &mut Java, properties: &BTreeMap<String, String>, command_line: &str) {
    for (name, value) in [
        ("java.version", &mut java.version),
        ("java.vm.version", &mut java.vm_version),
        ("java.vm.name", &mut java.vm_name),
        ("java.vm.info", &mut java.vm_info),
        ("java.vm.vendor", &mut java.vendor),
        ("java.home", &mut java.home),
        ("sun.java.command", &mut java.command),
    ] {
        if let Some(reported) = properties.get(name).filter(|reported| !reported.is_empty()) {
            value.clone_from(reported);
        }
    }
    let arguments = command_line.lines().find_map(|line| line.strip_prefix(ARGUMENTS));
    if let Some(arguments) = arguments {
        arguments.trim().clone_into(&mut java.arguments);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reported_values_replace_known_ones() {
        let mut java = Java::default();
        java.version = "17".to_owned();
        java.home = "/jdk".to_owned();
        let properties = [("java.version", "17.0.15"), ("java.home", ""), ("java.vm.name", "VM")];
        let properties = properties.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let reply = "VM Arguments:\njvm_args: -Xmx1g -XX:-UsePerfData \njava_command: shop.Main\n";
        complete(&mut java, &properties, reply);
        assert_eq!((java.version.as_str(), java.home.as_str()), ("17.0.15", "/jdk"));
        assert_eq!((java.vm_name.as_str(), java.arguments.as_str()), ("VM", "-Xmx1g -XX:-UsePerfData"));
        assert_eq!(java.command, "");
    }
}
