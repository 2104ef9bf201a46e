//! Descriptions of Java virtual machines.

/// A Java virtual machine, described by its performance counters, or else by its command line and its installation. A missing
/// value is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Java {
    /// Whether the values come from performance counters.
    pub has_counters: bool,
    /// The main class or archive, followed by the arguments (`sun.rt.javaCommand`).
    pub command: String,
    /// `java.version`, such as `17.0.15`. Missing before Java 9.
    pub version: String,
    /// `java.vm.version`, such as `17.0.15+6-Debian-1deb12u1`.
    pub vm_version: String,
    /// `java.vm.name`, such as `OpenJDK 64-Bit Server VM`.
    pub vm_name: String,
    /// `java.vm.info`, such as `mixed mode, sharing`.
    pub vm_info: String,
    /// `java.vm.vendor`, such as `Eclipse Adoptium`.
    pub vendor: String,
    /// `java.home`, as seen by the process.
    pub home: String,
    /// The arguments of the virtual machine, including those in environment variables and argument files (`java.rt.vmArgs`), without
    /// the class path.
    pub arguments: String,
    /// The options in the file `.hotspotrc` (`java.rt.vmFlags`).
    pub flags: String,
}

/// The package of the launcher that compiles and runs a source file (`java Main.java`, JEP 330).
const SOURCE_LAUNCHER: &str = "jdk.compiler/com.sun.tools.javac.launcher.";

/// Options of the launcher whose value is the next argument (`java --help`).
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "elsewhere nothing else tells a machine"))]
const WITH_A_VALUE: [&str; 15] = [
    "-cp",
    "-classpath",
    "--class-path",
    "-p",
    "--module-path",
    "--upgrade-module-path",
    "--add-modules",
    "--add-exports",
    "--add-opens",
    "--add-reads",
    "--enable-native-access",
    "--limit-modules",
    "--patch-module",
    "--source",
    "--finalization",
];

impl Java {
    /// Returns the version of Java, or else that of the virtual machine.
    pub fn version(&self) -> Option<&str> {
        [&self.version, &self.vm_version].into_iter().map(String::as_str).find(|text| !text.is_empty())
    }

    /// Describes a virtual machine without counters by its command line, program first. The version is unknown.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "elsewhere nothing else tells a machine"))]
    pub(crate) fn of_command_line(words: &[String]) -> Self {
        let mut words = words.iter().skip(1).map(String::as_str);
        let mut main = None;
        while let Some(word) = words.next() {
            // The main class may follow a module and a slash, as in the counters.
            if let Some(module) = word.strip_prefix("--module=") {
                main = Some(module);
            } else if ["-jar", "-m", "--module"].contains(&word) {
                main = words.next();
            } else if WITH_A_VALUE.contains(&word) {
                words.next();
                continue;
            } else if word.starts_with(['-', '@']) {
                continue;
            } else {
                main = Some(word);
            }
            break;
        }
        let command: Vec<&str> = main.into_iter().chain(words).collect();
        Self { command: command.join(" "), ..Self::default() }
    }

    /// Returns the main class without its module, or the file name of the archive with `.jar`, or of the source file with `.java`. A
    /// path is truncated at its first space.
    pub fn main(&self) -> Option<&str> {
        let mut words = self.command.split(' ');
        let mut first = words.next().unwrap_or_default();
        if first.starts_with(SOURCE_LAUNCHER) {
            first = words.next().unwrap_or(first);
        }
        // The class of a module, or the file name of a path.
        let name = first.rsplit('/').next().unwrap_or(first);
        Some(name).filter(|name| !name.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_main_class_is_the_first_word() {
        let main = |command: &str| {
            let java = Java { command: command.to_owned(), ..Java::default() };
            java.main().map(str::to_owned)
        };
        assert_eq!(main("shop.Main --port 80").as_deref(), Some("shop.Main"));
        assert_eq!(main("/srv/my/app.jar -x").as_deref(), Some("app.jar"));
        assert_eq!(
            main("jdk.compiler/com.sun.tools.javac.Main A.java").as_deref(),
            Some("com.sun.tools.javac.Main")
        );
        assert_eq!(main(""), None);
        let launcher = "jdk.compiler/com.sun.tools.javac.launcher.Main";
        assert_eq!(main(&format!("{launcher} src/Main.java 80")).as_deref(), Some("Main.java"));
        assert_eq!(main(launcher).as_deref(), Some("com.sun.tools.javac.launcher.Main"));
    }

    #[test]
    fn the_main_class_follows_the_options() {
        let main = |words: &str| {
            let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
            Java::of_command_line(&words).command
        };
        assert_eq!(main("java -Xmx1g -cp a:b -Dx=y shop.Main --port 80"), "shop.Main --port 80");
        assert_eq!(main("/usr/bin/java -XX:-UsePerfData -jar /srv/app.jar -cp x"), "/srv/app.jar -cp x");
        assert_eq!(main("java --add-opens a/b=c -p mods -m shop/shop.Main x"), "shop/shop.Main x");
        assert_eq!(main("java @options --module=shop/shop.Main"), "shop/shop.Main");
        for nothing in ["java", "java -version", "java -jar", "java -cp x"] {
            assert_eq!(main(nothing), "");
        }
        assert_eq!(Java::of_command_line(&[]), Java::default());
    }

    #[test]
    fn older_machines_report_only_their_own_version() {
        let java = Java { vm_version: "25.402-b06".into(), ..Java::default() };
        assert_eq!(java.version(), Some("25.402-b06"));
        assert_eq!(Java::default().version(), None);
    }
}
