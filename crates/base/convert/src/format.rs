//! Output formats.

use runtap_sinks::Format;

/// The format of an output file: the original stream, or a format converted from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileFormat {
    /// The original stream.
    Nettrace,
    /// A format written by a sink.
    Profile(Format),
}

impl From<Format> for FileFormat {
    fn from(format: Format) -> Self {
        Self::Profile(format)
    }
}

impl FileFormat {
    /// Returns all formats, starting with the stream.
    pub fn all() -> impl Iterator<Item = Self> {
        std::iter::once(Self::Nettrace).chain(Format::ALL.map(Self::Profile))
    }

    /// Returns the sink's format. `None` for the stream.
    pub fn sink(self) -> Option<Format> {
        match self {
            Self::Nettrace => None,
            Self::Profile(format) => Some(format),
        }
    }

    /// Returns whether one file can contain threads of several processes. A stream belongs to one runtime.
    pub fn holds_several_processes(self) -> bool {
        self.sink().is_some()
    }

    /// Returns the name of the format.
    pub fn name(self) -> &'static str {
        self.sink().map_or("nettrace", Format::name)
    }

    /// Describes the purpose of the format in a few words.
    pub fn about(self) -> &'static str {
        self.sink().map_or("The original event stream", Format::about)
    }

    /// Returns the names of the format in other tools.
    pub fn aliases(self) -> &'static [&'static str] {
        self.sink().map_or(&["NetTrace"], Format::aliases)
    }

    /// Returns the file name extension, including the dot.
    pub fn extension(self) -> &'static str {
        self.sink().map_or(".nettrace", Format::extension)
    }
}
