//! The messages, as bytes. All numbers are little-endian.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use runtap_wire::{DecodeError, DecodeErrorKind, Reader, Writer};

use crate::remote::error::Refusal;

/// What hello and challenge begin with.
pub(crate) const MAGIC: [u8; 8] = *b"RUNTAP-R";

/// The version of the protocol that this crate speaks.
pub const VERSION: u16 = 2;

/// Random bytes, made for one connection.
pub type Nonce = [u8; 32];

/// The length of a proof.
pub(crate) const PROOF: usize = 32;
/// The length of a hello.
pub(crate) const HELLO: usize = 8 + 2 + 2 + 32;
/// The length of a challenge.
pub(crate) const CHALLENGE: usize = 8 + 2 + 32;
/// The length of an address.
pub(crate) const ADDRESS: usize = 16 + 2;
/// The length of what an answer begins with.
pub(crate) const ANSWER_HEAD: usize = 2 + 4;
/// The longest request.
pub(crate) const MAX_REQUEST: usize = 64;
/// The longest answer, without its proof.
pub const MAX_ANSWER: usize = 1 << 20;
/// The longest text of an error.
pub(crate) const MAX_ERROR: usize = 1024;

/// The client begins.
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

    /// Whether it speaks our version.
    pub(crate) fn has_ours(&self) -> bool {
        (self.oldest..=self.newest).contains(&VERSION)
    }
}

/// The router answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Challenge {
    /// 0 where there is none in common.
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

/// What a client wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Request {
    /// The processes that can be reached.
    List,
    /// A connection to one of them.
    Open {
        /// Its process id on that machine.
        pid: u32,
        /// When it was started, as it was listed: so that no other one is taken for it.
        started: u64,
    },
}

impl Request {
    /// With its length in front.
    pub(crate) fn encode(self) -> Vec<u8> {
        let mut w = Writer::new();
        match self {
            Self::List => w.u16(1).u8(1),
            Self::Open { pid, started } => w.u16(13).u8(2).u32(pid).u64(started),
        };
        w.into_bytes()
    }

    /// Without its length. What follows a request is of a later version, and ignored.
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

/// An address at which a client has reached a router, as both of them write it: an address of loopback is any of them,
/// because a tunnel that begins at one may end at another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reached(SocketAddr);

impl Reached {
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

impl From<SocketAddr> for Reached {
    fn from(address: SocketAddr) -> Self {
        let ip = address.ip().to_canonical();
        let ip = if ip.is_loopback() { Ipv4Addr::LOCALHOST.into() } else { ip };
        Self(SocketAddr::new(ip, address.port()))
    }
}

impl std::fmt::Display for Reached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The length of a request, checked.
pub(crate) fn request_length(length: u16) -> Result<usize, DecodeError> {
    let length = usize::from(length);
    if (1..=MAX_REQUEST).contains(&length) {
        return Ok(length);
    }
    let kind = DecodeErrorKind::TooLarge { value: length as u64, limit: MAX_REQUEST as u64 };
    Err(DecodeError::new(0, "request length", kind))
}

/// The head of an answer: its status, and the length of what follows.
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

/// An answer without its proof.
pub(crate) fn answer(outcome: Result<&[u8], &Refusal>) -> Vec<u8> {
    let (status, payload) = match outcome {
        Ok(payload) => (0, payload),
        Err(Refusal::Unauthenticated) => (1, &[][..]),
        Err(Refusal::Malformed) => (2, &[][..]),
        Err(Refusal::NoProcess(why)) => (3, cut(why)),
        Err(Refusal::Failed(why)) => (4, cut(why)),
        Err(Refusal::Elsewhere(why)) => (5, cut(why)),
        Err(Refusal::Other(status)) => (*status, &[][..]),
    };
    let mut w = Writer::new();
    // Answers are made by us, and no longer than is allowed: see `Listed`.
    w.u16(status).u32(u32::try_from(payload.len()).unwrap_or(u32::MAX)).bytes(payload);
    w.into_bytes()
}

/// What an answer says.
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

/// As much of a text as is allowed.
fn cut(text: &str) -> &[u8] {
    text.get(..text.floor_char_boundary(MAX_ERROR)).unwrap_or_default().as_bytes()
}

fn magic(r: &mut Reader<'_>) -> Result<(), DecodeError> {
    if r.array::<8>("magic")? == MAGIC {
        return Ok(());
    }
    Err(DecodeError::new(0, "magic", DecodeErrorKind::Invalid("is not \"RUNTAP-R\"")))
}
