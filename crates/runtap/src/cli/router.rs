//! The options of `runtap router`. Its modes have the names and options of dotnet-dsrouter.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};

use super::{ResultFormat, TargetOptions, TextOrJson};
use runtap_text::units::parse_duration;

#[derive(Debug, Subcommand)]
#[command(after_help = "\
The first word of a mode is the tools' side (IPC), the second word the runtime's side. On a 'server' \
side, the router listens; on a 'client' side, the router connects. Options are those of \
dotnet-dsrouter, including its short forms (-ipcs, -ipcc, -tcps, -tcpc, -rt).

Examples:
  runtap router server-server --tcp-server 127.0.0.1:9000
  runtap router server-client --tcp-client 127.0.0.1:9000
  runtap router server-client -n MyService
  runtap router client-server --ipc-client /tmp/tool.sock --tcp-server 127.0.0.1:9000")]
pub(crate) enum Router {
    /// Serve all your .NET processes to runtap on other machines (token required)
    #[command(after_help = "\
The token is a secret of at least 16 bytes, in a file that only you can read. The token itself is \
never sent; all other data is sent unencrypted.

Examples:
  (umask 077; head -c 32 /dev/urandom | base64 > ~/.runtap-token)
  runtap router listen 127.0.0.1:9000 --token-file ~/.runtap-token
  RUNTAP_TOKEN=$(cat ~/.runtap-token) runtap ps runtap://127.0.0.1:9000
  runtap trace runtap://127.0.0.1:9000/MyApp --token-file ~/.runtap-token")]
    Listen(Listen),
    /// Listen for tools on a socket, and for a runtime
    #[command(after_help = "\
Examples:
  runtap router server-server --tcp-server 127.0.0.1:9000
  runtap router server-server --ipc-server /run/my/app --dport /run/my/port")]
    ServerServer(ServerServer),
    /// Listen for tools on a socket, connect to a runtime
    #[command(after_help = "\
Examples:
  runtap router server-client --tcp-client 127.0.0.1:9000
  runtap router server-client -p 1234 --ipc-server /run/user/1000/app.sock")]
    ServerClient(ServerClient),
    /// Connect to a tool that listens, listen for a runtime
    #[command(after_help = "\
Examples:
  dotnet-trace collect --diagnostic-port /tmp/tool.sock
  runtap router client-server --ipc-client /tmp/tool.sock --tcp-server 127.0.0.1:9000")]
    ClientServer(ClientServer),
    /// Connect to a tool that listens, and to a runtime
    #[command(after_help = "\
Examples:
  runtap router client-client --ipc-client /tmp/tool.sock --tcp-client 127.0.0.1:9000
  runtap router client-client --ipc-client /tmp/tool.sock -p 1234")]
    ClientClient(ClientClient),
    // Modes of dotnet-dsrouter that runtap rejects with a reason.
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
    /// Address to listen on
    #[arg(value_name = "HOST:PORT")]
    pub(crate) address: String,
    /// File with the access token (must not be readable by others) [default: the value of `$RUNTAP_TOKEN`]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) token_file: Option<PathBuf>,
    /// Address of a tunnel or proxy through which clients connect; repeatable
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) public_address: Vec<String>,
    /// Allow a non-loopback address. Traffic is unencrypted
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
    pub(crate) runtime: RuntimeConnects,
    #[command(flatten)]
    pub(crate) common: ModeOptions,
}

#[derive(Debug, Args)]
pub(crate) struct ServerClient {
    #[command(flatten)]
    pub(crate) tools: IpcServer,
    #[command(flatten)]
    pub(crate) runtime: RuntimeListens,
    #[command(flatten)]
    pub(crate) common: ModeOptions,
}

#[derive(Debug, Args)]
pub(crate) struct ClientServer {
    #[command(flatten)]
    pub(crate) tools: IpcClient,
    #[command(flatten)]
    pub(crate) runtime: RuntimeConnects,
    #[command(flatten)]
    pub(crate) common: ModeOptions,
}

#[derive(Debug, Args)]
pub(crate) struct ClientClient {
    #[command(flatten)]
    pub(crate) tools: IpcClient,
    #[command(flatten)]
    pub(crate) runtime: RuntimeListens,
    #[command(flatten)]
    pub(crate) common: ModeOptions,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Tools")]
pub(crate) struct IpcServer {
    /// Socket to which tools connect [default: one that tools find with `-p ROUTER_PID`]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) ipc_server: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Tools")]
pub(crate) struct IpcClient {
    /// Socket on which a tool listens (the tool's --diagnostic-port)
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) ipc_client: PathBuf,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Runtime")]
pub(crate) struct RuntimeConnects {
    /// TCP address to listen on for a runtime
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) tcp_server: Option<String>,
    /// Socket path to listen on for a local runtime, instead of TCP
    #[arg(long, visible_alias = "dport", value_name = "PATH", conflicts_with = "tcp_server")]
    pub(crate) diagnostic_port: Option<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Runtime")]
pub(crate) struct RuntimeListens {
    /// TCP address on which a runtime listens
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["process_id", "name", "diagnostic_port"])]
    pub(crate) tcp_client: Option<String>,
    #[command(flatten)]
    pub(crate) target: TargetOptions,
}

#[derive(Debug, Args)]
pub(crate) struct ModeOptions {
    /// Exit with code 3 if no runtime is connected for this long
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) runtime_timeout: Option<Duration>,
    /// Allow non-loopback TCP addresses. Traffic is unencrypted, and anyone who can connect controls the process
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Rejected: use the tools of the phone or emulator to forward ports
    #[arg(long, value_name = "DEVICE", hide = true)]
    pub(crate) forward_port: Option<String>,
    #[command(flatten)]
    pub(crate) format: ResultFormat,
}

impl Router {
    /// Returns the format of the result, or `None` for an unsupported mode.
    pub(crate) fn format(&self) -> Option<TextOrJson> {
        match self {
            Self::Listen(listen) => Some(listen.format.format),
            mode => Some(mode.common()?.format.format),
        }
    }

    /// Returns the options shared by the modes of dotnet-dsrouter, or `None` for other modes.
    pub(crate) fn common(&self) -> Option<&ModeOptions> {
        match self {
            Self::ServerServer(mode) => Some(&mode.common),
            Self::ServerClient(mode) => Some(&mode.common),
            Self::ClientServer(mode) => Some(&mode.common),
            Self::ClientClient(mode) => Some(&mode.common),
            _ => None,
        }
    }
}
