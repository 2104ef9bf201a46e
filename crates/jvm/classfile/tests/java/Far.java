import java.lang.reflect.Method;
import java.nio.file.*;

/** Defines a class from a file, calls `of` with some numbers and prints what comes back. */
public class Far extends ClassLoader {
    public static void main(String[] arguments) throws Exception {
        byte[] bytes = Files.readAllBytes(Paths.get(arguments[0]));
        Class<?> made = new Far().defineClass(null, bytes, 0, bytes.length);
        Method of = made.getMethod("of", int.class, Object.class);
        for (int i = 1; i < arguments.length; i++) {
            System.out.println(of.invoke(null, Integer.parseInt(arguments[i]), "object"));
        }
        Recorder.report();
    }
}
