//! The options of `runtap mtp`, which records the pipe between test applications and their servers.

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
    /// Record the messages between a test application and its server
    Record(MtpRecord),
    /// Send the application's side of a recording to a server
    Replay(MtpReplay),
    /// Show a recording with every message decoded
    Inspect(MtpInspect),
    /// Check a recording against the rules of the protocol
    Lint(MtpLint),
    /// Make a test application from any test command
    Host(MtpHost),
    /// Run a command; when stdin is closed, kill all processes that the command started
    #[command(hide = true)]
    Keep(MtpKeep),
}

impl Mtp {
    /// Returns the format of the result.
    pub(super) fn format(&self) -> TextOrJson {
        match &self.verb {
            MtpVerb::Record(options) => options.format.format,
            MtpVerb::Inspect(MtpInspect { format, .. })
            | MtpVerb::Lint(MtpLint { format, .. })
            | MtpVerb::Replay(MtpReplay { format, .. }) => format.format,
            // The server determines what these verbs print.
            MtpVerb::Host(_) | MtpVerb::Keep(_) => TextOrJson::Text,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
If the application's arguments name a server (--dotnet-test-pipe PATH), runtap forwards all messages \
and records them. Otherwise runtap is the server, as in 'runtap test'. Exits with the application's \
exit code.

With --write-module, nothing is run. runtap writes a script that a server can run in place of the \
application; the script runs the application and records it. A server starts the script once for \
each run, list or retry; '%p' in FILE gives each start its own recording. An existing file is \
replaced only if it is such a script.

Examples:
  runtap mtp record -o talk.jsonl -- bin/Shop.Tests.dll --treenode-filter '/*/*/*/*'
  runtap mtp record -o talk-%p.jsonl --write-module recorded -- bin/Shop.Tests.dll
  dotnet test --test-modules recorded
  runtap test ./recorded")]
pub(crate) struct MtpRecord {
    /// The recording; '%p' is replaced by runtap's process id
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// Write a script that records the application, instead of running the application
    #[arg(long, value_name = "MODULE", value_hint = ValueHint::FilePath)]
    pub(crate) write_module: Option<PathBuf>,
    /// The dotnet host for a .dll [default: searched as dotnet itself does]
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
Opens as many connections as were recorded. On each, a request is sent when the previous request \
has been answered. Messages are sent as recorded, except for the ExecutionId if the server has set \
one (TESTINGPLATFORM_DOTNETTEST_EXECUTIONID). Exits with the recorded exit code.

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
    /// Skip the recorded pauses
    #[arg(long)]
    pub(crate) fast: bool,
    /// Also send artifacts whose files exist outside the working directory, which a server may copy
    #[arg(long)]
    pub(crate) allow_artifacts: bool,
    /// Write a script that replays the recording, for servers that run test applications
    #[arg(long, value_name = "MODULE", value_hint = ValueHint::FilePath, conflicts_with = "pipe")]
    pub(crate) write_module: Option<PathBuf>,
    /// Arguments that a server passes to a test application; only --dotnet-test-pipe PATH is used
    #[arg(last = true, value_name = "APP-OPTIONS", conflicts_with = "pipe")]
    pub(crate) arguments: Vec<OsString>,
    #[command(flatten)]
    pub(crate) max_size: InputSize,
    #[command(flatten)]
    pub(crate) format: ResultFormat,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Prints one line per message; with -v also all fields with their offsets. Also reads files that are \
compressed with zstd or gzip.

Examples:
  runtap mtp inspect talk.jsonl
  runtap mtp inspect -v talk.jsonl | less
  runtap mtp inspect talk.jsonl --format json | jq '.rows[].name'")]
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
The rules and their sources are in docs/mtp-rules.md. Exit code 1: a rule of severity error was \
violated.

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

/// The output format of a test command.
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
Runs the command unchanged, reads the test results from its output and sends them to the server: \
dotnet test, runtap test, or another server. --write-module writes the script that servers run; it \
works from any directory and runs the command in the current directory. The application fails if \
the output can't be read to its end, or if the command fails without a failed test. With -v (which \
is kept in the script), the negotiated protocol version is printed to stderr.

If you write a script yourself, pass the server's options before '--': \
--server dotnettestcli --dotnet-test-pipe PATH, --list-tests, --help, --filter-uid UID…, --timeout \
TIME, --maximum-failed-tests N, --ignore-exit-code N, --diagnostic and so on. Options and exit codes \
are those of Microsoft.Testing.Platform.

Examples:
  runtap mtp host --from libtest --write-module rust-tests -- cargo test
  runtap mtp host --from go-json --write-module go-tests -- go test -json ./...
  runtap mtp host --from tap --write-module js-tests -- node --test --test-reporter=tap
  runtap mtp host --from junit --report o.xml --write-module py -- pytest --junitxml o.xml
  dotnet test --test-modules rust-tests
  runtap test ./rust-tests bin/Shop.Tests.dll
  exec runtap mtp host --from tap \"$@\" -- node --test --test-reporter=tap")]
pub(crate) struct MtpHost {
    /// Output format of the command
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub(crate) from: Printed,
    /// Write an executable script that is the test application
    #[arg(long, value_name = "MODULE", value_hint = ValueHint::FilePath)]
    pub(crate) write_module: Option<PathBuf>,
    /// File to which the command writes its results, if it does not print them
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<PathBuf>,
    /// Working directory of the command [default: the current directory]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directory: Option<PathBuf>,
    /// Arguments with which the command lists its tests [default: those of libtest; other commands are run]
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true)]
    pub(crate) list_arguments: Option<String>,
    /// File that is reported to servers as the application
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) module: Option<PathBuf>,
    /// Number of arguments that belong to the command; the rest are the server's options
    #[arg(long, value_name = "N", hide = true)]
    pub(crate) words: Option<usize>,
    /// The test command with its arguments
    #[arg(last = true, required = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct MtpKeep {
    /// Do not kill the rest of the process group if the command exits by itself
    #[arg(long)]
    pub(crate) leave_group: bool,
    /// The command with its arguments
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}
