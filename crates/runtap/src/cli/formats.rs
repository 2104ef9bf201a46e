//! The options for the formats and content of converted files.

use std::path::Path;

use clap::{Args, ValueEnum};
use runtap_convert::{FileFormat, format_of};
use runtap_model::View;
use runtap_text::unsuitable;

use super::TextOrJson;
use super::choices::{choice_of, find, is_dotnet_view};
use runtap_text::units::parse_limit_megabytes;

/// The value of `--format` for verbs that write files: the format of the result or, as in dotnet-trace, a file format like `--to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnyFormat {
    Result(TextOrJson),
    File(FileFormat),
}

impl AnyFormat {
    /// Returns the formats of the files: the given formats, or the format for the extension of the output.
    pub(crate) fn files(to: &[FileFormat], format: Option<Self>, output: Option<&Path>) -> Vec<FileFormat> {
        let mut formats = to.to_vec();
        if let Some(Self::File(format)) = format {
            formats.push(format);
        }
        if formats.is_empty() {
            formats.extend(format_of(output));
        }
        formats
    }

    /// Returns the format of the result.
    pub(super) fn of_result(format: Option<Self>) -> TextOrJson {
        match format {
            Some(Self::Result(format)) => format,
            Some(Self::File(_)) | None => TextOrJson::Text,
        }
    }
}

impl std::str::FromStr for AnyFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let result = TextOrJson::from_str(text, true).map(Self::Result);
        result
            .ok()
            .or_else(|| find(text).map(Self::File))
            .ok_or_else(|| "write text or json (for the summary), or a file format as for --to".to_owned())
    }
}

/// The options for the content of converted files.
#[derive(Debug, Args, Clone, Copy, Default)]
pub(crate) struct Content {
    /// Samples or events to include in converted files
    #[arg(long, value_name = "VIEW", value_parser = choice_of::<View>(is_dotnet_view), help_heading = "Output")]
    pub(crate) view: Option<View>,
    /// Write speedscope files with open and close events instead of samples
    #[arg(long, help_heading = "Output")]
    pub(crate) evented: bool,
    /// Merge all threads in folded stacks and flame graphs
    #[arg(long, help_heading = "Output")]
    pub(crate) merge_threads: bool,
    /// Reproduce another program's conversion exactly, including its rounding and omissions
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["view", "evented"], help_heading = "Output")]
    pub(crate) compat: Option<Compat>,
    /// Maximum number of frames per stack; frames in the middle of deeper stacks are omitted; 0 for no limit [default: 1024]
    #[arg(long, value_name = "N", help_heading = "Output")]
    pub(crate) max_depth: Option<usize>,
    /// Approximate size at which a converted file is truncated; 0 for no limit [default: 1GB, or 32 times the size of the
    /// recording]
    #[arg(long, value_name = "MB", value_parser = parse_limit_megabytes, help_heading = "Output")]
    pub(crate) max_size: Option<u32>,
}

impl From<&Content> for runtap_convert::Content {
    fn from(content: &Content) -> Self {
        Self {
            view: content.view,
            evented: content.evented,
            merge_threads: content.merge_threads,
            dotnet_trace: content.compat == Some(Compat::DotnetTrace),
            max_depth: content.max_depth,
            max_size: content.max_size,
        }
    }
}

impl Content {
    /// Returns the content if all of these formats support it.
    ///
    /// # Errors
    /// A format does not support the content; the message names formats that do.
    pub(crate) fn checked(&self, formats: &[FileFormat]) -> Result<runtap_convert::Content, String> {
        let content = runtap_convert::Content::from(self);
        content.check(formats).map_err(unsuitable)?;
        Ok(content)
    }
}

/// A program whose conversion can be reproduced exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Compat {
    /// `dotnet-trace convert`
    DotnetTrace,
}
