//! `runtap router`: connects the two sides named by the options, until interrupted.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use runtap_model::Message;
use runtap_os::{allow_many_files, shell};
use runtap_record::Stops;
use runtap_route::router::{
    Acceptor, Back, Ended, Front, Limits, Notice, Offer, Router, RuntimeAddress, Statistics, Unsupported,
    messages, socket_names,
};
use runtap_target::TargetArgs;
use runtap_target::messages::CREATE_TOKEN;
use runtap_text::Output;
use runtap_text::document::RouterDocument;
use runtap_transport::remote::HostPort;
use runtap_transport::{BindError, BindOptions, Endpoint, Listener};

use super::address::{LISTEN, resolve};
use super::target::{DotnetVerb, choose, token};
use crate::cli::{self, IpcServer, ModeOptions, RouterListen, RuntimeConnects, RuntimeListens, Target};
use crate::exit::{self, expected, usage};

/// The number of warnings shown without `--verbose`.
const MAX_WARNINGS: u32 = 20;

pub(super) async fn run(mode: cli::Router, output: Output) -> anyhow::Result<u8> {
    // Install the handlers before any socket exists, so that a signal never leaves one behind.
    let stops = Stops::listen()?;
    allow_many_files();
    if let Some(device) = mode.common().and_then(|common| common.forward_port.as_deref()) {
        return Err(unsupported(Unsupported::Device(device)));
    }
    let (front, back, common) = match mode {
        cli::Router::Listen(options) => return listen(&options, &stops, output).await,
        cli::Router::ServerServer(mode) => {
            let back = listen_for_runtime(&mode.runtime, &mode.common, output).await?;
            (listen_for_tools(&mode.tools, output)?, back, mode.common)
        }
        cli::Router::ServerClient(mode) => {
            let back = connect_to_runtime(&mode.runtime, &mode.common, output).await?;
            (listen_for_tools(&mode.tools, output)?, back, mode.common)
        }
        cli::Router::ClientServer(mode) => {
            let back = listen_for_runtime(&mode.runtime, &mode.common, output).await?;
            (connect_to_tool(&mode.tools.ipc_client)?, back, mode.common)
        }
        cli::Router::ClientClient(mode) => {
            let back = connect_to_runtime(&mode.runtime, &mode.common, output).await?;
            (connect_to_tool(&mode.tools.ipc_client)?, back, mode.common)
        }
        unsupported => return Err(unsupported_mode(&unsupported)),
    };
    let router = Router::new(front, back)
        .limits(Limits::default())
        .runtime_timeout(common.runtime_timeout)
        .on_notice(notice_printer(output));
    let counted = router.statistics();
    let ended = router.run(stops.stopping()).await;
    output.show(&document(&counted))?;
    match ended {
        Ended::NoRuntime => Err(expected(
            exit::NO_TARGET,
            "no runtime connected within the time limit (--runtime-timeout)",
            "Start the program with DOTNET_DiagnosticPorts set to this router's address, or allow more time."
                .to_owned(),
        )),
        _ => Ok(exit::OK),
    }
}

/// Serves all runtimes of the current user to other machines.
async fn listen(options: &RouterListen, stops: &Stops, output: Output) -> anyhow::Result<u8> {
    let Some(token) = token(options.token_file.as_deref())? else {
        let hint = format!("{CREATE_TOKEN}, then use --token-file FILE on both sides.");
        return Err(expected(exit::USAGE, "a token is required, with which clients authenticate", hint));
    };
    let addresses = resolve(LISTEN, &options.address, options.insecure, output).await?;
    let failed =
        |error: io::Error| anyhow::Error::new(error).context(format!("listen on {}", options.address));
    let mut public = Vec::new();
    for address in &options.public_address {
        // runtap does not listen at this address, so it need not be a loopback address.
        let host = HostPort::parse(address).map_err(|error| usage(format!("--public-address: {error}")))?;
        public.extend(host.resolve(true).await.map_err(|error| usage(format!("--public-address: {error}")))?);
    }
    let offer = Offer::bind(&addresses, token).await.map_err(failed)?;
    let offer = offer.reached_at(public).on_notice(notice_printer(output));
    output.note(format_args!(
        "Serving all of your .NET processes at runtap://{} (token required).",
        offer.address()?
    ));
    let counted = offer.statistics();
    offer.run(stops.stopping()).await;
    output.show(&document(&counted))?;
    Ok(exit::OK)
}

/// Returns a callback that prints notices of the router.
fn notice_printer(output: Output) -> impl Fn(&Notice) + Send + Sync {
    let warned = AtomicU32::new(0);
    move |notice| match messages::notice(notice) {
        Message::Warning(text) => match warned.fetch_add(1, Ordering::Relaxed) {
            before if before < MAX_WARNINGS => output.warning(text),
            // Limited, because every client that can connect can cause warnings.
            MAX_WARNINGS => {
                output.warning(text);
                output.note("further warnings are shown only with --verbose");
            }
            _ => output.detail(text),
        },
        message => output.messages([message]),
    }
}

/// Creates the document with the statistics of the router.
fn document(counted: &Statistics) -> RouterDocument {
    let mut document = RouterDocument::new();
    document.connections = counted.connections();
    document.forwarded = counted.forwarded();
    document.refused = counted.refused();
    document.silent = counted.silent();
    document.not_reached = counted.not_reached();
    document.runtimes = counted.runtimes();
    document.without_place = counted.without_place();
    document.most_waiting = counted.most_waiting();
    document.bytes_to_runtimes = counted.to_runtime();
    document.bytes_to_clients = counted.to_clients();
    document
}

/// Creates the front that listens on a socket for tools.
fn listen_for_tools(tools: &IpcServer, output: Output) -> anyhow::Result<Front> {
    let pid = std::process::id();
    let (gate, how) = if let Some(path) = &tools.ipc_server {
        (Acceptor::Local(Box::new(bind(path)?)), format!("--diagnostic-port {},connect", shell::word(path)))
    } else {
        // Microsoft's tools look for a router's socket only if a runtime's socket exists too.
        let [router, runtime] = socket_names(pid).map(|path| bind(&path));
        (Acceptor::Twice(Box::new([router?, runtime?])), format!("-p {pid}"))
    };
    output.note(format_args!("Connect tools to {gate}, for example: dotnet-trace collect {how}"));
    Ok(Front::Listen(gate))
}

/// Creates the front that connects to the socket of a tool.
fn connect_to_tool(path: &Path) -> anyhow::Result<Front> {
    let path = parse_socket_path(&path.display().to_string())?;
    Ok(Front::Connect(Endpoint::local(&path)))
}

/// Creates the back that listens for a runtime.
async fn listen_for_runtime(
    runtime: &RuntimeConnects,
    common: &ModeOptions,
    output: Output,
) -> anyhow::Result<Back> {
    let gate = match (&runtime.tcp_server, &runtime.diagnostic_port) {
        (Some(address), _) => {
            let addresses = resolve("--tcp-server", address, common.insecure, output).await?;
            let failed = |error: io::Error| anyhow::Error::new(error).context(format!("listen on {address}"));
            Acceptor::tcp(&addresses).await.map_err(failed)?
        }
        (None, Some(port)) => Acceptor::Local(Box::new(bind(&parse_socket_path(port)?)?)),
        (None, None) => {
            return Err(usage(
                "no address for the runtime to connect to; use --tcp-server or --diagnostic-port",
            ));
        }
    };
    output.note(format_args!("Waiting for a runtime to connect to {gate}"));
    Ok(Back::Listen(gate))
}

/// Creates the back that connects to a listening runtime.
async fn connect_to_runtime(
    runtime: &RuntimeListens,
    common: &ModeOptions,
    output: Output,
) -> anyhow::Result<Back> {
    if let Some(address) = &runtime.tcp_client {
        let addresses = resolve("--tcp-client", address, common.insecure, output).await?;
        return Ok(Back::Connect(RuntimeAddress::Tcp(addresses)));
    }
    if !runtime.target.any() {
        return Err(usage(
            "no runtime specified; use --tcp-client HOST:PORT, or a process of this machine with -p or -n",
        ));
    }
    let chosen =
        choose(&Target { word: None, options: runtime.target.clone() }, DotnetVerb::ROUTER, output).await?;
    if chosen.runtime().is_some() {
        return Err(usage("a port to which a runtime connects requires server-server or client-server"));
    }
    output.note(format_args!("Routing to {}", chosen.label()));
    Ok(Back::Connect(RuntimeAddress::Local(chosen.client.endpoint().clone())))
}

/// Parses the path of a socket, in every form that is valid for `--diagnostic-port`.
fn parse_socket_path(port: &str) -> anyhow::Result<PathBuf> {
    let given = TargetArgs { port: Some(port), ..TargetArgs::default() };
    match runtap_target::TargetSpec::parse(&given) {
        Ok(runtap_target::TargetSpec::Port(port)) => Ok(port.path),
        Ok(_) => Err(usage(format!("'{port}' is not the path of a socket"))),
        Err(error) => Err(usage(error.to_string())),
    }
}

fn bind(path: &Path) -> anyhow::Result<Listener> {
    Listener::bind(path, BindOptions::default().replace_stale(true)).map_err(|error| match &error {
        BindError::InUse { .. } => expected(
            exit::FAILED,
            error.to_string(),
            "Another program listens there, or the file is not a socket; choose another path.".to_owned(),
        ),
        _ => error.into(),
    })
}

fn unsupported_mode(mode: &cli::Router) -> anyhow::Error {
    unsupported(match mode {
        cli::Router::ServerWebsocket(_) | cli::Router::ClientWebsocket(_) => Unsupported::WebSocket,
        cli::Router::IosSim(_) => Unsupported::IosSimulator,
        cli::Router::AndroidEmu(_) => Unsupported::AndroidEmulator,
        cli::Router::Android(_) => Unsupported::Device("Android"),
        _ => Unsupported::Device("iOS"),
    })
}

/// Creates the error for a mode of dotnet-dsrouter that runtap does not have.
fn unsupported(mode: Unsupported<'_>) -> anyhow::Error {
    expected(exit::USAGE, mode.to_string(), mode.hint().to_owned())
}
