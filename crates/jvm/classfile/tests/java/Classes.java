import java.io.*;
import java.net.URI;
import java.nio.file.*;
import java.util.*;
import java.util.stream.*;

/** Writes the class files of this JDK's modules (or of those named): the path in jrt:/, the length in four bytes, the bytes. */
public class Classes {
    public static void main(String[] arguments) throws IOException {
        Path modules = FileSystems.getFileSystem(URI.create("jrt:/")).getPath("/modules");
        Set<String> wanted = new HashSet<>(Arrays.asList(arguments).subList(1, arguments.length));
        try (DataOutputStream out = new DataOutputStream(new BufferedOutputStream(new FileOutputStream(arguments[0])));
                Stream<Path> files = Files.walk(modules)) {
            for (Path file : (Iterable<Path>) files.sorted()::iterator) {
                if (!file.toString().endsWith(".class")) continue;
                if (!wanted.isEmpty() && !wanted.contains(file.getName(1).toString())) continue;
                byte[] bytes = Files.readAllBytes(file);
                out.writeUTF(modules.relativize(file).toString());
                out.writeInt(bytes.length);
                out.write(bytes);
            }
        }
    }
}
