//! The verbs of `runtap jvm` that load or write the agent, on systems without an agent. They accept any arguments and are
//! hidden in the help.

use clap::Subcommand;

use super::TextOrJson;
use super::words::Words;

pub(super) const JVM_EXAMPLES: &str = "\
Examples:
  runtap demo jvm
  runtap jvm hq --once --include '^com/example/'
  runtap jvm hq --format json > calls.json";

#[derive(Debug, Subcommand)]
pub(crate) enum JvmAgents {
    /// Run a Java program with the agent
    #[command(hide = true)]
    Run(Words),
    /// Trace a running Java program
    #[command(hide = true)]
    Attach(Words),
    /// Write the agent library to a file
    #[command(hide = true)]
    Agent(Words),
    /// Unload an agent from a running program
    #[command(hide = true)]
    Detach(Words),
}

impl JvmAgents {
    /// Returns the format of the result.
    #[expect(clippy::unused_self, reason = "elsewhere there are results")]
    pub(super) fn format(&self) -> TextOrJson {
        TextOrJson::Text
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Run(_) => "run",
            Self::Attach(_) => "attach",
            Self::Agent(_) => "agent",
            Self::Detach(_) => "detach",
        }
    }
}
