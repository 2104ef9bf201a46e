//! Recordings that are damaged in any way: no panic, every line is shown, as many frames are checked as are shown, and what
//! comes before the damage does not depend on it.

mod transcript;

use proptest::prelude::*;
use runtap_mtp::transcript::Replay;
use runtap_mtp_proto::{Handshake, HandshakeKey, Message, SessionEvent, SessionEventType};
use runtap_transcript::{Located, Reader};
use transcript::{lint, rows};

/// A recording with a handshake, a session and its end.
fn recording() -> Vec<u8> {
    let mut handshake = Handshake::new();
    for (key, value) in
        [(0, "1"), (1, "X64"), (2, "n"), (4, "1.0.0"), (5, "TestHost"), (6, "/a"), (7, "e"), (8, "i")]
    {
        handshake.set(HandshakeKey(key), value);
    }
    let event = |kind| {
        let (session_uid, execution_id) = (Some("s".to_owned()), Some("e".to_owned()));
        Message::SessionEvent(SessionEvent { session_type: Some(kind), session_uid, execution_id })
    };
    let reply = Message::Handshake(Handshake::new().with(HandshakeKey::SUPPORTED_VERSIONS, "1.0.0"));
    let said = [
        ("h2s", Message::Handshake(handshake)),
        ("s2h", reply),
        ("h2s", event(SessionEventType::START)),
        ("s2h", Message::Void),
        ("h2s", event(SessionEventType::END)),
        ("s2h", Message::Void),
    ];
    let mut text =
        "{\"kind\":\"header\",\"t\":0,\"cmd\":[\"a\"]}\n{\"kind\":\"open\",\"t\":0,\"conn\":\"c\"}\n"
            .to_owned();
    for (dir, message) in said {
        let hex: Vec<_> = message.to_frame().unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
        let line = [
            "{\"kind\":\"frame\",\"t\":0,\"conn\":\"c\",\"dir\":\"",
            dir,
            "\",\"hex\":\"",
            &hex.concat(),
            "\"}\n",
        ];
        text += &line.concat();
    }
    text += "{\"kind\":\"close\",\"t\":0,\"conn\":\"c\"}\n{\"kind\":\"exit\",\"t\":0,\"code\":0}\n";
    text.into_bytes()
}

fn lines(bytes: &[u8]) -> Vec<Located> {
    Reader::new(bytes).map_while(Result::ok).collect()
}

#[test]
fn it_is_clean_as_it_is() {
    assert_eq!(transcript::broken(&lines(&recording())), [""; 0]);
}

proptest! {
    #[test]
    fn damage_is_shown_and_checked_alike(
        damage in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(b"0123456789abcdef,\"}\n{c".to_vec())), 0..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = recording();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(cut.index(bytes.len() + 1));
        let lines = lines(&bytes);
        let (shown, inspector) = rows(&lines);
        prop_assert_eq!(shown.len(), lines.len());
        let (summary, findings) = lint(&lines);
        prop_assert_eq!((summary.frames, summary.connections), (inspector.frames(), inspector.connections()));
        prop_assert_eq!(findings.len() as u64, summary.errors + summary.warnings);
        let mut replay = Replay::new();
        for located in lines {
            replay.take(located).unwrap();
        }
        replay.mode();
    }

    #[test]
    fn a_prefix_is_shown_as_the_whole_begins(cut in any::<prop::sample::Index>()) {
        let whole = recording();
        let (all, _) = rows(&lines(&whole));
        let (some, _) = rows(&lines(&whole[..cut.index(whole.len())]));
        prop_assert_eq!(&all[..some.len()], &some[..]);
    }
}
