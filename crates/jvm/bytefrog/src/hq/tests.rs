//! Tests of HQ while one of its connections is busy.

use std::io::Write as _;
use std::net::{Ipv4Addr, TcpStream};
use std::sync::mpsc::channel;

use super::*;

/// A time-out that no passing test reaches.
const TIMEOUT: Duration = Duration::from_secs(20);

#[test]
fn a_busy_connection_does_not_delay_status_requests() {
    let (sender, connected) = channel();
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let hq = Hq::listen(loopback, Options::default(), move |id, event| {
        if matches!(event, Event::Connected { .. }) {
            let _ = sender.send(id);
        }
    });
    let hq = hq.expect("a free port");
    let mut stream = TcpStream::connect(hq.address()).expect("HQ listens");
    stream.write_all(&[0, 0xf1]).expect("taken");
    let agent = connected.recv_timeout(TIMEOUT).expect("it connects").expect("an agent");
    let kept = hq.shared.agent(agent).expect("kept");
    // The thread of a connection holds the model while it handles events.
    let busy = kept.model();
    std::thread::scope(|scope| {
        let (sender, answer) = channel();
        let hq = &hq;
        scope.spawn(move || {
            let _ = sender.send((hq.agents().len(), hq.counters(agent).is_ok()));
        });
        assert_eq!(answer.recv_timeout(TIMEOUT), Ok((1, true)));
        drop(busy);
    });
}

#[test]
fn abandoned_connections_are_not_read() {
    let (sender, heard) = channel();
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let hq = Hq::listen(loopback, Options::default(), move |_, event| {
        let _ = sender.send(event);
    });
    let hq = hq.expect("a free port");
    let mut control = TcpStream::connect(hq.address()).expect("HQ listens");
    control.write_all(&[0, 0xf1]).expect("taken");
    let run = loop {
        if let Event::Connected { run, .. } = heard.recv_timeout(TIMEOUT).expect("it connects") {
            break run;
        }
    };
    hq.abandon();
    let mut data = TcpStream::connect(hq.address()).expect("HQ listens");
    data.write_all(&[0x1e, run]).expect("taken");
    // The connection is closed without an error message to the agent.
    while heard.recv_timeout(TIMEOUT).expect("it ends") != Event::Data(0) {}
}
