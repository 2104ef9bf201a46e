//! The router's modes, as clap sees them: names and options are dotnet-dsrouter's.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};

use super::{ResultFormat, TargetOptions, TextOrJson};
use crate::units::parse_duration;

#[derive(Debug, Subcommand)]
#[command(after_help = "\
The first word of a mode is the side of the tools (IPC), the second that of the runtime: a server is dialled, a client dials.
Options are those of dotnet-dsrouter, whose short forms (-ipcs, -ipcc, -tcps, -tcpc, -rt) are taken too.

Examples:
  runtap router server-server --tcp-server 127.0.0.1:9000
  runtap router server-client --tcp-client 127.0.0.1:9000
  runtap router server-client -n MyService
  runtap router client-server --ipc-client /tmp/tool.sock --tcp-server 127.0.0.1:9000")]
pub(crate) enum Router {
    /// Offer all your runtimes on one port to runtaps of other machines that have the token
    #[command(after_help = "\
The token is a secret of at least 16 characters in a file that only you can read. It is never sent; everything else is
sent without encryption.

Examples:
  (umask 077; head -c 32 /dev/urandom | base64 > ~/.runtap-token)
  runtap router listen 127.0.0.1:9000 --token-file ~/.runtap-token
  RUNTAP_TOKEN=$(cat ~/.runtap-token) runtap ps runtap://127.0.0.1:9000
  runtap trace runtap://127.0.0.1:9000/MyService --token-file ~/.runtap-token")]
    Listen(Listen),
    /// Tools dial a socket, a runtime dials in
    #[command(after_help = "\
Examples:
  runtap router server-server --tcp-server 127.0.0.1:9000
  runtap router server-server --ipc-server /run/user/1000/app.sock --diagnostic-port /run/user/1000/port")]
    ServerServer(ServerServer),
    /// Tools dial a socket, a runtime is dialled
    #[command(after_help = "\
Examples:
  runtap router server-client --tcp-client 127.0.0.1:9000
  runtap router server-client -p 1234 --ipc-server /run/user/1000/app.sock")]
    ServerClient(ServerClient),
    /// A tool that listens is dialled, a runtime dials in
    #[command(after_help = "\
Examples:
  dotnet-trace collect --diagnostic-port /tmp/tool.sock
  runtap router client-server --ipc-client /tmp/tool.sock --tcp-server 127.0.0.1:9000")]
    ClientServer(ClientServer),
    /// A tool that listens is dialled, and so is a runtime
    #[command(after_help = "\
Examples:
  runtap router client-client --ipc-client /tmp/tool.sock --tcp-client 127.0.0.1:9000
  runtap router client-client --ipc-client /tmp/tool.sock -p 1234")]
    ClientClient(ClientClient),
    // What dotnet-dsrouter has besides: refused with a reason.
    #[command(hide = true)]
    ServerWebsocket(Unsupported),
    #[command(hide = true)]
    ClientWebsocket(Unsupported),
    #[command(hide = true)]
    IosSim(Unsupported),
    #[command(hide = true)]
    Ios(Unsupported),
    #[command(hide = true)]
    AndroidEmu(Unsupported),
    #[command(hide = true)]
    Android(Unsupported),
}

#[derive(Debug, Args)]
pub(crate) struct Listen {
    /// Where to listen
    #[arg(value_name = "HOST:PORT")]
    pub(crate) address: String,
    /// The token, in a file that only you can read; by default the variable `RUNTAP_TOKEN`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) token_file: Option<PathBuf>,
    /// Address of a tunnel or proxy in front of the router, if clients connect to that; can be repeated
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) public_address: Vec<String>,
    /// Listen beyond this machine: what passes is not encrypted
    #[arg(long)]
    pub(crate) insecure: bool,
    #[command(flatten)]
    pub(crate) format: ResultFormat,
}

/// A mode that is refused, whatever follows.
#[derive(Debug, Args)]
pub(crate) struct Unsupported {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _rest: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ServerServer {
    #[command(flatten)]
    pub(crate) tools: IpcServer,
    #[command(flatten)]
    pub(crate) runtime: RuntimeDials,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct ServerClient {
    #[command(flatten)]
    pub(crate) tools: IpcServer,
    #[command(flatten)]
    pub(crate) runtime: RuntimeListens,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct ClientServer {
    #[command(flatten)]
    pub(crate) tools: IpcClient,
    #[command(flatten)]
    pub(crate) runtime: RuntimeDials,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct ClientClient {
    #[command(flatten)]
    pub(crate) tools: IpcClient,
    #[command(flatten)]
    pub(crate) runtime: RuntimeListens,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Tools")]
pub(crate) struct IpcServer {
    /// The socket that tools dial; by default one by which they find the router as a process: `-p ROUTER_PID`
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) ipc_server: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Tools")]
pub(crate) struct IpcClient {
    /// The socket on which a tool listens (its --diagnostic-port)
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) ipc_client: PathBuf,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Runtime")]
pub(crate) struct RuntimeDials {
    /// Where a runtime dials in by TCP
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) tcp_server: Option<String>,
    /// Where a runtime of this machine dials in instead: PATH of a socket
    #[arg(long, visible_alias = "dport", value_name = "PATH", conflicts_with = "tcp_server")]
    pub(crate) diagnostic_port: Option<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Runtime")]
pub(crate) struct RuntimeListens {
    /// Where a runtime listens by TCP
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["process_id", "name", "diagnostic_port"])]
    pub(crate) tcp_client: Option<String>,
    #[command(flatten)]
    pub(crate) target: TargetOptions,
}

#[derive(Debug, Args)]
pub(crate) struct Common {
    /// End when no runtime has been connected for this long (exit code 3)
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) runtime_timeout: Option<Duration>,
    /// Use TCP beyond this machine: unencrypted, and open to whoever reaches the address
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Refused: ports of phones and emulators are forwarded by their own tools
    #[arg(long, value_name = "DEVICE", hide = true)]
    pub(crate) forward_port: Option<String>,
    #[command(flatten)]
    pub(crate) format: ResultFormat,
}

impl Router {
    /// How the result is printed.
    pub(crate) fn format(&self) -> Option<TextOrJson> {
        match self {
            Self::Listen(listen) => Some(listen.format.format),
            mode => Some(mode.common()?.format.format),
        }
    }

    /// What dotnet-dsrouter's modes have.
    pub(crate) fn common(&self) -> Option<&Common> {
        match self {
            Self::ServerServer(mode) => Some(&mode.common),
            Self::ServerClient(mode) => Some(&mode.common),
            Self::ClientServer(mode) => Some(&mode.common),
            Self::ClientClient(mode) => Some(&mode.common),
            _ => None,
        }
    }
}
