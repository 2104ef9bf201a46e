package demo;

import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.security.ProtectionDomain;
import java.util.Arrays;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;

/**
 * A Java agent that sees the bytes of each class before and after the other agent: the JVM asks transformers that can't
 * retransform first, and those that can in the order in which they came.
 */
public final class Watch {
    static final Map<String, byte[]> before = new ConcurrentHashMap<>();
    static final Map<String, Boolean> changed = new ConcurrentHashMap<>();

    static String key(ClassLoader loader, String name) {
        return name + "@" + System.identityHashCode(loader);
    }

    public static void premain(String options, Instrumentation instrumentation) {
        instrumentation.addTransformer(new ClassFileTransformer() {
            @Override
            public byte[] transform(ClassLoader loader, String name, Class<?> old, ProtectionDomain domain, byte[] bytes) {
                before.put(key(loader, name), bytes);
                return null;
            }
        }, false);
        instrumentation.addTransformer(new ClassFileTransformer() {
            @Override
            public byte[] transform(ClassLoader loader, String name, Class<?> old, ProtectionDomain domain, byte[] bytes) {
                byte[] original = before.remove(key(loader, name));
                if (original != null) {
                    changed.put(name, !Arrays.equals(original, bytes));
                }
                return null;
            }
        }, true);
    }

    public static void main(String[] arguments) throws Exception {
        Modules.main(arguments);
        Counts.main(new String[] {"1", "1"});
        TreeSet<String> names = new TreeSet<>();
        changed.forEach((name, is) -> {
            if (is) {
                names.add(name);
            }
        });
        System.out.println("same " + (changed.size() - names.size()));
        System.out.println("changed " + names);
    }
}
