//! What a Java virtual machine says of itself.

/// A Java virtual machine, by its performance counters. A text that it does not say is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Java {
    /// Its main class or its archive, with the arguments behind it (`sun.rt.javaCommand`).
    pub command: String,
    /// `java.version`, such as `17.0.15`. Machines before 9 do not say it here.
    pub version: String,
    /// `java.vm.version`, such as `17.0.15+6-Debian-1deb12u1`.
    pub vm_version: String,
    /// `java.vm.name`, such as `OpenJDK 64-Bit Server VM`.
    pub vm_name: String,
}

impl Java {
    /// The version of Java, else that of the machine.
    pub fn version(&self) -> Option<&str> {
        [&self.version, &self.vm_version].into_iter().map(String::as_str).find(|text| !text.is_empty())
    }

    /// Its main class without a module, or the name of its archive, with `.jar`. A path with blanks is cut at the first.
    pub fn main(&self) -> Option<&str> {
        let first = self.command.split(' ').next().unwrap_or_default();
        // The class of a module, or a path.
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
    }

    #[test]
    fn older_machines_say_their_own_version_only() {
        let java = Java { vm_version: "25.402-b06".into(), ..Java::default() };
        assert_eq!(java.version(), Some("25.402-b06"));
        assert_eq!(Java::default().version(), None);
    }
}
