//! `runtap mtp`: recordings of the pipe between test applications and whoever runs them, as clap sees it.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::PossibleValue;
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use runtap_test::formats::Format;

use super::{InputSize, ResultFormat, TextOrJson, input_file};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  runtap mtp record -o talk.jsonl -- bin/Release/net10.0/Shop.Tests.dll
  runtap mtp inspect talk.jsonl
  runtap mtp lint talk.jsonl
  runtap mtp replay talk.jsonl --write-module shop-replay
  runtap mtp host --from libtest --write-module rust-tests -- cargo test")]
pub(crate) struct Mtp {
    #[command(subcommand)]
    pub(crate) verb: MtpVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MtpVerb {
    /// Record what a test application and its server say
    Record(MtpRecord),
    /// Play the application's part of a recording to any server
    Replay(MtpReplay),
    /// Show a recording, every message decoded
    Inspect(MtpInspect),
    /// Check a recording against the rules of the protocol
    Lint(MtpLint),
    /// Make a test application of any test command
    Host(MtpHost),
    /// Run a command, and end all that it has started when whoever is at the other end of stdin is gone
    #[command(hide = true)]
    Keep(MtpKeep),
}

impl Mtp {
    /// How the result is printed.
    pub(super) fn format(&self) -> TextOrJson {
        match &self.verb {
            MtpVerb::Record(options) => options.format.format,
            MtpVerb::Inspect(MtpInspect { format, .. })
            | MtpVerb::Lint(MtpLint { format, .. })
            | MtpVerb::Replay(MtpReplay { format, .. }) => format.format,
            // What it prints is its server's business.
            MtpVerb::Host(_) | MtpVerb::Keep(_) => TextOrJson::Text,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
If the application's arguments name a server (--dotnet-test-pipe PATH), everything is passed on \
between both and written down. Otherwise runtap is the server, as 'runtap test' is. The exit code \
is the application's.

With --write-module nothing is run: the script that is written records the application when a \
server runs the script in the application's place. The script is started once for each run, list \
or retry; '%p' in FILE keeps the recordings apart. Only a script of runtap is replaced.

Examples:
  runtap mtp record -o talk.jsonl -- bin/Shop.Tests.dll --treenode-filter '/*/*/*/*'
  runtap mtp record -o talk-%p.jsonl --write-module shop-recorded -- bin/Shop.Tests.dll
  dotnet test --test-modules shop-recorded
  runtap test ./shop-recorded")]
pub(crate) struct MtpRecord {
    /// The recording; '%p' is the recorder's process id
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// Write an executable script that records the application in its place, instead of running it
    #[arg(long, value_name = "MODULE", value_hint = ValueHint::FilePath)]
    pub(crate) write_module: Option<PathBuf>,
    /// The dotnet host for a .dll [default: found as dotnet itself is]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) dotnet: Option<PathBuf>,
    /// The test application: a .dll or a program, with its arguments
    #[arg(last = true, required = true, value_name = "APP", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) application: Vec<OsString>,
    #[command(flatten)]
    pub(crate) format: ResultFormat,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Each recorded request is sent once the one before it is answered, on as many connections as there \
were. Everything is sent as it was recorded, but for the ExecutionId, where the server has given \
one (TESTINGPLATFORM_DOTNETTEST_EXECUTIONID). The exit code is the recorded one.

Examples:
  runtap mtp replay talk.jsonl --write-module shop-replay
  runtap test ./shop-replay
  runtap mtp replay talk.jsonl --fast --pipe /tmp/server.sock")]
pub(crate) struct MtpReplay {
    /// The recording; '-' is stdin
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, value_parser = input_file())]
    pub(crate) file: PathBuf,
    /// The server's socket
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) pipe: Option<PathBuf>,
    /// Leave out the recorded pauses
    #[arg(long)]
    pub(crate) fast: bool,
    /// Name artifacts of this machine outside the working directory, too: a server may copy them
    #[arg(long)]
    pub(crate) allow_artifacts: bool,
    /// Write an executable script that plays the recording, for servers that run test applications
    #[arg(long, value_name = "MODULE", value_hint = ValueHint::FilePath, conflicts_with = "pipe")]
    pub(crate) write_module: Option<PathBuf>,
    /// Arguments as a server gives them to a test application: --dotnet-test-pipe PATH counts
    #[arg(last = true, value_name = "APP-OPTIONS", conflicts_with = "pipe")]
    pub(crate) arguments: Vec<OsString>,
    #[command(flatten)]
    pub(crate) max_size: InputSize,
    #[command(flatten)]
    pub(crate) format: ResultFormat,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A line for each message; with -v all of its fields, with their offsets. Files compressed with \
zstd or gzip are read too.

Examples:
  runtap mtp inspect talk.jsonl
  runtap mtp inspect -v talk.jsonl | less
  runtap mtp inspect talk.jsonl --format json | jq '.rows[] | select(.name == \"TestResultMessages\")'")]
pub(crate) struct MtpInspect {
    /// The recording
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) max_size: InputSize,
    #[command(flatten)]
    pub(crate) format: ResultFormat,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The rules and their sources are in docs/mtp-rules.md. Exit code 1: a rule was broken whose \
severity is error.

Examples:
  runtap mtp lint talk.jsonl
  runtap mtp lint talk.jsonl --format json | jq -r '.findings[].rule'")]
pub(crate) struct MtpLint {
    /// The recording
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) max_size: InputSize,
    #[command(flatten)]
    pub(crate) format: ResultFormat,
}

/// What a command prints, as clap sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Printed(pub(crate) Format);

impl ValueEnum for Printed {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [Printed; 6] = {
            let [a, b, c, d, e, f] = Format::ALL;
            [Printed(a), Printed(b), Printed(c), Printed(d), Printed(e), Printed(f)]
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()))
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
The command runs as it is; its results are read from what it prints and told to the server: the \
real dotnet test, runtap test, or another one. Servers start the script that --write-module leaves, \
in any directory; the command runs in the current one. A command that can't be read to its end, or \
fails without a failed test, fails the application. With -v, which the script keeps, standard error \
has the negotiated version of the protocol.

A script of your own passes the server's options on, before '--': they are the platform's \
(--server dotnettestcli --dotnet-test-pipe PATH, --list-tests, --help, --filter-uid UID…, --timeout \
TIME, --maximum-failed-tests N, --ignore-exit-code N, --diagnostic and so on), as are the exit codes.

Examples:
  runtap mtp host --from libtest --write-module rust-tests -- cargo test --no-fail-fast
  runtap mtp host --from go-json --write-module go-tests -- go test -json ./...
  runtap mtp host --from tap --write-module node-tests -- node --test --test-reporter=tap
  runtap mtp host --from junit --report out.xml --write-module py-tests -- pytest --junitxml out.xml
  dotnet test --test-modules rust-tests
  runtap test ./rust-tests bin/Shop.Tests.dll
  exec runtap mtp host --from tap \"$@\" -- node --test --test-reporter=tap")]
pub(crate) struct MtpHost {
    /// What the command prints
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub(crate) from: Printed,
    /// Write an executable script that is the test application
    #[arg(long, value_name = "MODULE", value_hint = ValueHint::FilePath)]
    pub(crate) write_module: Option<PathBuf>,
    /// The file that the command leaves its results in, if it does not print them
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<PathBuf>,
    /// Where the command runs [default: the current directory]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directory: Option<PathBuf>,
    /// Arguments with which the command lists its tests [default: what libtest takes; others are run]
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true)]
    pub(crate) list_arguments: Option<String>,
    /// The file that servers show
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) module: Option<PathBuf>,
    /// How many words are the command's; what follows is the server's
    #[arg(long, value_name = "N", hide = true)]
    pub(crate) words: Option<usize>,
    /// The test command with its arguments
    #[arg(last = true, required = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct MtpKeep {
    /// Leave the rest of its process group alone if it ends by itself
    #[arg(long)]
    pub(crate) leave_group: bool,
    /// The command with its arguments
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}
