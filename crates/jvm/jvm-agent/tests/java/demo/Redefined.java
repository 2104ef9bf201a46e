package demo;

import java.io.BufferedReader;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.lang.instrument.ClassDefinition;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.nio.charset.StandardCharsets;
import java.security.ProtectionDomain;

/** An agent that changes a class while it runs, as told on standard input, and the program of this class. */
public final class Redefined {
    /** Says which one it is. */
    static final class Body {
        static int calls;

        static String say(int times) {
            calls++;
            return times > 1 ? say(times - 1) : "first";
        }

        static void fail() {
            throw new IllegalStateException("first");
        }
    }

    static Instrumentation instrumentation;
    static volatile String instead;

    /** The constant "first" with another value of that length. */
    static byte[] with(byte[] bytes, String text) {
        byte[] from = "\u0001\u0000\u0005first".getBytes(StandardCharsets.ISO_8859_1);
        byte[] changed = bytes.clone();
        for (int at = 0; at + from.length <= bytes.length; at++) {
            int same = 0;
            while (same < from.length && bytes[at + same] == from[same]) {
                same++;
            }
            if (same == from.length) {
                System.arraycopy(text.getBytes(StandardCharsets.ISO_8859_1), 0, changed, at + 3, 5);
            }
        }
        return changed;
    }

    public static void premain(String options, Instrumentation given) {
        instrumentation = given;
        given.addTransformer(new ClassFileTransformer() {
            @Override
            public byte[] transform(ClassLoader loader, String name, Class<?> old, ProtectionDomain domain, byte[] bytes) {
                return instead != null && "demo/Redefined$Body".equals(name) ? with(bytes, instead) : null;
            }
        }, true);
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "call":
                    String said = Body.say(10);
                    try {
                        Body.fail();
                    } catch (IllegalStateException error) {
                        said += " " + error.getMessage();
                    }
                    System.out.println(said + " " + Body.calls);
                    break;
                case "retransform":
                    instead = words.length > 1 ? words[1] : null;
                    instrumentation.retransformClasses(Body.class);
                    System.out.println("retransformed");
                    break;
                case "redefine":
                    try (InputStream file = Redefined.class.getResourceAsStream("Redefined$Body.class")) {
                        byte[] bytes = with(file.readAllBytes(), words[1]);
                        instrumentation.redefineClasses(new ClassDefinition(Body.class, bytes));
                    }
                    System.out.println("redefined");
                    break;
                default:
                    throw new IllegalArgumentException(line);
            }
        }
        System.out.println("done");
    }
}
