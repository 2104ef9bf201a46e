//! Plays a scenario line by line until a line ends the process or none is left.

use std::collections::BTreeMap;
use std::env;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use runtap_mtp_proto::host::Connection;
use runtap_mtp_proto::{ControlKind, Message};

use super::link::{Link, Reply, Spoil};
use super::message::{self, Platform, Speaker, state_of};
use super::options::Options;
use super::process::{self, IgnoredInterrupts};
use super::script::{Line, Node, Script};
use super::words::Arguments;
use super::{PlayError, bytes, duration};

/// The environment variable with the part of the scenario that a child plays.
const PART: &str = "SCRIPTED_HOST_PART";
/// The environment variables with the identity of a child.
const EXECUTION: &str = "TESTINGPLATFORM_DOTNETTEST_EXECUTIONID";
const ATTEMPT: &str = "TESTINGPLATFORM_DOTNETTEST_ATTEMPTNUMBER";
/// The environment variable that makes all messages reproducible: process id, `ExecutionId` and path are fixed.
const STEADY: &str = "SCRIPTED_HOST_STEADY";
/// Maximum duration of waiting, so that no process of a failed test remains.
const FOR_EVER: Duration = Duration::from_mins(1);

/// Whether to continue playing.
enum Next {
    On,
    Exit(u8),
}

/// Plays one part of a scenario.
pub(super) struct Player {
    options: Options,
    script: Script,
    part: String,
    platform: Platform,
    attempt: u32,
    execution: String,
    steady: bool,
    links: BTreeMap<String, Link>,
    next: Option<Spoil>,
    always: Spoil,
    children: Vec<Child>,
    cancelled: Option<Receiver<()>>,
    ignored_interrupts: Option<IgnoredInterrupts>,
    ignores_filter: bool,
    /// The values of `{n}`, innermost last.
    number: Vec<usize>,
}

impl Player {
    pub(super) fn new(options: Options, script: Script) -> Self {
        let variable = |name| env::var(name).ok().filter(|value| !value.is_empty());
        let attempt = variable(ATTEMPT).and_then(|number| number.parse().ok()).unwrap_or(1);
        let steady = variable(STEADY).is_some();
        let execution = if steady { Some("e1".to_owned()) } else { variable(EXECUTION) };
        Self {
            options,
            script,
            part: variable(PART).unwrap_or_default(),
            platform: Platform::V2_4,
            attempt,
            execution: execution.unwrap_or_else(|| format!("execution-{}", std::process::id())),
            steady,
            links: BTreeMap::new(),
            next: None,
            always: Spoil::default(),
            children: Vec::new(),
            cancelled: None,
            ignored_interrupts: None,
            ignores_filter: false,
            number: Vec::new(),
        }
    }

    pub(super) fn play(mut self) -> Result<u8, PlayError> {
        let nodes = self.script.parts.get(&self.part).cloned();
        let nodes = nodes.ok_or_else(|| format!("there is no part {}", self.part))?;
        match self.nodes(&nodes)? {
            Next::Exit(code) => Ok(code),
            Next::On => Ok(0),
        }
    }

    fn nodes(&mut self, nodes: &[Node]) -> Result<Next, PlayError> {
        for node in nodes {
            let next = match node {
                Node::Line(line) => self.line(line).map_err(|error| error.at(line.number))?,
                Node::Repeat(line, body) => {
                    let mut words = self.words(line);
                    let count = words.need("how often").map_err(|error| error.at(line.number))?;
                    let count: usize = count.parse().map_err(|_no_number| {
                        PlayError::from(format!("repeat {count}: no number")).at(line.number)
                    })?;
                    self.repeat(count, body)?
                }
                Node::If(line, then, otherwise) => {
                    let holds = self.holds(line).map_err(|error| error.at(line.number))?;
                    self.nodes(if holds { then } else { otherwise })?
                }
            };
            if let Next::Exit(_) = next {
                return Ok(next);
            }
        }
        Ok(Next::On)
    }

    fn repeat(&mut self, count: usize, body: &[Node]) -> Result<Next, PlayError> {
        for number in 1..=count {
            self.number.push(number);
            let next = self.nodes(body)?;
            self.number.pop();
            if let Next::Exit(_) = next {
                return Ok(next);
            }
        }
        Ok(Next::On)
    }

    fn words(&self, line: &Line) -> Arguments {
        Arguments::new(&line.words, |text| self.put_in(text))
    }

    fn put_in(&self, text: &str) -> String {
        let text = text.replace("{a}", &self.attempt.to_string());
        match self.number.last() {
            Some(number) if text.contains("{n}") => text.replace("{n}", &number.to_string()),
            _ => text,
        }
    }

    fn holds(&self, line: &Line) -> Result<bool, PlayError> {
        let mut words = self.words(line);
        let not = words.flag("not");
        let holds = match words.need("a condition")?.as_str() {
            mode @ ("run" | "discover" | "help") => self.options.mode == mode,
            "filtered" => self.options.uids.is_some(),
            "wants" => self.wants(&words.need("a test")?),
            "attempt" => words.need("a number")? == self.attempt.to_string(),
            other => return Err(format!("{other} is no condition").into()),
        };
        words.finish()?;
        Ok(holds != not)
    }

    fn wants(&self, uid: &str) -> bool {
        let uids = self.options.uids.as_ref().filter(|_| !self.ignores_filter);
        uids.is_none_or(|uids| uids.iter().any(|wanted| wanted == uid))
    }

    fn line(&mut self, line: &Line) -> Result<Next, PlayError> {
        let mut words = self.words(line);
        let link = self.put_in(&line.link);
        match line.verb.as_str() {
            "exit" => {
                let code = words.next().unwrap_or_else(|| "0".to_owned());
                let code = code.parse().map_err(|_no_number| format!("exit {code}: no exit code"))?;
                words.finish()?;
                return Ok(Next::Exit(code));
            }
            "next" => self.next = Some(self.always.clone().read(&mut words)?),
            "always" => self.always = self.always.clone().read(&mut words)?,
            "sleep" => thread::sleep(duration(&words.need("a duration")?)?),
            "hang" => thread::sleep(FOR_EVER),
            "stdout" => process::print(io::stdout(), words.need("a text")?.as_bytes()),
            "stderr" => process::print(io::stderr(), words.need("a text")?.as_bytes()),
            "flood" => process::flood(&mut words)?,
            "fork" => process::fork(&mut words, self.links.get(&link).map(|link| &link.stream))?,
            "kill" => process::kill(&words.need("a signal")?)?,
            "abort" => std::process::abort(),
            "platform" => self.platform = Platform::parse(&words.need("a version")?)?,
            "ignore" => self.ignore(&words.need("filter or sigint")?)?,
            "await" => self.wait_for(&words.need("cancel, sigint or close")?, &link)?,
            "spawn" => self.spawn(&mut words)?,
            "wait" => {
                for mut child in self.children.drain(..) {
                    child.wait()?;
                }
            }
            "connect" => drop(self.link(&link)?),
            "close" => drop(self.links.remove(&link)),
            "control" => self.control(&link)?,
            "expect" => self.expect(&link, &mut words)?,
            "raw" => {
                let bytes = bytes::bytes(&self.known(words.rest()))?;
                let spoil = self.spoil().at_once();
                self.link(&link)?.raw(bytes, &spoil)?;
            }
            "frame" => {
                let id = words.need("an id")?;
                let items =
                    [&["[".to_owned(), format!("i32:{id}")], &*words.rest(), &["]".to_owned()]].concat();
                let (bytes, spoil) = (bytes::bytes(&self.known(items))?, self.spoil());
                self.link(&link)?.raw(bytes, &spoil)?;
            }
            "reply" => drop(self.link(&link)?.reply()?),
            verb => return self.send_message(verb, &link, words),
        }
        words.finish()?;
        Ok(Next::On)
    }

    /// Replaces placeholders for the ids of this host in raw bytes.
    fn known(&self, items: Vec<String>) -> Vec<String> {
        let known = |item: String| match item.as_str() {
            "$execution" => format!("text:{}", self.execution),
            "$instance" => format!("text:{}", self.instance("a")),
            _ => item,
        };
        items.into_iter().map(known).collect()
    }

    fn spoil(&mut self) -> Spoil {
        self.next.take().unwrap_or_else(|| self.always.clone())
    }

    fn link(&mut self, name: &str) -> Result<&mut Link, PlayError> {
        if !self.links.contains_key(name) {
            let link = Link::connect(&self.options.pipe, Connection::data())?;
            self.links.insert(name.to_owned(), link);
        }
        self.links.get_mut(name).ok_or_else(|| "no such connection".into())
    }

    /// Returns the instance id, which is reproducible and distinguishes attempts and connections.
    fn instance(&self, link: &str) -> String {
        let part = if self.part.is_empty() { "main" } else { &self.part };
        format!("{part}-{link}-{}", self.attempt)
    }

    fn send_message(&mut self, verb: &str, link: &str, mut words: Arguments) -> Result<Next, PlayError> {
        let mut verb = verb;
        if state_of(verb).is_some() {
            let test = words.clone().next().unwrap_or_default();
            // Tests with a count are numbered; either all of them are selected or none.
            if !self.wants(&test) {
                return Ok(Next::On);
            }
            if self.options.mode == "discover" && !words.flag("even-listed") {
                if verb == "begin" {
                    return Ok(Next::On);
                }
                words = Arguments::of_test(&test, words.get("count"), words.get("name"));
                verb = "discover";
            }
        }
        let speaker = Speaker {
            pid: if self.steady { 4711 } else { std::process::id() },
            module: self.module(),
            execution: self.execution.clone(),
            instance: self.instance(link),
            mode: self.options.mode,
            attempt: self.attempt,
            platform: self.platform,
        };
        let message = match verb {
            "handshake" => message::handshake(&speaker, &mut words)?,
            _ => message::message(verb, &speaker, &mut words)?.ok_or_else(|| format!("{verb} is no verb"))?,
        };
        words.finish()?;
        let spoil = self.spoil();
        let reply = self.link(link)?.send(&message, &spoil)?;
        // Like hosts, unless the scenario does it.
        let rejected = matches!(reply, Reply::Rejected(_)) && !spoil.expects();
        Ok(if rejected { Next::Exit(12) } else { Next::On })
    }

    /// Returns the path of the program, which is that of the scenario without its extension.
    fn module(&self) -> String {
        let module = self.options.script.with_extension("");
        match module.file_name().filter(|_| self.steady) {
            Some(name) => format!("/tests/{}", name.display()),
            None => module.display().to_string(),
        }
    }

    fn ignore(&mut self, what: &str) -> Result<(), PlayError> {
        match what {
            "filter" => self.ignores_filter = true,
            "sigint" => self.ignored_interrupts = Some(IgnoredInterrupts::new()?),
            other => return Err(format!("ignore {other}: filter or sigint").into()),
        }
        Ok(())
    }

    fn wait_for(&mut self, what: &str, link: &str) -> Result<(), PlayError> {
        match what {
            "cancel" => {
                let cancelled = self.cancelled.as_ref().ok_or("there is no control pipe")?;
                cancelled
                    .recv_timeout(FOR_EVER)
                    .map_err(|_never| PlayError::reply("no cancellation was received".to_owned()))
            }
            "sigint" => {
                self.ignored_interrupts.as_mut().ok_or("only one that ignores it can wait for it")?.wait();
                Ok(())
            }
            "close" => match self.link(link)?.reply()? {
                Reply::Closed => Ok(()),
                other => Err(PlayError::reply(format!("the connection should be closed, but {other} came"))),
            },
            other => Err(format!("await {other}: cancel, sigint or close").into()),
        }
    }

    /// `spawn PART [attempt=N]`: starts a child with the same command line, which plays a part.
    fn spawn(&mut self, words: &mut Arguments) -> Result<(), PlayError> {
        let part = words.need("a part")?;
        let mut command = Command::new(env::current_exe()?);
        if env::var_os(EXECUTION).is_none() {
            command.env(EXECUTION, &self.execution);
        }
        command.arg(&self.options.script).args(&self.options.all).env(PART, part);
        if let Some(attempt) = words.get("attempt") {
            command.env(ATTEMPT, attempt);
        }
        self.children.push(command.spawn()?);
        Ok(())
    }

    /// Waits on the control pipe that the reply to the handshake specified.
    fn control(&mut self, link: &str) -> Result<(), PlayError> {
        let pipe = self.link(link)?.greeting.server_control_pipe().map(PathBuf::from);
        let pipe = pipe.ok_or_else(|| PlayError::reply("no control pipe was offered".to_owned()))?;
        let mut control = Link::connect(&pipe, Connection::control())?;
        let (send, receive) = mpsc::channel();
        self.cancelled = Some(receive);
        control.send(&Message::WaitForServerControl, &Spoil::default().at_once())?;
        thread::spawn(move || {
            // Closing the pipe cancels too.
            if let Ok(Reply::Control(Some(ControlKind::CANCEL_SESSION)) | Reply::Closed) = control.reply() {
                let _ = send.send(());
            }
        });
        Ok(())
    }

    /// `expect KEY=VALUE… !KEY…`: checks the reply to the handshake.
    fn expect(&mut self, link: &str, words: &mut Arguments) -> Result<(), PlayError> {
        let greeting = self.link(link)?.greeting.clone();
        for (name, value) in words.pairs() {
            let is = greeting.get(message::key(&name)?);
            if is != Some(value.as_str()) {
                return Err(PlayError::reply(format!("the server says {name}={is:?}, not {value:?}")));
            }
        }
        for name in words.absents() {
            if let Some(is) = greeting.get(message::key(&name)?) {
                return Err(PlayError::reply(format!("the server says {name}={is:?}")));
            }
        }
        Ok(())
    }
}
