//! More runtimes connect than a router has places for.
#![cfg(target_os = "linux")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixListener;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use runtap_diag_proto::{Advertise, InfoForm, Request, Uuid};
use runtap_model::Message;
use runtap_route::router::{Acceptor, Back, Front, Notice, Router, Statistics, messages};
use runtap_testkit::{Skip, eventually, require};
use runtap_transport::{BindOptions, Endpoint, Listener};
use rustix::process::{Uid, geteuid};
use rustix::thread::set_thread_res_uid;

/// The number of places of a router.
const PLACES: u64 = 64;

/// A router over TCP that runs until the test ends, with its notices and statistics. Without a tool that listens, tools connect to
/// the router.
fn router(tool: Option<Endpoint>) -> (SocketAddr, Arc<Mutex<Vec<Notice>>>, Arc<Statistics>) {
    let (tell, ready) = mpsc::channel();
    let notices = Arc::<Mutex<Vec<Notice>>>::default();
    let told = Arc::clone(&notices);
    let run = async move {
        let folder = tempfile::tempdir().unwrap();
        let listener = Listener::bind(folder.path().join("tools"), BindOptions::default()).unwrap();
        let gate = Acceptor::tcp(&["127.0.0.1:0".parse().unwrap()]).await.unwrap();
        let address = gate.to_string().parse().unwrap();
        let front = tool.map_or_else(|| Front::Listen(Acceptor::Local(Box::new(listener))), Front::Connect);
        let router = Router::new(front, Back::Listen(gate)).on_notice(move |notice| {
            if matches!(notice, Notice::NoPlace { .. }) {
                told.lock().unwrap().push(notice.clone());
            }
        });
        tell.send((address, router.statistics())).unwrap();
        router.run(std::future::pending()).await
    };
    thread::spawn(move || {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(run)
    });
    let (address, statistics) = ready.recv().unwrap();
    (address, notices, statistics)
}

/// A runtime over TCP that identifies itself and waits for a request.
fn connect(address: SocketAddr, process_id: u64) -> TcpStream {
    let mut runtime = TcpStream::connect(address).unwrap();
    runtime.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    let advertise = Advertise { runtime_cookie: Uuid::from_u128(process_id.into()), process_id };
    runtime.write_all(&advertise.to_bytes()).unwrap();
    runtime
}

/// Connects as many runtimes as there are places, each when the previous one is known.
fn fill(address: SocketAddr, statistics: &Statistics) -> Vec<TcpStream> {
    let one = |process_id| {
        let runtime = connect(address, process_id);
        eventually("the runtime", || (statistics.runtimes() == process_id).then_some(()));
        runtime
    };
    (1..=PLACES).map(one).collect()
}

fn fill_as_another_user(address: SocketAddr, statistics: &Statistics) -> Vec<TcpStream> {
    let other = || {
        let user = Uid::from_raw(65_534);
        set_thread_res_uid(user, user, user).unwrap();
        fill(address, statistics)
    };
    thread::scope(|scope| scope.spawn(other).join().unwrap())
}

fn is_closed(mut runtime: &TcpStream) -> bool {
    runtime.read(&mut [0]).unwrap() == 0
}

#[test]
fn a_runtime_without_a_place_is_reported() {
    let (address, notices, statistics) = router(None);
    let _runtimes = fill(address, &statistics);
    for count in 1..=2 {
        assert!(is_closed(&connect(address, 70)));
        assert_eq!(statistics.without_place(), count);
    }
    let notices = notices.lock().unwrap();
    let no_place = |count| Notice::NoPlace { process_id: 70, places: 64, count };
    assert_eq!(*notices, [no_place(1), no_place(2)]);
    let is_warning = |notice: &Notice| matches!(messages::notice(notice), Message::Warning(_));
    assert_eq!(notices.iter().map(is_warning).collect::<Vec<_>>(), [true, false], "said once");
}

/// Every user of a machine can connect to its ports.
#[test]
fn the_user_with_the_most_runtimes_loses_a_place() {
    let is_root = geteuid().is_root();
    require!(if is_root { Ok(()) } else { Err(Skip::because("only root can act as other users")) });
    let (address, notices, statistics) = router(None);
    let runtimes = fill_as_another_user(address, &statistics);
    let own = connect(address, 70);
    eventually("the runtime", || (statistics.runtimes() == PLACES + 1).then_some(()));
    assert!(is_closed(&runtimes[63]), "the newest");
    let left: Vec<Notice> = notices.lock().unwrap().clone();
    assert_eq!(left, [Notice::NoPlace { process_id: 64, places: 64, count: 1 }]);
    own.set_nonblocking(true).unwrap();
    assert!((&own).read(&mut [0]).is_err(), "it waits for a request");
}

/// A tool that listens may query each runtime and wait.
#[test]
fn runtimes_that_do_not_answer_do_not_lock_out_others() {
    let is_root = geteuid().is_root();
    require!(if is_root { Ok(()) } else { Err(Skip::because("only root can act as other users")) });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tool");
    let tool = UnixListener::bind(&path).unwrap();
    let info = Request::ProcessInfo(InfoForm::ProcessInfo2).to_bytes().unwrap();
    let request = info.clone();
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        for stream in tool.incoming() {
            let mut stream = stream.unwrap();
            stream.read_exact(&mut [0; Advertise::LEN]).unwrap();
            stream.write_all(&request).unwrap();
            let _ended = tell.send(stream);
        }
    });
    let (address, _, statistics) = router(Some(Endpoint::unix(path)));
    let runtimes = fill_as_another_user(address, &statistics);
    let is_asked = |mut runtime: &TcpStream| {
        let mut asked = vec![0; info.len()];
        runtime.read_exact(&mut asked).unwrap();
        asked == info
    };
    assert!(runtimes.iter().all(is_asked));
    let own = connect(address, 70);
    assert!(is_asked(&own));
    assert!(is_closed(&runtimes[63]), "the newest");
    let mut clients: Vec<_> = told.try_iter().collect();
    let ended = |client: &mut std::os::unix::net::UnixStream| {
        client.set_nonblocking(true).unwrap();
        client.read(&mut [0]).is_ok_and(|size| size == 0)
    };
    eventually("its client", || {
        (clients.iter_mut().filter_map(|client| ended(client).then_some(())).count() == 1).then_some(())
    });
}
