//! Id 3: the command-line options of an application, its only message in help mode.

use crate::envelope::envelope;

envelope! {
    /// The command-line options of an application.
    pub struct CommandLineOptions {
        /// Path of the test application.
        1 "ModulePath" => module_path: String,
        /// The options, sorted by name by all hosts seen.
        2 "CommandLineOptionMessageList" => options: Vec<CommandLineOption>,
    }
}

envelope! {
    /// One option.
    pub struct CommandLineOption {
        /// Its name without `--`.
        1 "Name" => name: String,
        /// What it is for. May have several lines, with CR LF between them.
        2 "Description" => description: String,
        /// Whether help leaves it out.
        3 "IsHidden" => is_hidden: bool,
        /// Whether it is the platform's and not an extension's.
        4 "IsBuiltIn" => is_built_in: bool,
        /// Why not to use it. MTP 2.1 and 2.2 only.
        5 "ObsolescenceMessage" => obsolescence_message: String,
        /// Who provides it. From MTP 2.5 on.
        6 "ProviderUid" => provider_uid: String,
        /// How many arguments it takes at least. From MTP 2.5 on.
        7 "MinimumArity" => minimum_arity: i32,
        /// How many arguments it takes at most; `i32::MAX` is any number. From MTP 2.5 on.
        8 "MaximumArity" => maximum_arity: i32,
    }
}
