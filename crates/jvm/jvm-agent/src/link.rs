//! Connections to HQ.
//!
//! Owns: connecting, the handshakes, and their time-outs. Does not know what the program does meanwhile.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant};

use runtap_bytefrog_proto::agent::{Control, Data, Event, Output, Reply};
use runtap_bytefrog_proto::{Configuration, Dialect};
use thiserror::Error;

use crate::options::{HqUser, Options};
use crate::silence::keep_alive;

/// The time-out for establishing a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// The time-out for HQ's answer on a data connection.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// The interval at which a wait checks whether it is still wanted.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The reason why there is no connection.
#[derive(Debug, Error)]
pub(crate) enum LinkError {
    /// Nothing listens at HQ's address, or the connection was lost.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// HQ rejects this agent, or this version.
    #[error("HQ refuses: {text}")]
    Refused {
        /// The reason.
        text: String,
        /// The version to try instead.
        fallback: Option<Dialect>,
    },
    /// The listener at HQ's address belongs to a user that this program does not trust.
    #[error("{}", stranger(*.address, *.user))]
    Stranger {
        /// The address.
        address: SocketAddr,
        /// The id of the listener's user. `None` if unknown.
        user: Option<u32>,
    },
    /// HQ violated the protocol.
    #[error("{0}")]
    Violation(String),
    /// The trace was ended meanwhile.
    #[error("the trace is over")]
    Over,
}

fn stranger(address: SocketAddr, user: Option<u32>) -> String {
    match user {
        Some(user) => format!(
            "the collector at {address} belongs to user {user}, not to this program's user or root; to trust it, add hq-user={user} to the agent's options"
        ),
        None => format!(
            "the owner of the collector at {address} is unknown; to trust it, add hq-user=any to the agent's options"
        ),
    }
}

/// Checks that the process at the other end of a connection to this machine belongs to a user who may control this program.
/// Call it after the other end has answered: before a process accepts the connection, the end has no user.
fn check_user(options: &Options, socket: &TcpStream) -> Result<(), LinkError> {
    let (address, own) = (socket.peer_addr()?, socket.local_addr()?);
    if options.hq_user == HqUser::Any || !runtap_os::loopback::is_known(address) {
        return Ok(());
    }
    let user = runtap_os::loopback::user_of(address, own);
    let allowed = |user: u32| {
        user == 0 || user == rustix::process::geteuid().as_raw() || options.hq_user == HqUser::User(user)
    };
    if user.is_some_and(allowed) { Ok(()) } else { Err(LinkError::Stranger { address, user }) }
}

/// The control connection, after HQ has sent its configuration.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) socket: TcpStream,
    pub(crate) control: Control,
    /// Messages that arrived after the first configuration.
    pub(crate) rest: Output,
}

fn connect(options: &Options) -> io::Result<TcpStream> {
    let mut error = io::Error::new(io::ErrorKind::NotFound, format!("{} has no address", options.host));
    for address in (options.host.as_str(), options.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(socket) => {
                socket.set_nodelay(true)?;
                keep_alive(&socket, options.silence)?;
                return Ok(socket);
            }
            Err(failed) => error = failed,
        }
    }
    Err(error)
}

/// Reads available bytes, waiting for at most `time`. Returns nothing on a time-out.
pub(crate) fn read_some(
    socket: &mut TcpStream,
    buffer: &mut [u8],
    time: Duration,
) -> io::Result<Option<usize>> {
    // Zero would mean no time-out.
    socket.set_read_timeout(Some(time.max(Duration::from_millis(1))))?;
    match socket.read(buffer) {
        Ok(count) => Ok(Some(count)),
        Err(error) => match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted => Ok(None),
            _ => Err(error),
        },
    }
}

/// Connects to HQ and sends hello. HQ may take any time to answer, as with the original agents.
pub(crate) fn control(
    options: &Options,
    dialect: Dialect,
    over: impl Fn() -> bool,
) -> Result<Link, LinkError> {
    let mut socket = connect(options)?;
    let mut control = Control::new(dialect);
    let hello = control.hello(None).map_err(|error| LinkError::Violation(error.to_string()))?;
    socket.write_all(&hello)?;
    let mut buffer = vec![0; 16 * 1024];
    loop {
        if over() {
            return Err(LinkError::Over);
        }
        let Some(count) = read_some(&mut socket, &mut buffer, POLL_INTERVAL)? else { continue };
        if count == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        let mut output = control.handle_bytes(buffer.get(..count).unwrap_or_default());
        socket.write_all(&std::mem::take(&mut output.transmit))?;
        for event in &output.events {
            match event {
                Event::Rejected { text, fallback } => {
                    return Err(LinkError::Refused { text: text.to_string(), fallback: *fallback });
                }
                Event::Violation(violation) => return Err(LinkError::Violation(violation.to_string())),
                _ => {}
            }
        }
        if control.configuration().is_some() {
            check_user(options, &socket)?;
            return Ok(Link { socket, control, rest: output });
        }
    }
}

/// Opens the data connections that a configuration requests, at least one.
pub(crate) fn data(
    options: &Options,
    dialect: Dialect,
    configuration: &Configuration,
) -> Result<Vec<TcpStream>, LinkError> {
    let count = configuration.data_senders.clamp(1, 64);
    (0..count).map(|_| data_connection(options, dialect, configuration.run)).collect()
}

fn data_connection(options: &Options, dialect: Dialect, run: u8) -> Result<TcpStream, LinkError> {
    let mut socket = connect(options)?;
    socket.write_all(&Data::hello(run))?;
    let mut data = Data::new(dialect);
    let mut buffer = [0; 1024];
    let began = Instant::now();
    while began.elapsed() < ANSWER_TIMEOUT {
        let Some(count) = read_some(&mut socket, &mut buffer, POLL_INTERVAL)? else { continue };
        if count == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        match data.handle_bytes(buffer.get(..count).unwrap_or_default()) {
            Some(Reply::Ready) => {
                check_user(options, &socket)?;
                return Ok(socket);
            }
            Some(Reply::Rejected { text }) => {
                return Err(LinkError::Refused { text: text.to_string(), fallback: None });
            }
            Some(Reply::Violation(violation)) => return Err(LinkError::Violation(violation.to_string())),
            None => {}
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "HQ did not answer on a data connection").into())
}
