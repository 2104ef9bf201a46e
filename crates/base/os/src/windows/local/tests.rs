//! Two ends in one process.

use std::thread;

use super::*;

fn path(what: &str) -> PathBuf {
    PathBuf::from(format!(r"\\.\pipe\runtap-local-{}-{what}", std::process::id()))
}

#[test]
fn a_thread_reads_while_another_writes() {
    let listener = LocalListener::bind(path("both")).unwrap();
    let client = thread::spawn(|| LocalStream::connect(path("both")).unwrap());
    let (server, process) = listener.accept().unwrap();
    assert_eq!(process, Some(std::process::id()));
    let mut client = client.join().unwrap();
    let reading = thread::spawn({
        let mut server = server.clone();
        move || {
            let mut text = String::new();
            server.read_to_string(&mut text).unwrap();
            text
        }
    });
    // The read above is pending during this write.
    (&server).write_all(b"hello").unwrap();
    let mut buffer = [0; 5];
    client.read_exact(&mut buffer).unwrap();
    client.write_all(b"good bye").unwrap();
    drop(client);
    assert_eq!((reading.join().unwrap().as_str(), &buffer), ("good bye", b"hello"));
    assert!(server.is_at_end());
}

#[test]
fn waiting_threads_are_woken() {
    let listener = LocalListener::bind(path("woken")).unwrap();
    let client = thread::spawn(|| LocalStream::connect(path("woken")).unwrap());
    let (server, process) = listener.accept().unwrap();
    assert_eq!(process, Some(std::process::id()));
    let mut client = client.join().unwrap();
    let reading = thread::spawn({
        let mut server = server.clone();
        move || server.read(&mut [0]).unwrap()
    });
    server.shutdown(Shutdown::Both).unwrap();
    assert_eq!(reading.join().unwrap(), 0);
    client.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    assert_eq!(client.read(&mut [0]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    client.set_read_timeout(None).unwrap();
    assert_eq!((&server).read(&mut [0]).unwrap(), 0);
    (&server).write_all(b"x").unwrap_err();
    drop(server);
    assert_eq!(client.read(&mut [0]).unwrap(), 0);
    listener.set_nonblocking(true).unwrap();
    assert_eq!(listener.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
    if !pipe::is_wine() {
        LocalListener::bind(path("woken")).unwrap_err();
    }
    listener.set_nonblocking(false).unwrap();
    let waiting = thread::spawn({
        let listener = listener.clone();
        move || listener.accept().map(drop).unwrap_err().kind()
    });
    listener.wake();
    assert_eq!(waiting.join().unwrap(), io::ErrorKind::WouldBlock);
    drop(listener);
    assert_eq!(LocalStream::connect(path("woken")).unwrap_err().kind(), io::ErrorKind::NotFound);
}
