//! The Java program to attach to: selecting it, loading the agent, and presenting errors to users.

use runtap_jvm_attach::{AgentLibrary, AgentOptions, AttachError, Client, Jvm, Timeouts};
use runtap_os::in_a_thread;
use runtap_target::attach_messages::java_name_error;
use runtap_target::java;

use crate::cli::JvmTarget;
use crate::cmd::failure::attach_error;
use crate::exit::{self, with_message};
use runtap_target::messages::parse_pid;
use runtap_text::Output;

/// Returns the program that the target selects.
///
/// # Errors
/// Fails if no program or more than one matches, or if the program does not run a supported JVM.
pub(super) async fn choose(target: &JvmTarget) -> anyhow::Result<Jvm> {
    let word = target.word.as_deref();
    let by_word = word.and_then(|word| parse_pid(word).ok());
    let pid = match (target.process_id.or(by_word), target.name.as_deref().or(word)) {
        (Some(pid), _) => pid,
        (None, Some(name)) => {
            let owned = name.to_owned();
            let found = in_a_thread(move || java::find_by_name(&owned)).await?;
            found.map_err(|error| with_message(exit::NO_TARGET, java_name_error(name, error)))?
        }
        (None, None) => return Err(exit::usage("no process specified; use its id or its name")),
    };
    in_a_thread(move || Jvm::examine(pid).map_err(explain)).await?
}

/// Makes the JVM start its attach listener.
///
/// # Errors
/// Fails if the JVM does not respond.
pub(super) async fn attach(jvm: Jvm) -> anyhow::Result<Client> {
    jvm.check_c_library().map_err(explain)?;
    Client::attach(jvm, Timeouts::default()).await.map_err(explain)
}

/// Loads the agent, or passes new options to one that is already loaded.
///
/// # Errors
/// Fails if the agent does not start.
pub(super) async fn load(
    client: &Client,
    library: AgentLibrary,
    options: &AgentOptions,
    output: Output,
) -> anyhow::Result<()> {
    let warns = || {
        output.note(format_args!(
            "process {} prints a warning that an agent was loaded (JEP 451); start it with -XX:+EnableDynamicAgentLoading to avoid the warning",
            client.jvm().pid()
        ));
    };
    client.load_agent(library, options, warns).await.map_err(explain)
}

/// Adds an exit code and a hint to an error.
#[expect(clippy::needless_pass_by_value, reason = "it stands in map_err")]
pub(in crate::cmd) fn explain(error: AttachError) -> anyhow::Error {
    attach_error(&error)
}
