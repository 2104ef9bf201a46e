//! Tests with well-behaved and misbehaving clients.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{self, Receiver, Sender};

use super::*;

/// Forwards each frame to a channel, and answers with the reversed frame.
struct Mirror(Sender<(u64, Vec<u8>)>);

impl Answer for Mirror {
    fn answer(&self, connection: u64, frame: &[u8]) -> Option<Vec<u8>> {
        self.0.send((connection, frame.to_vec())).unwrap();
        (frame != b"bad").then(|| frame.iter().rev().copied().collect())
    }

    fn exhausted(&self) {
        self.0.send((u64::MAX, b"exhausted".to_vec())).unwrap();
    }

    fn closed(&self, connection: u64) {
        // The test may be over.
        let _ = self.0.send((connection, Vec::new()));
    }
}

struct Served {
    http: Http,
    frames_received: Receiver<(u64, Vec<u8>)>,
    token: String,
    _folder: tempfile::TempDir,
}

const MAX_FRAME_SIZE: u64 = 1 << 20;

fn serve() -> Served {
    serve_with(Budget::default())
}

fn serve_with(budget: Budget) -> Served {
    let folder = tempfile::tempdir().unwrap();
    let (send, frames_received) = mpsc::channel();
    let http = Http::listen(folder.path().join("t"), MAX_FRAME_SIZE, budget, Mirror(send)).unwrap();
    let options = std::fs::read_to_string(folder.path().join("t")).unwrap();
    let token = options.trim().strip_prefix("--dotnet-test-http-token ").unwrap().to_owned();
    Served { http, frames_received, token, _folder: folder }
}

impl Served {
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.http.address).unwrap();
        // Makes failing tests end soon.
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    fn head(&self, more: &str) -> String {
        format!(
            "POST / HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n{more}\r\n",
            self.http.address, self.token
        )
    }

    fn request(&self, body: &[u8]) -> Vec<u8> {
        [self.head(&format!("Content-Length: {}\r\n", body.len())).as_bytes(), body].concat()
    }
}

/// Reads the status and the body of one response.
fn response(stream: &mut TcpStream) -> (u16, Vec<u8>) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let length = head.split("content-length: ").nth(1).unwrap().split('\r').next().unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).unwrap();
    assert_eq!(status == 200, head.contains("content-type: application/octet-stream\r\n"), "{head}");
    (status, body)
}

/// Returns whether the server has closed the connection.
fn is_closed(stream: &mut TcpStream) -> bool {
    match stream.read(&mut [0]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
    }
}

fn ask(stream: &mut TcpStream, request: &[u8]) -> (u16, Vec<u8>) {
    stream.write_all(request).unwrap();
    response(stream)
}

/// Waits until the server is idle: a closed connection is removed from the list with a delay.
fn becomes_idle(http: &Http) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while !http.is_idle() {
        assert!(Instant::now() < deadline, "a connection is still open");
        thread::yield_now();
    }
}

#[test]
fn a_connection_carries_any_number_of_frames() {
    let mut served = serve();
    let mut stream = served.connect();
    for _ in 0..3 {
        assert_eq!(ask(&mut stream, &served.request(b"abc")), (200, b"cba".to_vec()));
    }
    let large = vec![7; usize::try_from(MAX_FRAME_SIZE).unwrap()];
    assert_eq!(ask(&mut stream, &served.request(&large)), (200, large));
    drop(stream);
    becomes_idle(&served.http);
    served.http.shut();
    assert_eq!(served.frames_received.try_iter().filter(|(_, frame)| frame == b"abc").count(), 3);
    assert!(TcpStream::connect(served.http.address).is_err());
}

#[test]
fn requests_without_the_token_are_not_read() {
    let served = serve();
    let wrong = "0".repeat(64);
    let other = |line: &str| format!("POST / HTTP/1.1\r\nHost: x\r\n{line}Content-Length: 3\r\n\r\nabc");
    for line in [
        String::new(),
        format!("Authorization: Bearer {wrong}\r\n"),
        format!("Authorization: Basic {}\r\n", served.token),
        format!("Authorization: Bearer {0}\r\nAuthorization: Bearer {wrong}\r\n", served.token),
        format!("X-Authorization: Bearer {}\r\n", served.token),
    ] {
        let mut stream = served.connect();
        assert_eq!(ask(&mut stream, other(&line).as_bytes()).0, 401, "{line}");
        assert!(is_closed(&mut stream), "{line}");
    }
    // The body is not awaited either.
    let mut stream = served.connect();
    let endless = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000000000\r\n\r\n";
    assert_eq!(ask(&mut stream, endless.as_bytes()).0, 401);
    drop(served.http);
    assert_eq!(served.frames_received.try_iter().count(), 0);
}

#[test]
fn invalid_requests_are_rejected() {
    let served = serve();
    let with = |more: &str| served.head(more);
    let get = with("Content-Length: 0\r\n").replacen("POST", "GET", 1);
    let elsewhere = with("Content-Length: 0\r\n").replacen("POST /", "POST /x", 1);
    let claimed = format!("Content-Length: {}\r\n", MAX_FRAME_SIZE + 1);
    let huge = "Content-Length: 18446744073709551610\r\n";
    let chunked = "Transfer-Encoding: chunked\r\n";
    let long = format!("{}100001\r\n{}", with(chunked), "x".repeat(0x0010_0001));
    for (request, status) in [
        (get, 405),
        (elsewhere, 404),
        (with(&claimed), 413),
        (with(huge), 413),
        (long, 413),
        (with(chunked) + "zz\r\nabc\r\n0\r\n\r\n", 400),
        (with(chunked) + "ffffffffffffffffff\r\nabc", 400),
        (String::from_utf8(served.request(b"bad")).unwrap(), 400),
        (with("Content-Length: 3\r\nContent-Length: 4\r\n") + "abc", 400),
        (format!("{}{}", "POST / HTTP/1.1\r\nX: ", "y".repeat(MAX_HEAD_SIZE)), 431),
        ("\u{0}\u{1}\r\n\r\n".to_owned(), 400),
    ] {
        let mut stream = served.connect();
        let start: String = request.chars().take(60).collect();
        // The connection may be closed while the client is sending.
        let _ = stream.write_all(request.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let line = format!("HTTP/1.1 {status} ");
        assert!(answer.starts_with(line.as_bytes()), "{start}: {}", String::from_utf8_lossy(&answer));
    }
    // Valid chunked bodies are accepted.
    let mut stream = served.connect();
    let request = with(chunked) + "2\r\nab\r\n1\r\nc\r\n0\r\n\r\n";
    assert_eq!(ask(&mut stream, request.as_bytes()), (200, b"cba".to_vec()));
    drop((stream, served.http));
    let frames: Vec<_> =
        served.frames_received.try_iter().map(|(_, frame)| frame).filter(|frame| !frame.is_empty()).collect();
    assert_eq!(frames, [b"bad", b"abc"]);
}

#[test]
fn slow_or_silent_connections_do_not_delay_others() {
    let mut served = serve();
    let mut slow = served.connect();
    slow.write_all(served.head("Content-Length: 4\r\n").as_bytes()).unwrap();
    slow.write_all(b"ab").unwrap();
    let silent = served.connect();
    let mut half = served.connect();
    half.write_all(b"POST / HT").unwrap();
    let mut other = served.connect();
    for _ in 0..100 {
        assert_eq!(ask(&mut other, &served.request(b"abc")).0, 200);
    }
    slow.write_all(b"cd").unwrap();
    assert_eq!(response(&mut slow), (200, b"dcba".to_vec()));
    drop((slow, other));
    // Connections without the token do not delay the end either.
    becomes_idle(&served.http);
    served.http.shut();
    assert!(is_closed(&mut half));
    drop(silent);
}

#[test]
fn the_last_request_of_an_exited_process_is_read() {
    let served = serve();
    let mut stream = served.connect();
    assert_eq!(ask(&mut stream, &served.request(b"abc")).0, 200);
    // The server must add another connection to the list first, and then sees the request and its end together.
    let open = served.http.server.open();
    let other = served.connect();
    thread::sleep(Duration::from_millis(50));
    stream.write_all(&served.request(b"last words")).unwrap();
    drop(stream);
    drop((open, other));
    becomes_idle(&served.http);
    assert!(served.frames_received.try_iter().any(|(_, frame)| frame == b"last words"));
}

#[test]
fn half_closed_connections_are_answered_and_closed() {
    let served = serve();
    let mut stream = served.connect();
    stream.write_all(&served.request(b"abc")).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(response(&mut stream), (200, b"cba".to_vec()));
    assert!(is_closed(&mut stream));
    becomes_idle(&served.http);
    let mut before = served.connect();
    assert_eq!(ask(&mut before, &served.request(b"abc")).0, 200);
    before.shutdown(Shutdown::Write).unwrap();
    assert!(is_closed(&mut before));
    becomes_idle(&served.http);
    for cut in ["", "POST / HT", &served.head("Content-Length: 4\r\n")] {
        let mut stream = served.connect();
        stream.write_all(cut.as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    }
    becomes_idle(&served.http);
}

#[test]
fn truncated_bodies_are_ignored() {
    let served = serve();
    let mut stream = served.connect();
    stream.write_all(served.head("Content-Length: 40\r\n").as_bytes()).unwrap();
    stream.write_all(b"abc").unwrap();
    drop(stream);
    let mut other = served.connect();
    assert_eq!(ask(&mut other, &served.request(b"xy")).0, 200);
    drop((other, served.http));
    assert!(served.frames_received.try_iter().all(|(_, frame)| frame.is_empty() || frame == b"xy"));
}

#[test]
fn a_thousand_silent_connections_do_not_block_the_application() {
    let mut served = serve();
    let mut first = served.connect();
    assert_eq!(ask(&mut first, &served.request(b"abc")).0, 200);
    let mut silent = VecDeque::new();
    for _ in 0..1000 {
        silent.push_back(served.connect());
        // This process has both ends of each connection and may have few descriptors: drop the closed ones.
        if silent.len() > MAX_UNVERIFIED + 50 {
            assert!(is_closed(&mut silent.pop_front().unwrap()));
        }
    }
    let mut late = served.connect();
    assert_eq!(ask(&mut late, &served.request(b"abc")).0, 200);
    assert_eq!(ask(&mut first, &served.request(b"abc")).0, 200);
    assert!(served.http.server.open().unverified.len() <= MAX_UNVERIFIED);
    drop((first, late));
    becomes_idle(&served.http);
    served.http.shut();
}

#[test]
fn repeated_connections_without_the_token_do_not_delay_the_end() {
    let served = serve();
    served.http.has_ended();
    let deadline = Instant::now() + Duration::from_mins(1);
    let mut strangers = Vec::new();
    loop {
        strangers.push(served.connect());
        if served.http.is_idle() {
            break;
        }
        assert!(Instant::now() < deadline, "{} strangers", strangers.len());
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn connections_with_the_token_are_limited() {
    let served = serve();
    let mut all = Vec::new();
    for _ in 0..MAX_CONNECTIONS {
        let mut stream = served.connect();
        assert_eq!(ask(&mut stream, &served.request(b"abc")).0, 200);
        all.push(stream);
    }
    let mut more = served.connect();
    assert_eq!(ask(&mut more, &served.request(b"abc")).0, 503);
    assert_eq!(ask(&mut all[0], &served.request(b"abc")).0, 200);
}

#[test]
fn large_bodies_wait_for_memory_and_small_ones_do_not() {
    const SIZE: usize = 512 << 10;
    let budget = Budget::new(2 * SIZE, Duration::from_millis(200));
    let served = serve_with(budget.clone());
    let whole = served.request(&vec![7; SIZE]);
    let (first, rest) = whole.split_at(SIZE);
    let mut begun: Vec<_> = (0..3)
        .map(|_| {
            let mut stream = served.connect();
            stream.write_all(first).unwrap();
            stream
        })
        .collect();
    let mut small = served.connect();
    small.write_all(&served.request(b"abc")).unwrap();
    assert_eq!(response(&mut small), (200, b"cba".to_vec()));
    // No body is completed, so one of the waiting bodies times out.
    let exhausted = served.frames_received.iter().find(|(connection, _)| *connection == u64::MAX);
    assert_eq!(exhausted.unwrap().1, b"exhausted");
    assert_eq!(budget.used(), (2 * SIZE, 0));
    // The other bodies are read.
    let mut completed = 0;
    for stream in &mut begun {
        if stream.write_all(rest).is_ok() && response(stream).0 == 200 {
            completed += 1;
        }
    }
    assert_eq!((completed, budget.used()), (2, (0, 0)));
}
