//! Single commands with peers that behave, answer late, send invalid answers or disconnect. Time is simulated: nothing
//! here waits for real.

use std::{sync::Arc, time::Duration};

use runtap_diag::{
    Client, Command, Error, ErrorReply, Hresult, InfoForm, ProcessInfo, Reply, Request, SessionId, Timeouts,
    Variable,
};
use runtap_transport::Endpoint;
use tokio::{
    io::AsyncWriteExt,
    net::UnixListener,
    sync::Notify,
    time::{Instant, sleep},
};

use crate::support::{Peer, Runtime, closed, kind, ok, read_request, sample_config, sample_info};

const INFO3: Request = Request::ProcessInfo(InfoForm::ProcessInfo3);

#[tokio::test]
async fn missing_stale_and_non_sockets_are_distinguished() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let client = Client::new(Endpoint::unix(&path));
    assert_eq!(kind(&client.process_info().await.unwrap_err()), "not there");
    // The file stays when the listener is dropped, as after kill -9.
    drop(UnixListener::bind(&path).unwrap());
    assert_eq!(kind(&client.process_info().await.unwrap_err()), "stale");
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "").unwrap();
    assert_eq!(kind(&client.process_info().await.unwrap_err()), "no socket");
}

#[tokio::test]
async fn each_command_has_its_answer_and_closes_its_connection() {
    let variables = vec![Variable::new("A", "b=c"), Variable::new("E", "")];
    let expected = variables.clone();
    let all_closed = Arc::new(Notify::new());
    let notify = Arc::clone(&all_closed);
    let peer = Peer::new(move |_, mut stream| {
        let variables = variables.clone();
        let notify = Arc::clone(&notify);
        async move {
            let request = read_request(&mut stream).await.unwrap();
            let reply = match &request {
                Request::ProcessInfo(_) => Reply::ProcessInfo(sample_info()),
                Request::ProcessEnvironment => Reply::Environment(variables),
                Request::StopTracing(id) => Reply::SessionStopped(*id),
                _ => Reply::Resumed,
            };
            stream.write_all(&ok(&request, &reply)).await.unwrap();
            // Some runtimes keep their side open: the client must not wait for them.
            closed(&mut stream).await;
            notify.notify_one();
        }
    });
    let client = peer.client();
    assert_eq!(client.process_info().await.unwrap(), sample_info());
    all_closed.notified().await;
    assert_eq!(client.environment().await.unwrap(), expected);
    all_closed.notified().await;
    client.resume().await.unwrap();
    all_closed.notified().await;
    client.stop_session(SessionId(9)).await.unwrap();
    all_closed.notified().await;
    assert_eq!(peer.connections(), 4);
}

#[tokio::test]
async fn an_older_command_is_tried_with_an_old_runtime() {
    for (newest, connections) in
        [(InfoForm::ProcessInfo3, 1), (InfoForm::ProcessInfo2, 2), (InfoForm::ProcessInfo, 3)]
    {
        let peer = Peer::new(move |_, mut stream| async move {
            let request = read_request(&mut stream).await.unwrap();
            let bytes = match request {
                Request::ProcessInfo(form) if form > newest => {
                    ErrorReply::from(Hresult::UNKNOWN_COMMAND).to_bytes().unwrap()
                }
                _ => ok(&request, &Reply::ProcessInfo(sample_info())),
            };
            stream.write_all(&bytes).await.unwrap();
        });
        let info = peer.client().process_info().await.unwrap();
        assert_eq!(info.portable_rid.is_some(), newest == InfoForm::ProcessInfo3);
        assert_eq!(info.runtime_version.is_some(), newest >= InfoForm::ProcessInfo2);
        assert_eq!(peer.connections(), connections);
    }
}

#[tokio::test]
async fn a_runtime_without_any_of_the_commands_is_too_old() {
    let peer = Peer::answering(ErrorReply::from(Hresult::UNKNOWN_COMMAND).to_bytes().unwrap());
    let error = peer.client().process_info().await.unwrap_err();
    assert!(matches!(error, Error::Refused { command: Command::PROCESS_INFO, .. }), "{error}");
    assert!(error.is_unknown_command());
    assert_eq!(peer.connections(), 3);
}

#[tokio::test]
async fn rejections_carry_code_and_text_and_are_not_retried() {
    let reply = ErrorReply { hresult: Hresult::E_FAIL, message: Some("no room".into()) };
    let peer = Peer::answering(reply.to_bytes().unwrap());
    let error = peer.client().process_info().await.unwrap_err();
    assert_eq!(error.hresult(), Some(Hresult::E_FAIL));
    assert!(error.to_string().ends_with("no room"), "{error}");
    assert_eq!(peer.connections(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_silent_peer_is_busy() {
    let peer = Peer::new(|_, mut stream| async move { closed(&mut stream).await });
    let limit = Duration::from_millis(250);
    let client = peer.client().with_timeouts(Timeouts::all(limit));
    let began = Instant::now();
    for error in [
        client.process_info().await.unwrap_err(),
        client.environment().await.unwrap_err(),
        client.resume().await.unwrap_err(),
        client.stop_session(SessionId(1)).await.unwrap_err(),
        client.start_session(&sample_config()).await.unwrap_err(),
    ] {
        assert!(matches!(&error, Error::Busy { waited, .. } if *waited == limit), "{error}");
        assert!(error.is_unreachable());
    }
    assert!(began.elapsed() >= 5 * limit && began.elapsed() < 6 * limit, "no command waits twice");
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_is_accepted() {
    let peer = Peer::new(|_, mut stream| async move {
        let request = read_request(&mut stream).await.unwrap();
        sleep(Duration::from_secs(9)).await;
        stream.write_all(&ok(&request, &Reply::Resumed)).await.unwrap();
    });
    peer.client().resume().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_stops_half_way_is_a_time_out() {
    let peer = Peer::new(|_, mut stream| async move {
        read_request(&mut stream).await;
        stream.write_all(b"DOTNET_IPC_V1\0\x18").await.unwrap();
        closed(&mut stream).await;
    });
    let error = peer.client().resume().await.unwrap_err();
    assert!(matches!(error, Error::TimedOut { received: 15, .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_byte_by_byte_must_be_complete_in_time() {
    let drip = |pause: u64| {
        Peer::new(move |_, mut stream| async move {
            let request = read_request(&mut stream).await.unwrap();
            for byte in ok(&request, &Reply::Resumed) {
                if stream.write_all(&[byte]).await.is_err() {
                    return;
                }
                sleep(Duration::from_millis(pause)).await;
            }
        })
    };
    drip(100).client().resume().await.unwrap();
    let error = drip(1000).client().resume().await.unwrap_err();
    assert_eq!(kind(&error), "timed out", "24 bytes a second apart against 10 seconds");
}

#[tokio::test]
async fn an_answer_may_end_at_any_byte() {
    let exchanges = [
        (INFO3, Reply::ProcessInfo(sample_info())),
        (Request::ProcessEnvironment, Reply::Environment(vec![Variable::new("A", "b")])),
        (Request::ResumeRuntime, Reply::Resumed),
    ];
    for (request, reply) in exchanges {
        let answer = ok(&request, &reply);
        for cut in 0..answer.len() {
            let peer = Peer::answering(answer[..cut].to_vec());
            let error = peer.client().request(request.clone()).await.unwrap_err();
            assert!(
                matches!(error, Error::Closed { command, received } if command == request.command() && received == cut as u64),
                "{cut}: {error}"
            );
        }
        assert_eq!(Peer::answering(answer).client().request(request).await.unwrap(), reply);
    }
}

#[tokio::test]
async fn data_after_the_answer_is_harmless() {
    let answer = ok(&INFO3, &Reply::ProcessInfo(sample_info()));
    for tail in [answer.clone(), b"garbage".to_vec(), vec![0; 100_000]] {
        let peer = Peer::answering([answer.clone(), tail].concat());
        assert_eq!(peer.client().process_info().await.unwrap(), sample_info());
    }
}

#[tokio::test]
async fn invalid_answers_are_protocol_errors_with_offset_and_field() {
    let peer = Peer::answering(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec());
    let error = peer.client().resume().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the answer to 0x0401 (ResumeRuntime) is not valid: magic at offset 0: is not \"DOTNET_IPC_V1\""
    );
    // The answer to another command.
    let peer = Peer::answering(ok(&Request::ResumeRuntime, &Reply::Resumed));
    let error = peer.client().environment().await.unwrap_err();
    assert_eq!(kind(&error), "protocol");
}

#[tokio::test]
async fn a_peer_that_closes_at_once_is_distinguished_from_a_silent_one() {
    let peer = Peer::new(|_, stream| async move { drop(stream) });
    let error = peer.client().process_info().await.unwrap_err();
    assert!(matches!(error, Error::Closed { received: 0, .. }), "{error}");
}

#[tokio::test]
async fn an_environment_of_more_than_64_kb_is_complete() {
    let variables: Vec<_> = (0..120).map(|n| Variable::new(&format!("BIG_{n}"), &"é".repeat(5000))).collect();
    let answer = ok(&Request::ProcessEnvironment, &Reply::Environment(variables.clone()));
    assert!(answer.len() > 1_200_000);
    let peer = Peer::answering(answer);
    assert!(peer.client().environment().await.unwrap() == variables);
}

#[tokio::test]
async fn dropping_a_command_closes_its_connection() {
    let gone = Arc::new(Notify::new());
    let read = Arc::new(Notify::new());
    let (tell_gone, tell_read) = (Arc::clone(&gone), Arc::clone(&read));
    let peer = Peer::new(move |_, mut stream| {
        let (gone, read) = (Arc::clone(&tell_gone), Arc::clone(&tell_read));
        async move {
            read_request(&mut stream).await;
            read.notify_one();
            closed(&mut stream).await;
            gone.notify_one();
        }
    });
    let client = peer.client();
    tokio::select! {
        outcome = client.process_info() => panic!("{outcome:?}"),
        () = read.notified() => {}
    }
    gone.notified().await;
}

#[tokio::test]
async fn nothing_is_sent_if_the_request_could_harm() {
    let runtime = Runtime::new(Vec::new(), Vec::new());
    let mut config = sample_config();
    config.buffer_mb = 0;
    let client = runtime.peer.client();
    let error = client.start_session(&config).await.unwrap_err();
    assert_eq!(error.to_string(), "the request was not sent: circular buffer size: is 0 MB");
    // An earlier connection would have been accepted before this one.
    client.resume().await.unwrap();
    assert_eq!(runtime.peer.connections(), 1);
}

#[test]
fn clients_and_their_results_may_cross_threads() {
    fn crosses<T: Send + Sync>() {}
    crosses::<Client>();
    crosses::<Error>();
    crosses::<ProcessInfo>();
    crosses::<runtap_diag::Session>();
    crosses::<runtap_diag::Chunk>();
    crosses::<runtap_diag::blocking::Client>();
    crosses::<runtap_diag::blocking::Session>();
}
