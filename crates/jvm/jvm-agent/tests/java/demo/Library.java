package demo;

import java.net.URI;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Writes the classes of java.* in java.base and java.management into a directory, as files. */
public final class Library {
    public static void main(String[] arguments) throws Exception {
        Path modules = FileSystems.getFileSystem(URI.create("jrt:/")).getPath("/modules");
        for (String module : List.of("java.base", "java.management")) {
            Path root = modules.resolve(module);
            List<Path> classes;
            try (Stream<Path> all = Files.walk(root.resolve("java"))) {
                classes = all.filter(Files::isRegularFile).collect(Collectors.toList());
            }
            for (Path one : classes) {
                Path to = Paths.get(arguments[0]).resolve(root.relativize(one).toString());
                Files.createDirectories(to.getParent());
                Files.write(to, Files.readAllBytes(one));
            }
        }
    }
}
