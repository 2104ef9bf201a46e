//! Descriptions of messages, field by field: for the lines of a transcript, for display, and for comparison.
//!
//! Bit sets, ids and codes are hexadecimal texts; all other values are as in the protocol. Environment variables may contain
//! secrets: see [`Described::masked`].

use runtap_diag_proto::tap::{Piece, PieceKind, Side, Tap};
use runtap_diag_proto::{
    Command, DecodeError, EnvironmentDecoder, ErrorReply, EventFilter, Format, HEADER_LEN, Provider, Reply,
    Request, RequestError, SessionConfig, UserEventsConfig, Verbatim,
};
use runtap_transcript::{Decoded, Direction, Field, Fields, Frame, Protocol, to_hex};
use runtap_wire::Reader;
use serde_json::{Value, json};

/// Creates a field.
pub fn field(name: &str, value: impl Into<Value>) -> (String, Value) {
    (name.to_owned(), value.into())
}

/// The Diagnostic IPC Protocol in transcripts.
#[derive(Debug, Clone, Copy, Default)]
pub struct DiagnosticIpc {
    /// Whether to show the values of environment variables, which may be secrets.
    pub shows_values: bool,
}

impl Protocol for DiagnosticIpc {
    const NAME: &'static str = "diagnostic-ipc";
    /// From the client to the runtime, and back.
    const DIRECTIONS: [&'static str; 2] = ["c2r", "r2c"];
    type Connection = Dissector;

    fn decode(&self, connection: &mut Dissector, from: Direction, frame: &Frame) -> Vec<Decoded> {
        let bytes = frame.hex.as_deref().unwrap_or_default();
        let pieces = connection.handle(side_of(from), bytes);
        if pieces.is_empty() {
            let bytes = Some(bytes.len() as u64);
            return vec![Decoded {
                kind: "part".to_owned(),
                bytes,
                is_undecoded: true,
                ..Decoded::default()
            }];
        }
        let descriptors = frame.more.get("descriptors").map(|it| field("descriptors", it.clone()));
        let decoded = |(mut described, piece): (Described, Piece)| {
            described.fields.extend(descriptors.clone());
            self.decoded(described, &piece)
        };
        pieces.into_iter().map(decoded).collect()
    }

    fn end(&self, connection: &mut Dissector, from: Direction) -> Vec<Decoded> {
        let left = connection.end(side_of(from));
        left.into_iter().map(|(described, piece)| self.decoded(described, &piece)).collect()
    }

    /// Masks the environment variables that were passed to a command.
    fn mask_header(&self, fields: &mut Fields) {
        for (name, value) in fields.iter_mut().filter(|_| !self.shows_values) {
            if let (true, Some(members)) = (name == "env", value.as_object_mut()) {
                members.values_mut().for_each(|value| *value = Described::MASK.into());
            }
        }
    }
}

impl DiagnosticIpc {
    fn decoded(self, described: Described, piece: &Piece) -> Decoded {
        let described = if self.shows_values { described } else { described.masked() };
        Decoded {
            kind: described.kind.to_owned(),
            id: described.id.map(i64::from),
            name: described.name.map(str::to_owned),
            bytes: Some(piece.bytes().len() as u64),
            fields: Field::numbered(described.fields),
            is_undecoded: described.kind == "other",
            ..Decoded::default()
        }
    }
}

/// Returns the direction in which a side sends.
pub(crate) fn direction_of(side: Side) -> Direction {
    match side {
        Side::Client => Direction::FromClient,
        Side::Runtime => Direction::FromServer,
    }
}

/// Returns the side that sends in a direction.
pub(crate) fn side_of(direction: Direction) -> Side {
    match direction {
        Direction::FromClient => Side::Client,
        Direction::FromServer => Side::Runtime,
    }
}

/// A piece of a connection, decoded.
#[derive(Debug, Clone, PartialEq)]
pub struct Described {
    /// The kind: `request`, `reply`, `advertise`, `descriptor`, `variables`, `stream` or `other`.
    pub kind: &'static str,
    /// The number of the command.
    pub id: Option<u16>,
    /// The name of the command, if known.
    pub name: Option<&'static str>,
    /// The decoded fields.
    pub fields: Fields,
}

impl Described {
    /// The replacement for a masked value.
    pub(crate) const MASK: &str = "***";

    /// Describes a piece, given the request on its connection and the decoding error of its side.
    pub fn of(piece: &Piece, request: Option<&Request>, error: Option<&DecodeError>) -> Self {
        let plain = |kind, name: &'static str, fields| Self { kind, id: None, name: Some(name), fields };
        match &piece.kind {
            PieceKind::Advertise(advertise) => plain(
                "advertise",
                "Advertise",
                vec![
                    field("process_id", advertise.process_id),
                    field("runtime_cookie", advertise.runtime_cookie.to_string()),
                ],
            ),
            PieceKind::Request(message) => Self::message("request", message, request_fields(message)),
            PieceKind::Reply(message) => Self::message("reply", message, reply_fields(message, request)),
            PieceKind::Descriptor => plain("descriptor", "Descriptor", Vec::new()),
            PieceKind::Variables => plain("variables", "Variables", Vec::new()),
            PieceKind::Stream => plain("stream", "Stream", Vec::new()),
            _ => {
                let why = error.map(|error| field("error", error.to_string()));
                Self { kind: "other", id: None, name: None, fields: why.into_iter().collect() }
            }
        }
    }

    fn message(kind: &'static str, message: &Verbatim, fields: Fields) -> Self {
        let command = message.command();
        Self { kind, id: Some(command.0), name: command.name(), fields }
    }

    /// Returns the fields that a transcript stores in addition to the bytes: without the values of variables.
    pub(super) fn fields_to_keep(mut self) -> Fields {
        let sets = self.sets_variable();
        self.fields.retain(|(name, _)| !(sets && name == "value"));
        self.fields
    }

    /// Masks the values of environment variables.
    #[must_use]
    pub fn masked(mut self) -> Self {
        let (all, sets) = (self.kind == "variables", self.sets_variable());
        for (name, value) in &mut self.fields {
            if (all || sets && name == "value") && !value.is_null() {
                *value = Self::MASK.into();
            }
        }
        self
    }

    fn sets_variable(&self) -> bool {
        self.id == Some(Command::SET_ENVIRONMENT_VARIABLE.0)
    }
}

fn hex(number: u64) -> Value {
    format!("{number:#x}").into()
}

/// Returns the fields of a request, or the reason why it can't be decoded.
fn request_fields(message: &Verbatim) -> Fields {
    match message.to_request() {
        Ok(request) => of_request(&request),
        Err(error) => {
            let payload = message.payload().len();
            vec![field("error", error_text(&error)), field("payload_bytes", payload)]
        }
    }
}

fn error_text(error: &RequestError) -> String {
    error.to_string()
}

/// Returns the fields of a request.
pub(crate) fn of_request(request: &Request) -> Fields {
    match request {
        Request::CollectTracing { config, .. } => session(config),
        Request::CollectUserEvents { config, .. } => user_events(config),
        Request::StopTracing(id) => vec![field("session_id", hex(id.0))],
        Request::GenerateCoreDump { dump, .. } => vec![
            field("path", dump.path.as_str()),
            field("type", dump.kind.name().map_or_else(|| hex(u64::from(dump.kind.0)), Value::from)),
            field("flags", hex(u64::from(dump.flags.0))),
        ],
        Request::AttachProfiler(profiler) => vec![
            field("timeout_ms", profiler.timeout_ms),
            field("class_id", profiler.class_id.to_string()),
            field("path", profiler.path.as_str()),
            field("client_data", to_hex(&profiler.client_data)),
        ],
        Request::StartupProfiler(profiler) => {
            vec![field("class_id", profiler.class_id.to_string()), field("path", profiler.path.as_str())]
        }
        Request::SetEnvironmentVariable { name, value } => {
            vec![field("name", name.as_str()), field("value", value.clone())]
        }
        Request::EnablePerfMap(kind) => vec![field("type", kind.name())],
        Request::ApplyStartupHook { path } => vec![field("path", path.as_str())],
        // Requests without payload.
        _ => Vec::new(),
    }
}

fn session(config: &SessionConfig) -> Fields {
    vec![
        field("buffer_mb", config.buffer_mb),
        field("format", if config.format == Format::NetPerf { "netperf" } else { "nettrace" }),
        field("rundown_keyword", hex(config.rundown_keyword)),
        field("stackwalk", config.stackwalk),
        field("buffering", config.buffering.name()),
        field("providers", config.providers.iter().map(provider).collect::<Vec<_>>()),
    ]
}

fn user_events(config: &UserEventsConfig) -> Fields {
    let providers = config.providers.iter().map(|it| {
        let mut value = provider(&it.provider);
        let sets = it.tracepoints.sets.iter().map(|set| json!({ "name": set.name, "ids": set.ids }));
        if let Some(members) = value.as_object_mut() {
            let tracepoints = json!({ "default": it.tracepoints.default, "sets": sets.collect::<Vec<_>>() });
            members.insert("tracepoints".to_owned(), tracepoints);
        }
        value
    });
    vec![
        field("session_type", "user_events"),
        field("rundown_keyword", hex(config.rundown_keyword)),
        field("providers", providers.collect::<Vec<_>>()),
    ]
}

fn provider(provider: &Provider) -> Value {
    let mut value = json!({
        "name": provider.name,
        "keywords": hex(provider.keywords),
        "level": provider.level.number(),
    });
    if let Some(members) = value.as_object_mut() {
        members.extend(provider.arguments.as_ref().map(|it| ("arguments".to_owned(), it.as_str().into())));
        let filter = provider.filter.as_ref();
        members.extend(filter.map(|EventFilter { enable, ids }| {
            ("filter".to_owned(), json!({ "enable": enable, "ids": ids }))
        }));
    }
    value
}

/// Returns the fields of a reply. If the request is unknown, only errors can be decoded.
fn reply_fields(message: &Verbatim, request: Option<&Request>) -> Fields {
    let any_request = Request::DisablePerfMap;
    let request = match request {
        Some(request) => request,
        None if message.command() == Command::ERROR => &any_request,
        None => return vec![field("payload_bytes", message.payload().len())],
    };
    match message.to_reply(request) {
        Ok(Ok(reply)) => of_reply(message, &reply),
        Ok(Err(error)) => of_refusal(&error),
        Err(error) => {
            vec![field("error", error.to_string()), field("payload_bytes", message.payload().len())]
        }
    }
}

fn of_reply(message: &Verbatim, reply: &Reply) -> Fields {
    match reply {
        Reply::Environment(_) => {
            let size = Reader::new(message.payload()).u32("environment size").unwrap_or_default();
            vec![field("continuation_bytes", size)]
        }
        reply => of_answer(reply),
    }
}

/// Returns the fields of a reply.
pub(crate) fn of_answer(reply: &Reply) -> Fields {
    match reply {
        Reply::ProcessInfo(info) => {
            let mut fields = vec![
                field("process_id", info.process_id),
                field("runtime_cookie", info.runtime_cookie.to_string()),
                field("command_line", info.command_line.as_str()),
                field("os", info.os.as_str()),
                field("arch", info.arch.as_str()),
            ];
            let later = [
                ("entry_assembly", &info.entry_assembly),
                ("runtime_version", &info.runtime_version),
                ("portable_rid", &info.portable_rid),
            ];
            let present = later.into_iter().filter_map(|(name, text)| Some(field(name, text.clone()?)));
            fields.extend(present);
            fields
        }
        Reply::SessionStarted(id) | Reply::SessionStopped(id) => vec![field("session_id", hex(id.0))],
        Reply::Environment(variables) => variables
            .iter()
            .map(|variable| (variable.name().to_owned(), variable.value().map_or(Value::Null, Value::from)))
            .collect(),
        _ => vec![field("hresult", "0x00000000")],
    }
}

/// Returns the fields of an error.
pub(crate) fn of_refusal(error: &ErrorReply) -> Fields {
    let ErrorReply { hresult, message } = error;
    let mut fields = vec![field("hresult", format!("{:#010x}", hresult.0))];
    fields.extend(hresult.name().map(|name| field("hresult_name", name)));
    fields.extend(hresult.meaning().map(|meaning| field("meaning", meaning)));
    fields.extend(message.as_ref().map(|message| field("message", message.as_str())));
    fields
}

/// Decodes a recorded connection piece by piece.
#[derive(Debug, Default)]
pub struct Dissector {
    tap: Option<Tap>,
    environment: Option<EnvironmentDecoder>,
}

impl Dissector {
    /// Adds bytes that one side has sent. Returns the pieces that they complete, with their descriptions.
    pub fn handle(&mut self, from: Side, bytes: &[u8]) -> Vec<(Described, Piece)> {
        // Only a runtime that has connected to a port sends first.
        let is_port = from == Side::Runtime;
        let tap = self.tap.get_or_insert_with(|| if is_port { Tap::for_port() } else { Tap::new() });
        tap.handle_bytes(from, bytes);
        self.pieces(from)
    }

    /// Handles the end of one side. Returns the pieces that were incomplete.
    pub fn end(&mut self, from: Side) -> Vec<(Described, Piece)> {
        let Some(tap) = &mut self.tap else { return Vec::new() };
        tap.handle_eof(from);
        self.pieces(from)
    }

    /// Returns the request on the connection, if known.
    pub fn request(&self) -> Option<&Request> {
        self.tap.as_ref().and_then(Tap::request)
    }

    fn pieces(&mut self, from: Side) -> Vec<(Described, Piece)> {
        let Self { tap, environment } = self;
        let Some(tap) = tap else { return Vec::new() };
        let pieces: Vec<Piece> = std::iter::from_fn(|| tap.poll_transmit()).collect();
        let describe = |piece: Piece| {
            let mut described = Described::of(&piece, tap.request(), tap.error(from));
            match &piece.kind {
                PieceKind::Reply(message) if tap.request() == Some(&Request::ProcessEnvironment) => {
                    let mut reader = Reader::at(message.payload(), HEADER_LEN as u64);
                    *environment = EnvironmentDecoder::from_reply(&mut reader).ok();
                }
                PieceKind::Variables => described.fields = variables(environment.as_mut(), piece.bytes()),
                _ => {}
            }
            (described, piece)
        };
        pieces.into_iter().map(describe).collect()
    }
}

/// Returns the variables that these bytes complete.
fn variables(decoder: Option<&mut EnvironmentDecoder>, bytes: &[u8]) -> Fields {
    let Some(decoder) = decoder else { return Vec::new() };
    decoder.handle_bytes(bytes);
    let mut fields = Vec::new();
    loop {
        match decoder.poll_variable() {
            Ok(Some(variable)) => {
                let value = variable.value().map_or(Value::Null, Value::from);
                fields.push((variable.name().to_owned(), value));
            }
            Ok(None) => return fields,
            Err(error) => {
                fields.push(field("error", error.to_string()));
                return fields;
            }
        }
    }
}
