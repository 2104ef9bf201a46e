//! The formats that a file can have.

use runtap_sinks::Format;

/// The format of a file: the stream as the runtime sent it, or what is made of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileFormat {
    /// The stream as it was received.
    Nettrace,
    /// Written by a sink.
    Profile(Format),
}

impl From<Format> for FileFormat {
    fn from(format: Format) -> Self {
        Self::Profile(format)
    }
}

impl FileFormat {
    /// Every format, the stream first.
    pub fn all() -> impl Iterator<Item = Self> {
        std::iter::once(Self::Nettrace).chain(Format::ALL.map(Self::Profile))
    }

    /// The sink that writes it; `None` for the stream.
    pub fn sink(self) -> Option<Format> {
        match self {
            Self::Nettrace => None,
            Self::Profile(format) => Some(format),
        }
    }

    /// Whether one file can hold the threads of several processes. A stream is that of one runtime.
    pub fn holds_several_processes(self) -> bool {
        self.sink().is_some()
    }

    /// The name that users know it by.
    pub fn name(self) -> &'static str {
        self.sink().map_or("nettrace", Format::name)
    }

    /// What it is for, in a few words.
    pub fn about(self) -> &'static str {
        self.sink().map_or("The original event stream", Format::about)
    }

    /// What else it is called, by other tools.
    pub fn aliases(self) -> &'static [&'static str] {
        self.sink().map_or(&["NetTrace"], Format::aliases)
    }

    /// The end of the file's name, with the dot.
    pub fn extension(self) -> &'static str {
        self.sink().map_or(".nettrace", Format::extension)
    }
}
