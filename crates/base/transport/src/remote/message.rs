//! Encoding of the messages. All numbers are little-endian.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use runtap_wire::{DecodeError, DecodeErrorKind, Reader, Writer};

use crate::remote::error::Refusal;

/// First bytes of hello and challenge messages.
pub(crate) const MAGIC: [u8; 8] = *b"RUNTAP-R";

/// The protocol version that this crate implements.
pub const VERSION: u16 = 2;

/// Random bytes that are unique to a connection.
pub type Nonce = [u8; 32];

/// Length of a proof in bytes.
pub(crate) const PROOF: usize = 32;
/// Length of a hello message in bytes.
pub(crate) const HELLO: usize = 8 + 2 + 2 + 32;
/// Length of a challenge in bytes.
pub(crate) const CHALLENGE: usize = 8 + 2 + 32;
/// Length of an address in bytes.
pub(crate) const ADDRESS: usize = 16 + 2;
/// Length of an answer's head in bytes.
pub(crate) const ANSWER_HEAD: usize = 2 + 4;
/// Maximum length of a request in bytes.
pub(crate) const MAX_REQUEST: usize = 64;
/// Maximum length of an answer in bytes, without its proof.
pub const MAX_ANSWER: usize = 1 << 20;
/// Maximum length of an error text in bytes.
pub(crate) const MAX_ERROR: usize = 1024;

/// The first message, from the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) oldest: u16,
    pub(crate) newest: u16,
    pub(crate) nonce: Nonce,
}

impl Hello {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut w = Writer::new();
        w.bytes(&MAGIC).u16(self.oldest).u16(self.newest).bytes(&self.nonce);
        w.into_bytes()
    }

    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        magic(r)?;
        Ok(Self {
            oldest: r.u16("oldest version")?,
            newest: r.u16("newest version")?,
            nonce: r.array("nonce")?,
        })
    }

    /// Returns whether the peer supports [`VERSION`].
    pub(crate) fn has_ours(&self) -> bool {
        (self.oldest..=self.newest).contains(&VERSION)
    }
}

/// The router's answer to a hello.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Challenge {
    /// The selected version, or 0 if none is supported by both.
    pub(crate) version: u16,
    pub(crate) nonce: Nonce,
}

impl Challenge {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut w = Writer::new();
        w.bytes(&MAGIC).u16(self.version).bytes(&self.nonce);
        w.into_bytes()
    }

    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        magic(r)?;
        Ok(Self { version: r.u16("version")?, nonce: r.array("nonce")? })
    }
}

/// A request to a router.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Request {
    /// List the processes.
    List,
    /// Connect to a process.
    Open {
        /// Process id on the router's machine.
        pid: u32,
        /// Start time as listed, to detect a reused process id.
        started: u64,
    },
}

impl Request {
    /// Encodes the request, preceded by its length.
    pub(crate) fn encode(self) -> Vec<u8> {
        let mut w = Writer::new();
        match self {
            Self::List => w.u16(1).u8(1),
            Self::Open { pid, started } => w.u16(13).u8(2).u32(pid).u64(started),
        };
        w.into_bytes()
    }

    /// Decodes a request without its length. Additional bytes are ignored, because later versions may add fields.
    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match r.u8("request")? {
            1 => Ok(Self::List),
            2 => Ok(Self::Open { pid: r.u32("process id")?, started: r.u64("start time")? }),
            other => {
                let kind =
                    DecodeErrorKind::Unexpected { value: u64::from(other), expected: "1 (list) or 2 (open)" };
                Err(r.error("request", kind))
            }
        }
    }
}

/// The address at which a client connected to a router, in a form that is the same on both sides. All loopback
/// addresses are equal, because a tunnel may start at one and end at another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RouterAddress(SocketAddr);

impl RouterAddress {
    pub(crate) fn encode(self) -> [u8; ADDRESS] {
        let ip = match self.0.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        let mut bytes = [0; ADDRESS];
        for (at, byte) in bytes.iter_mut().zip(ip.octets().into_iter().chain(self.0.port().to_le_bytes())) {
            *at = byte;
        }
        bytes
    }

    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let ip = Ipv6Addr::from(r.array::<16>("router's address")?);
        Ok(SocketAddr::from((ip, r.u16("router's port")?)).into())
    }
}

impl From<SocketAddr> for RouterAddress {
    fn from(address: SocketAddr) -> Self {
        let ip = address.ip().to_canonical();
        let ip = if ip.is_loopback() { Ipv4Addr::LOCALHOST.into() } else { ip };
        Self(SocketAddr::new(ip, address.port()))
    }
}

impl std::fmt::Display for RouterAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Checks the length of a request.
pub(crate) fn request_length(length: u16) -> Result<usize, DecodeError> {
    let length = usize::from(length);
    if (1..=MAX_REQUEST).contains(&length) {
        return Ok(length);
    }
    let kind = DecodeErrorKind::TooLarge { value: length as u64, limit: MAX_REQUEST as u64 };
    Err(DecodeError::new(0, "request length", kind))
}

/// Decodes the head of an answer: the status, and the length of the payload.
pub(crate) fn answer_head(r: &mut Reader<'_>) -> Result<(u16, usize), DecodeError> {
    let (status, length) = (r.u16("status")?, r.u32("answer length")?);
    match usize::try_from(length) {
        Ok(length) if length <= MAX_ANSWER => Ok((status, length)),
        _ => {
            let kind = DecodeErrorKind::TooLarge { value: u64::from(length), limit: MAX_ANSWER as u64 };
            Err(r.error("answer length", kind))
        }
    }
}

/// Encodes an answer without its proof.
pub(crate) fn answer(outcome: Result<&[u8], &Refusal>) -> Vec<u8> {
    let (status, payload) = match outcome {
        Ok(payload) => (0, payload),
        Err(Refusal::Unauthenticated) => (1, &[][..]),
        Err(Refusal::Malformed) => (2, &[][..]),
        Err(Refusal::NoProcess(why)) => (3, truncated(why)),
        Err(Refusal::Failed(why)) => (4, truncated(why)),
        Err(Refusal::Elsewhere(why)) => (5, truncated(why)),
        Err(Refusal::Other(status)) => (*status, &[][..]),
    };
    let mut w = Writer::new();
    // The payloads of this crate are never longer; see `RemoteProcess`.
    w.u16(status).u32(u32::try_from(payload.len()).unwrap_or(u32::MAX)).bytes(payload);
    w.into_bytes()
}

/// Converts the status and payload of an answer to a result.
pub(crate) fn outcome(status: u16, payload: Vec<u8>) -> Result<Vec<u8>, Refusal> {
    let text =
        |payload: Vec<u8>| String::from_utf8_lossy(payload.get(..MAX_ERROR).unwrap_or(&payload)).into_owned();
    match status {
        0 => Ok(payload),
        1 => Err(Refusal::Unauthenticated),
        2 => Err(Refusal::Malformed),
        3 => Err(Refusal::NoProcess(text(payload))),
        4 => Err(Refusal::Failed(text(payload))),
        5 => Err(Refusal::Elsewhere(text(payload))),
        other => Err(Refusal::Other(other)),
    }
}

/// Truncates a text to the maximum length.
fn truncated(text: &str) -> &[u8] {
    text.get(..text.floor_char_boundary(MAX_ERROR)).unwrap_or_default().as_bytes()
}

fn magic(r: &mut Reader<'_>) -> Result<(), DecodeError> {
    if r.array::<8>("magic")? == MAGIC {
        return Ok(());
    }
    Err(DecodeError::new(0, "magic", DecodeErrorKind::Invalid("is not \"RUNTAP-R\"")))
}
