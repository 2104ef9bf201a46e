//! Before there is a session: `--help`, and servers that support no version of this crate.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixListener;
use std::thread;

use runtap_mtp_host::{Application, CommandOption, Exit, Host, HostError, Identity, Launch, Server, Version};
use runtap_mtp_proto::server::{self, Event, Mode, Pipe, Settings};
use runtap_mtp_proto::{Message, Versions};

use crate::judge::Judge;

#[test]
fn help_is_answered_with_all_options_by_name() {
    let judge = Judge::new(Settings::new(Mode::Help));
    let own = [CommandOption::new("suite", "Which suite").values(1, 2)];
    Host::help(&judge.launch(&["--help"]), &Identity::this_program(), &own).unwrap();
    let messages = judge.messages(Exit::OK);
    let [Message::CommandLineOptions(options)] = &messages[..] else { panic!("{messages:?}") };
    let options = options.options.as_ref().unwrap();
    let names: Vec<_> = options.iter().map(|option| option.name.as_deref().unwrap()).collect();
    assert!(names.is_sorted() && names.contains(&"filter-uid") && names.contains(&"suite"), "{names:?}");
    let suite = options.iter().find(|option| option.name.as_deref() == Some("suite")).unwrap();
    assert_eq!((suite.minimum_arity, suite.maximum_arity), (Some(1), Some(2)));
    assert_eq!((suite.is_built_in, suite.is_hidden), (Some(false), Some(false)));
}

#[test]
fn a_server_that_wants_help_without_a_handshake_gets_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let listener = UnixListener::bind(&path).unwrap();
    let serving = thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        // It dies of the handshake, as one before MTP 2.3 may.
        let (mut stream, _) = listener.accept().unwrap();
        assert!(stream.read(&mut buffer).unwrap() > 0);
        drop(stream);
        let (mut stream, _) = listener.accept().unwrap();
        let mut application = server::Application::new(Settings::new(Mode::Help));
        let mut connection = application.connect(Pipe::Data);
        let mut events = Vec::new();
        while events.is_empty() {
            let count = stream.read(&mut buffer).unwrap();
            assert!(count > 0, "it has gone");
            let output = application.handle_bytes(&mut connection, &buffer[..count]);
            stream.write_all(&output.transmit).unwrap();
            events = output.events;
        }
        events
    });
    let launch = Launch::by(Server::Pipe(path));
    Host::help(&launch, &Identity::this_program(), &[]).unwrap();
    let events = serving.join().unwrap();
    assert!(matches!(&events[..], [Event::Message(Message::CommandLineOptions(_))]), "{events:?}");
}

#[test]
fn a_server_that_knows_no_common_version_is_told_nothing() {
    let versions = Versions::new([Version::new(9, 0, 0)]);
    let judge = Judge::new(Settings { versions, ..Settings::new(Mode::Run) });
    let application = Application::new();
    let exit = application.run::<HostError>(&judge.launch(&[]), |_, _| panic!("there is no session"));
    assert_eq!(exit, Exit::INCOMPATIBLE);
    let events: Vec<_> = judge.events.try_iter().collect();
    assert!(events.iter().any(|event| matches!(event, Event::Rejected(_))), "{events:?}");
    assert!(!events.iter().any(|event| matches!(event, Event::Message(_))), "{events:?}");
}
