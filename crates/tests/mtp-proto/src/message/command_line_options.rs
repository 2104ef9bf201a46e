//! Id 3: the command-line options of an application, the only message in help mode.

use crate::envelope::envelope;

envelope! {
    /// The command-line options of an application.
    pub struct CommandLineOptions {
        /// The path of the test application.
        1 "ModulePath" => module_path: String,
        /// The options. All known hosts sort them by name.
        2 "CommandLineOptionMessageList" => options: Vec<CommandLineOption>,
    }
}

envelope! {
    /// A command-line option.
    pub struct CommandLineOption {
        /// The name without `--`.
        1 "Name" => name: String,
        /// The description, possibly with several lines separated by CR LF.
        2 "Description" => description: String,
        /// Whether the option is hidden from help.
        3 "IsHidden" => is_hidden: bool,
        /// Whether the option belongs to the platform, not to an extension.
        4 "IsBuiltIn" => is_built_in: bool,
        /// The reason why the option is obsolete. MTP 2.1 and 2.2 only.
        5 "ObsolescenceMessage" => obsolescence_message: String,
        /// The id of the option's provider. Since MTP 2.5.
        6 "ProviderUid" => provider_uid: String,
        /// The minimum number of arguments. Since MTP 2.5.
        7 "MinimumArity" => minimum_arity: i32,
        /// The maximum number of arguments; `i32::MAX` means unlimited. Since MTP 2.5.
        8 "MaximumArity" => maximum_arity: i32,
    }
}
