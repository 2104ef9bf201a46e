import java.nio.file.*;
import java.util.*;

/** Links each class of a list (`java.base/java/lang/Object.class`, `-/a/B.class` for those of the class path), without initializing it, and tells which are refused. */
public class Link {
    public static void main(String[] arguments) throws Exception {
        int linked = 0, unresolved = 0;
        for (String line : Files.readAllLines(Paths.get(arguments[0]))) {
            int slash = line.indexOf('/');
            String name = line.substring(slash + 1, line.length() - ".class".length()).replace('/', '.');
            if (line.startsWith("-/")) {
                try {
                    Class.forName(name, false, Link.class.getClassLoader()).getDeclaredMethods();
                    linked++;
                } catch (VerifyError | ClassFormatError | IncompatibleClassChangeError error) {
                    System.out.println("refused: " + line + ": " + error);
                } catch (LinkageError error) {
                    unresolved++;
                }
                continue;
            }
            Module module = ModuleLayer.boot().findModule(line.substring(0, slash)).orElse(null);
            if (module == null) {
                System.out.println("no module: " + line);
                continue;
            }
            try {
                Class<?> found = Class.forName(module, name);
                if (found == null) {
                    System.out.println("not found: " + line);
                    continue;
                }
                found.getDeclaredMethods();
                linked++;
            } catch (VerifyError | ClassFormatError | IncompatibleClassChangeError error) {
                System.out.println("refused: " + line + ": " + error);
            } catch (LinkageError error) {
                // A type of a signature is in a module that is not here. The class itself was linked before.
                unresolved++;
            }
        }
        System.out.println("linked " + linked + " unresolved " + unresolved);
    }
}
