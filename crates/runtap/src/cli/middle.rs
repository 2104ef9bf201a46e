//! The options of `record`, a proxy between tools and runtimes, and of `replay`, which replaces one of the two.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};

use super::{InputSize, ResultFormat, Target, TargetOptions, input_file};
use runtap_text::units::parse_time_limit;

#[derive(Debug, Args)]
#[command(after_help = "\
Tools connect to runtap's socket. runtap forwards every message unchanged and writes it to FILE as \
one line of JSON, with its time. Event streams are written to separate files (FILE.c2.nettrace), \
which are ordinary recordings. FILE contains everything that was sent, including environment \
variables; only you can read it.

A command after '--' is the tool: it runs with a TMPDIR in which '-p PID' finds runtap's socket, and \
{socket} in its arguments is replaced by the path of that socket. With --forward, the command is the \
program: it starts suspended and connects to runtap, which forwards the connection to the tool that \
listens at --forward; the program runs once the tool resumes it.

Examples:
  runtap record -p 1234 -o talk.jsonl -- dotnet-trace collect --dport {socket},connect
  runtap record -p 1234 -o talk.jsonl --listen /tmp/talk.sock
  runtap record --forward /tmp/tool.sock -o talk.jsonl -- dotnet app.dll
  runtap record --dport /tmp/app,listen --forward /tmp/tool -o talk.jsonl
  runtap inspect talk.jsonl")]
pub(crate) struct Record {
    #[command(flatten)]
    pub(crate) target: TargetOptions,
    /// Where to listen for tools: a path, or a directory in which tools find the process by its id (TMPDIR)
    /// [default: a new directory]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath, help_heading = "Target", conflicts_with = "forward")]
    pub(crate) listen: Option<PathBuf>,
    /// Forward runtimes that connect to runtap to the tool that listens at this port
    #[arg(long, value_name = "PORT", value_hint = ValueHint::FilePath, help_heading = "Target",
        conflicts_with_all = ["process_id", "name", "user"])]
    pub(crate) forward: Option<PathBuf>,
    /// The tool to run; with --forward, the program to run
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments, help_heading = "Target")]
    pub(crate) command: Vec<OsString>,

    /// The transcript; '-' is stdout, which then includes the streams
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) output: PathBuf,
    /// Write event streams into the transcript, in hexadecimal, instead of separate files
    #[arg(long, help_heading = "Output")]
    pub(crate) inline: bool,
    /// Stop after this time, as soon as no connection is open: 30s, 250ms, 1m30s, plain seconds, dd:hh:mm:ss
    #[arg(long, value_name = "TIME", value_parser = parse_time_limit, help_heading = "Recording")]
    pub(crate) duration: Option<Duration>,
    #[command(flatten, next_help_heading = "Output")]
    pub(crate) format: ResultFormat,
}

/// The side that `replay` plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlayedSide {
    /// Listen for tools and answer with the recorded replies
    Runtime,
    /// Send the recorded requests to a live runtime and compare the replies
    Client,
}

#[derive(Debug, Args)]
#[command(after_help = "\
As the runtime: the nth request that equals a recorded request is answered with the nth reply to \
that request, including its event stream. The part of a stream after a StopTracing is sent once the \
tool stops the session. A request that differs is answered with the next recorded reply to the same \
command, and the difference is reported. The replay ends when every recorded connection has been \
replayed, or when the command exits.

As the client: requests that can crash a runtime are skipped and reported. Session ids are replaced \
by those of the new sessions. Commands take effect again: dumps are written, profilers are loaded.

Exit code 1: a message differs from the recording, or a recorded request was not received, not sent \
or not answered.

Examples:
  runtap replay talk.jsonl --listen /tmp/replay.sock
  runtap replay talk.jsonl -- dotnet-trace collect --dport {socket},connect
  runtap replay talk.jsonl --as client -p 1234
  runtap replay talk.jsonl --as client -p 1234 --format json | jq .exchanges")]
pub(crate) struct Replay {
    /// The transcript
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, value_parser = input_file())]
    pub(crate) file: PathBuf,
    /// Which side to play
    #[arg(long = "as", value_name = "SIDE", default_value = "runtime", help_heading = "Playback")]
    pub(crate) part: PlayedSide,
    /// Send everything at once, without the recorded delays
    #[arg(long, help_heading = "Playback")]
    pub(crate) fast: bool,
    /// As the client: also send commands that change the target (dumps, perf maps, variables, profilers, startup hooks)
    #[arg(long, help_heading = "Playback")]
    pub(crate) allow_changes: bool,
    /// As the runtime: where to listen for tools, a path or a directory in which tools find the process by its id (TMPDIR)
    /// [default: a new directory]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath, help_heading = "Playback")]
    pub(crate) listen: Option<PathBuf>,
    /// As the runtime: connect to the tool that listens at this port, if the recorded runtime connected to a tool
    #[arg(long, value_name = "PORT", value_hint = ValueHint::FilePath, conflicts_with = "listen", help_heading = "Playback")]
    pub(crate) dial: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) target: TargetOptions,
    /// As the runtime: the tool to run; {socket} in its arguments is replaced by the path of the socket
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments, help_heading = "Playback")]
    pub(crate) command: Vec<OsString>,
    #[command(flatten, next_help_heading = "Limits")]
    pub(crate) max_size: InputSize,
    #[command(flatten, next_help_heading = "Output")]
    pub(crate) format: ResultFormat,
}

/// Converts options that select a process to a target without a word.
pub(crate) fn target_of(options: &TargetOptions) -> Target {
    Target { word: None, options: options.clone() }
}
