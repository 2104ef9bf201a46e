//! The options of `runtap stack`.

use clap::Args;

use super::{All, ResultFormat, Target};

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "switches of a command line")]
#[command(after_help = "\
.NET: a session of a few milliseconds stops the managed threads up to once a millisecond. Java: the \
virtual machine stops its threads while it walks their stacks. Nothing is loaded into the program.

Examples:
  runtap stack 1234
  runtap stack -n MyService --merge               threads with equal stacks together
  runtap stack 1234 --async                       the async methods that wait, too (.NET)
  runtap stack 1234 --locks                       owners of ReentrantLocks (Java)
  runtap stack 1234 --format json | jq '.threads[] | select(.state == \"blocked\").name'")]
pub(crate) struct Stack {
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) all: All,
    /// Show threads with equal stacks together
    #[arg(long, help_heading = "Stacks")]
    pub(crate) merge: bool,
    /// .NET: also show the async methods that wait, and which method awaits which. The runtime collects all garbage and describes
    /// its heap, during which threads are suspended
    #[arg(long, help_heading = "Stacks")]
    pub(crate) r#async: bool,
    /// Java: also determine the owners of java.util.concurrent locks that are not in a deadlock. All threads stop while the
    /// virtual machine searches its heap
    #[arg(short, long, help_heading = "Stacks")]
    pub(crate) locks: bool,
    /// Java: leave out virtual threads. JDK 21 and later list them in a temporary file, which is read and removed
    #[arg(long, help_heading = "Stacks")]
    pub(crate) no_virtual: bool,
    #[command(flatten)]
    pub(crate) format: ResultFormat,
}
