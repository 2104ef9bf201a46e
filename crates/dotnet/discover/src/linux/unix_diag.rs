//! The kernel's list of the Unix sockets in this process's network namespace and their peers. `/proc/net/unix` lists names,
//! but no peers.
//!
//! Source: `sock_diag(7)`, `netlink(7)`, and the kernel's `unix_diag.h`.

use std::io;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};

/// A Unix socket.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct UnixSocket {
    /// The lower 32 bits of its inode number in `/proc/PID/fd`.
    pub inode: u32,
    /// Whether it accepts connections.
    pub listening: bool,
    /// The path it was bound to, as its owner wrote it. An accepted connection has the path of its listener.
    pub name: Option<Vec<u8>>,
    /// The lower 32 bits of the inode number of its file.
    pub file: Option<u32>,
    /// The inode number of its peer.
    pub peer: Option<u32>,
}

const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST | NLM_F_DUMP`.
const REQUEST_ALL: u16 = 0x301;
const AF_UNIX: u8 = 1;
/// `UDIAG_SHOW_NAME | UDIAG_SHOW_VFS | UDIAG_SHOW_PEER`.
const SHOW: u32 = 0b111;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const TCP_LISTEN: u8 = 10;
/// Types of attributes.
const UNIX_DIAG_NAME: u16 = 0;
const UNIX_DIAG_VFS: u16 = 1;
const UNIX_DIAG_PEER: u16 = 2;

/// Returns all Unix sockets.
///
/// # Errors
/// Returns an error if the kernel does not support the query or a system call filter forbids it.
pub(super) fn sockets() -> io::Result<Vec<UnixSocket>> {
    let flags = SocketFlags::CLOEXEC;
    let protocol = Some(netlink::SOCK_DIAG);
    let socket = rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol)?;
    rustix::net::send(&socket, &request(), SendFlags::empty())?;
    let mut found = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let (_, n) = rustix::net::recv(&socket, buffer.as_mut_slice(), RecvFlags::empty())?;
        if !parse(buffer.get(..n).unwrap_or_default(), &mut found)? {
            return Ok(found);
        }
    }
}

fn request() -> Vec<u8> {
    let mut body = vec![AF_UNIX, 0, 0, 0];
    body.extend(u32::MAX.to_ne_bytes()); // states: all
    body.extend(0u32.to_ne_bytes()); // inode: any
    body.extend(SHOW.to_ne_bytes());
    body.extend([0xff; 8]); // cookie: none
    let mut message = Vec::with_capacity(16 + body.len());
    message.extend((16u32 + 24).to_ne_bytes());
    message.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    message.extend(REQUEST_ALL.to_ne_bytes());
    message.extend([0; 8]); // sequence and port
    message.extend(body);
    message
}

/// Parses the messages of one datagram. Returns whether more datagrams follow.
pub(super) fn parse(datagram: &[u8], found: &mut Vec<UnixSocket>) -> io::Result<bool> {
    let mut rest = datagram;
    while let (Some(length), Some(kind)) = (u32_at(rest, 0), u16_at(rest, 4)) {
        let Ok(length) = usize::try_from(length) else { break };
        let Some(body) = rest.get(16..length) else { break };
        match kind {
            NLMSG_DONE => return Ok(false),
            NLMSG_ERROR => {
                let code = u32_at(body, 0).unwrap_or_default().cast_signed();
                return Err(io::Error::from_raw_os_error(code.wrapping_neg()));
            }
            SOCK_DIAG_BY_FAMILY => found.extend(parse_socket(body)),
            _ => {}
        }
        rest = rest.get(aligned(length)..).unwrap_or_default();
    }
    // A datagram without messages would be the last one.
    Ok(!datagram.is_empty())
}

/// Parses family, type, state, padding, inode and cookie, followed by attributes.
fn parse_socket(body: &[u8]) -> Option<UnixSocket> {
    const HEAD: usize = 16;
    let mut socket = UnixSocket {
        inode: u32_at(body, 4)?,
        listening: *body.get(2)? == TCP_LISTEN,
        ..UnixSocket::default()
    };
    let mut rest = body.get(HEAD..)?;
    while let (Some(length), Some(kind)) = (u16_at(rest, 0), u16_at(rest, 2)) {
        let length = usize::from(length);
        let Some(value) = rest.get(4..length) else { break };
        match kind {
            UNIX_DIAG_NAME => socket.name = Some(value.strip_suffix(&[0]).unwrap_or(value).to_owned()),
            UNIX_DIAG_VFS => socket.file = u32_at(value, 0),
            UNIX_DIAG_PEER => socket.peer = u32_at(value, 0),
            _ => {}
        }
        rest = rest.get(aligned(length)..).unwrap_or_default();
    }
    Some(socket)
}

fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    #[test]
    fn both_ends_of_a_connection_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let listener = UnixListener::bind(&path).unwrap();
        let near = UnixStream::connect(&path).unwrap();
        let (far, _) = listener.accept().unwrap();
        let inode = |fd: &dyn AsFd| {
            u32::try_from(rustix::fs::fstat(fd.as_fd()).unwrap().st_ino & 0xffff_ffff).unwrap()
        };
        let all = sockets().unwrap();
        let find = |inode: u32| all.iter().find(|socket| socket.inode == inode).unwrap();

        let file = u32::try_from(path.metadata().unwrap().ino() & 0xffff_ffff).unwrap();
        let name = Some(path.as_os_str().as_bytes().to_vec());
        let (listener, near, far) = (inode(&listener), inode(&near), inode(&far));
        let expected =
            UnixSocket { inode: listener, listening: true, name: name.clone(), file: Some(file), peer: None };
        assert_eq!(*find(listener), expected);
        assert_eq!((find(far).peer, find(far).listening, &find(far).name), (Some(near), false, &name));
        assert_eq!((find(near).peer, &find(near).name), (Some(far), &None));
    }

    /// Malformed messages cause neither out-of-bounds reads nor endless loops.
    #[test]
    fn truncated_and_malformed_datagrams() {
        let attribute = |kind: u16, value: &[u8]| {
            let length = u16::try_from(4 + value.len()).unwrap();
            let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
            bytes.extend(value);
            bytes.resize(aligned(bytes.len()), 0);
            bytes
        };
        let message = |kind: u16, body: &[u8]| {
            let mut bytes = u32::try_from(16 + body.len()).unwrap().to_ne_bytes().to_vec();
            bytes.extend(kind.to_ne_bytes());
            bytes.extend([0; 10]);
            bytes.extend(body);
            bytes
        };
        let mut body = vec![1, 1, TCP_LISTEN, 0];
        body.extend(77u32.to_ne_bytes());
        body.extend([0; 8]);
        body.extend(attribute(UNIX_DIAG_NAME, b"/a\0"));
        body.extend(attribute(99, b"?"));
        body.extend(attribute(UNIX_DIAG_PEER, &5u32.to_ne_bytes()));
        let mut whole = message(SOCK_DIAG_BY_FAMILY, &body);
        let mut found = Vec::new();
        assert!(parse(&whole, &mut found).unwrap(), "more may come");
        let expected =
            UnixSocket { inode: 77, listening: true, name: Some(b"/a".to_vec()), file: None, peer: Some(5) };
        assert_eq!(found, [expected]);

        whole.extend(message(NLMSG_DONE, &[0; 4]));
        assert!(!parse(&whole, &mut Vec::new()).unwrap());
        for end in 0..whole.len() {
            let _ = parse(&whole[..end], &mut Vec::new()).unwrap();
        }
        assert!(!parse(&[], &mut Vec::new()).unwrap());
        let refused = message(NLMSG_ERROR, &(-2i32).to_ne_bytes());
        assert_eq!(parse(&refused, &mut Vec::new()).unwrap_err().kind(), io::ErrorKind::NotFound);
        // A message with length 0.
        assert!(parse(&[0; 32], &mut Vec::new()).unwrap());
    }
}
