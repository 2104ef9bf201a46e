package demo;

import java.io.PrintStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.List;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;

/**
 * `walk LIST STEP OFFSET [JAR...]` writes the names of every STEPth class, from the OFFSETth one on, of all modules, or of the
 * jars that are named. `link LIST FILE` links these. FILE gets a line for each: `linked`, `unresolved` (a class that it needs is
 * not there), or the error, and its internal name. Only the second is run with all classes traced: it does nothing else.
 */
public final class Modules {
    /** Name and module, or "" for those of jars. */
    static TreeMap<String, String> named(List<String> jars) throws Exception {
        TreeMap<String, String> found = new TreeMap<>();
        for (String jar : jars) {
            try (ZipFile zip = new ZipFile(jar)) {
                zip.stream().map(ZipEntry::getName).filter(name -> !name.startsWith("META-INF/")).forEach(name -> add(found, name, ""));
            }
        }
        if (jars.isEmpty()) {
            Path root = FileSystems.getFileSystem(URI.create("jrt:/")).getPath("/modules");
            try (Stream<Path> all = Files.walk(root)) {
                for (Path path : all.filter(one -> one.getNameCount() > 2).collect(Collectors.toList())) {
                    add(found, path.subpath(2, path.getNameCount()).toString(), path.getName(1).toString());
                }
            }
        }
        return found;
    }

    static void add(TreeMap<String, String> found, String file, String module) {
        if (file.endsWith(".class") && !file.endsWith("-info.class")) {
            found.put(file.substring(0, file.length() - ".class".length()), module);
        }
    }

    static String link(String name, String module) {
        String binary = name.replace('/', '.');
        try {
            Class<?> found;
            if (module.isEmpty()) {
                found = Class.forName(binary, false, Modules.class.getClassLoader());
            } else {
                Module owner = ModuleLayer.boot().findModule(module).orElse(null);
                if (owner == null) {
                    return "absent";
                }
                found = Class.forName(owner, binary);
                if (found == null) {
                    return "unresolved";
                }
            }
            found.getDeclaredMethods();
            return "linked";
        } catch (VerifyError | ClassFormatError | IncompatibleClassChangeError error) {
            return error.toString();
        } catch (LinkageError | ClassNotFoundException error) {
            return "unresolved";
        }
    }

    static void walk(String file, int step, int offset, List<String> jars) throws Exception {
        int number = -offset;
        try (PrintStream out = new PrintStream(file)) {
            for (var one : named(jars).entrySet()) {
                if (number++ % step == 0) {
                    out.println(one.getValue() + " " + one.getKey());
                }
            }
        }
    }

    static void link(Path list, String file) throws Exception {
        TreeMap<String, Integer> sums = new TreeMap<>();
        StringBuilder results = new StringBuilder();
        for (String line : Files.readAllLines(list)) {
            int space = line.indexOf(' ');
            String name = line.substring(space + 1);
            String result = link(name, line.substring(0, space));
            results.append(result).append(' ').append(name).append('\n');
            sums.merge(result, 1, Integer::sum);
        }
        Files.write(Paths.get(file), results.toString().getBytes(StandardCharsets.UTF_8));
        System.out.println(sums);
    }

    public static void main(String[] words) throws Exception {
        if (words[0].equals("walk")) {
            walk(words[1], Integer.parseInt(words[2]), Integer.parseInt(words[3]), List.of(words).subList(4, words.length));
        } else {
            link(Paths.get(words[1]), words[2]);
        }
    }
}
