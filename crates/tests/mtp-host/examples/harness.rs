//! Tests with every outcome. As libtest: `cargo run -p runtap-mtp-host --example harness -- --list`. As a test
//! application: `runtap test target/debug/examples/harness`.

use std::process::ExitCode;
use std::time::Duration;

use runtap_mtp_host::harness::{Artifact, Failure, Outcome, Test};

mod math {
    pub(crate) fn adds() {
        assert_eq!("1".len() + 1, 2);
    }

    pub(crate) fn overflows() {
        assert_eq!(200_u8.wrapping_add(100), 255, "it wraps");
    }

    pub(crate) fn parses() -> Result<(), std::num::ParseIntError> {
        "seven".parse::<u8>().map(drop)
    }
}

fn takes_long() {
    std::thread::sleep(Duration::from_millis(20));
}

fn divides() {
    panic!("not implemented yet");
}

/// The `main` of the program.
pub fn main() -> ExitCode {
    runtap_mtp_host::tests!(
        math::adds,
        math::overflows,
        math::parses,
        takes_long,
        #[ignore = "not yet"]
        divides
    )
    .with(Test::new("io::writes", |context| {
        let path = std::env::temp_dir().join(format!("runtap-harness-{}.txt", std::process::id()));
        std::fs::write(&path, "made by a test").map_err(|error| error.to_string())?;
        context.say("first line");
        context.say("second line");
        context.attach(Artifact::new(path).display_name("a file"));
        Ok::<_, String>(())
    }))
    .with(Test::new("io::needs_a_tape", |_| Outcome::Skipped("there is no tape drive".into())))
    .with(
        Test::new("io::waits", |_| Outcome::TimedOut(Failure::new("no answer in 5 s")))
            .with_trait("slow", ""),
    )
    .main()
}
