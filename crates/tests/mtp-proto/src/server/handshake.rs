//! Validation of handshakes, and the replies to them.

use super::{
    Application, Event, Mode, Output, Peer,
    connection::{Link, Stage},
    quote,
};
use crate::{ExecutionMode, Handshake, HandshakeKey, HostType, Message, Rule, Version, Versions};

/// The properties that all processes of an application share.
#[derive(Debug)]
pub(super) struct SharedProperties {
    pub(super) execution_id: String,
    architecture: String,
    framework: String,
    module_path: Option<String>,
    versions: Versions,
}

/// The violations of one handshake. The first violation that rejects the handshake is the reason.
struct Verdict<'a> {
    output: &'a mut Output,
    link: &'a Link,
    reason: Option<Rule>,
}

impl Verdict<'_> {
    fn warn(&mut self, rule: Rule, detail: String) {
        self.output.violation(rule, Some(self.link.id), detail);
    }

    fn reject(&mut self, rule: Rule, detail: String) {
        self.warn(rule, detail);
        self.reason.get_or_insert(rule);
    }
}

impl Application {
    /// Handles the first handshake of a connection.
    pub(super) fn handle_handshake(&mut self, link: &mut Link, handshake: Handshake, output: &mut Output) {
        let mut verdict = Verdict { output, link, reason: None };
        let version = self.judge(&handshake, &mut verdict);
        match (version, verdict.reason) {
            (Some(version), None) => {
                let host_type = handshake.host_type().unwrap_or(HostType::TestHost);
                let attempt = self.attempt(&handshake, &host_type);
                let peer = Peer { connection: link.id, handshake, version, host_type, attempt };
                link.stage = Stage::Open(Box::new(peer.clone()));
                output.events.push(Event::Connected(peer));
                output.reply(&self.answer(Some(version)));
            }
            (_, reason) => self.reject(link, reason.unwrap_or(Rule::NoCommonVersion), output),
        }
    }

    pub(super) fn reject(&self, link: &mut Link, reason: Rule, output: &mut Output) {
        link.stage = Stage::Rejected;
        output.events.push(Event::Rejected(reason));
        output.reply(&self.answer(None));
    }

    fn judge(&mut self, handshake: &Handshake, verdict: &mut Verdict<'_>) -> Option<Version> {
        if handshake.is_older_than_1_7() {
            let framework = handshake.framework().unwrap_or_default();
            let host = handshake.host_type().unwrap_or(HostType::TestHost);
            let detail = format!(
                "{host} of {} has no InstanceId: update the test framework (MSTest to 3.9, for example)",
                quote(framework)
            );
            verdict.reject(Rule::OldPlatform, detail);
        }
        let mut required = |key: HandshakeKey| {
            let value = handshake.get(key).filter(|value| !value.is_empty());
            if value.is_none() {
                verdict.reject(Rule::HandshakeProperty, format!("{key} is missing"));
            }
            value.unwrap_or_default().to_owned()
        };
        let common = SharedProperties {
            execution_id: required(HandshakeKey::EXECUTION_ID),
            architecture: required(HandshakeKey::ARCHITECTURE),
            framework: required(HandshakeKey::FRAMEWORK),
            module_path: handshake.module_path().map(str::to_owned),
            versions: Versions::parse(&required(HandshakeKey::SUPPORTED_VERSIONS)),
        };
        required(HandshakeKey::HOST_TYPE);
        let version = self.settings.versions.highest_common(&common.versions);
        if version.is_none()
            && handshake.get(HandshakeKey::SUPPORTED_VERSIONS).is_some_and(|list| !list.is_empty())
        {
            let theirs = quote(handshake.get(HandshakeKey::SUPPORTED_VERSIONS).unwrap_or_default());
            let detail = format!(
                "the application supports {theirs}, the server supports {:?}",
                self.settings.versions.to_string()
            );
            verdict.reject(Rule::NoCommonVersion, detail);
        }
        self.judge_mode(handshake, verdict);
        if let Some(HostType::Other(other)) = handshake.host_type().filter(|host| !host.as_str().is_empty()) {
            verdict.warn(Rule::HostType, format!("got {}", quote(&other)));
        }
        if handshake.module_path().is_none() {
            verdict.warn(Rule::ModulePath, "ModulePath is missing".to_owned());
        }
        if handshake.attempt_number().is_none()
            && let Some(attempt) = handshake.get(HandshakeKey::ATTEMPT_NUMBER)
        {
            verdict.warn(Rule::AttemptNumber, format!("got {}", quote(attempt)));
        }
        match &self.common {
            Some(first) => compare(first, &common, verdict),
            None if verdict.reason.is_none() => self.common = Some(common),
            None => {}
        }
        version
    }

    fn judge_mode(&self, handshake: &Handshake, verdict: &mut Verdict<'_>) {
        let expected = match self.settings.mode {
            Mode::Run => ExecutionMode::Run,
            Mode::Discover => ExecutionMode::Discover,
            Mode::Help => ExecutionMode::Help,
        };
        // Hosts before MTP 2.3 do not send their mode.
        if let Some(mode) = handshake.execution_mode().filter(|mode| *mode != expected) {
            let detail = format!("got {}, expected {:?}", quote(mode.as_str()), expected.as_str());
            verdict.reject(Rule::ExecutionMode, detail);
        }
    }

    /// Returns the attempt of a host, and records its InstanceId.
    fn attempt(&mut self, handshake: &Handshake, host_type: &HostType) -> Option<u32> {
        let instance = handshake.instance_id().unwrap_or_default();
        let known = self.instances.get(instance).copied().flatten();
        let attempt = if *host_type == HostType::TestHost {
            self.has_test_host = true;
            let said = handshake.attempt_number().or(known);
            Some(said.unwrap_or_else(|| self.last_attempt.saturating_add(1)))
        } else {
            None
        };
        if let Some(attempt) = attempt {
            self.last_attempt = self.last_attempt.max(attempt);
        }
        self.instances.insert(instance.to_owned(), attempt.or(known));
        attempt
    }

    pub(super) fn answer(&self, version: Option<Version>) -> Message {
        let mut reply = self.settings.identity.clone();
        let chosen = version.map(|version| version.to_string()).unwrap_or_default();
        reply.set(HandshakeKey::SUPPORTED_VERSIONS, chosen);
        if version.is_some() && self.settings.is_ide {
            reply.set(HandshakeKey::IS_IDE, "True");
        }
        if let Some(pipe) = &self.settings.control_pipe
            && version.is_some_and(|version| version >= Version::V1_4_0)
        {
            reply.set(HandshakeKey::SERVER_CONTROL_PIPE, pipe.as_str());
        }
        Message::Handshake(reply)
    }
}

fn compare(first: &SharedProperties, other: &SharedProperties, verdict: &mut Verdict<'_>) {
    let differ = |what: &str, a: &str, b: &str| {
        (a != b).then(|| format!("{what} is {}, but {} in the first handshake", quote(b), quote(a)))
    };
    let identity = [
        differ("ExecutionId", &first.execution_id, &other.execution_id),
        differ("Architecture", &first.architecture, &other.architecture),
        differ("Framework", &first.framework, &other.framework),
    ];
    for detail in identity.into_iter().flatten() {
        verdict.reject(Rule::HandshakeMismatch, detail);
    }
    let path = |common: &SharedProperties| common.module_path.clone().unwrap_or_default();
    let versions = |common: &SharedProperties| common.versions.to_string();
    let module = [
        differ("ModulePath", &path(first), &path(other)),
        differ("SupportedProtocolVersions", &versions(first), &versions(other)),
    ];
    for detail in module.into_iter().flatten() {
        verdict.warn(Rule::ModuleMismatch, detail);
    }
}
