//! The verbs that stand between tools and runtimes, or in the place of one of them, as clap sees them.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};

use super::{ResultFormat, Target, TargetOptions, input_file};
use crate::units::parse_time_limit;

#[derive(Debug, Args)]
#[command(after_help = "\
Tools are pointed at the recorder's socket, and everything they say to the runtime, and it to them, is passed on unchanged
and written to FILE: one JSON line a message, with its time. Streams of sessions go into files beside it
(FILE.c2.nettrace), which are ordinary recordings. FILE holds all that was said, environment variables too; only you can
read it.

A command after '--' is the tool: it runs with a TMPDIR in which '-p PID' finds the recorder, and {socket} in its
arguments becomes the path of the recorder's socket. With --forward it is the program: it starts suspended, dials the
recorder in place of the tool that listens at --forward, and runs when that tool resumes it.

Examples:
  runtap record -p 1234 -o talk.jsonl -- dotnet-trace collect --diagnostic-port {socket},connect --duration 00:00:05
  runtap record -p 1234 -o talk.jsonl --listen /tmp/talk.sock      until Ctrl-C; tools use /tmp/talk.sock,connect
  runtap record --forward /tmp/tool.sock -o talk.jsonl -- dotnet app.dll
  runtap record --diagnostic-port /tmp/app.sock,listen --forward /tmp/tool.sock -o talk.jsonl
  runtap inspect talk.jsonl")]
pub(crate) struct Record {
    #[command(flatten)]
    pub(crate) target: TargetOptions,
    /// Listen here for tools: a path, or a directory in which tools find the process by its id (TMPDIR)
    /// [default: a directory of its own]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath, help_heading = "Target", conflicts_with = "forward")]
    pub(crate) listen: Option<PathBuf>,
    /// Stand between runtimes that dial a port and the tool that listens at this one
    #[arg(long, value_name = "PORT", value_hint = ValueHint::FilePath, help_heading = "Target",
        conflicts_with_all = ["process_id", "name", "user"])]
    pub(crate) forward: Option<PathBuf>,
    /// The tool to run, or with --forward the program
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments, help_heading = "Target")]
    pub(crate) command: Vec<OsString>,

    /// The transcript; '-' is stdout, with the streams in it
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) output: PathBuf,
    /// Write streams into the transcript as hexadecimal digits instead of files beside it
    #[arg(long, help_heading = "Output")]
    pub(crate) inline: bool,
    /// End when this time is over and no connection is open: 30s, 250ms, 1m30s, plain seconds, dd:hh:mm:ss
    #[arg(long, value_name = "TIME", value_parser = parse_time_limit)]
    pub(crate) duration: Option<Duration>,
    #[command(flatten)]
    pub(crate) format: ResultFormat,
}

/// Whose part is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// The runtime's: listens, and answers tools with what was recorded
    Runtime,
    /// The client's: sends a live runtime the recorded requests, and compares its replies
    Client,
}

#[derive(Debug, Args)]
#[command(after_help = "\
As the runtime, the n-th request that equals a recorded one is answered with the bytes that its n-th reply had, streams
included; what follows a StopTracing in a session's stream is sent when the tool stops it. A request that differs is
answered by the next recorded reply to the same command, and the difference is reported. It ends when every recorded
connection was played, or with the command.

As the client, each request is checked before it is sent: what runtimes die of is left out, and said. Session ids are
those of the sessions that were started here. Commands take effect again: dumps are written, profilers are loaded.

Exit code 1: something differs from the recording, or was not asked or answered.

Examples:
  runtap replay talk.jsonl --listen /tmp/replay.sock       tools use /tmp/replay.sock,connect
  runtap replay talk.jsonl --fast -- dotnet-trace collect --diagnostic-port {socket},connect
  runtap replay talk.jsonl --as client -p 1234
  runtap replay talk.jsonl --as client -p 1234 --format json | jq '.exchanges[] | select(.differences != [])'")]
pub(crate) struct Replay {
    /// The transcript
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, value_parser = input_file())]
    pub(crate) file: PathBuf,
    /// Whose part to play
    #[arg(long = "as", value_name = "PART", default_value = "runtime")]
    pub(crate) part: Part,
    /// Do not wait as long as it took when it was recorded
    #[arg(long)]
    pub(crate) fast: bool,
    /// As the runtime: listen here: a path, or a directory in which tools find the process by its id (TMPDIR)
    /// [default: a directory of its own]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) listen: Option<PathBuf>,
    /// As the runtime, of a transcript with runtimes that dialled in: dial the tool that listens at this port
    #[arg(long, value_name = "PORT", value_hint = ValueHint::FilePath, conflicts_with = "listen")]
    pub(crate) dial: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) target: TargetOptions,
    /// As the runtime: the tool to run; {socket} in its arguments becomes the path of the socket
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
    #[command(flatten)]
    pub(crate) format: ResultFormat,
}

/// Options that name a process, as every verb takes them.
pub(crate) fn target_of(options: &TargetOptions) -> Target {
    Target { word: None, options: options.clone() }
}
