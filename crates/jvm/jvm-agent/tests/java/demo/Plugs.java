package demo;

import java.io.InputStream;
import java.lang.ref.WeakReference;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * Loads a class again and again, each time by a loader that knows nothing but java.*, in two variants whose methods have
 * different names, calls it, and drops it: `LOADERS CALLS`. All of them are unloaded.
 */
public final class Plugs {
    static final class Loader extends ClassLoader {
        Loader() {
            super(null);
        }

        Class<?> define(byte[] bytes) {
            return defineClass("demo.Plugs$Plug", bytes, 0, bytes.length);
        }
    }

    /** What is loaded. */
    public static final class Plug implements Runnable {
        int calls;

        static int workA(int n) {
            if (n < 0) {
                throw new IllegalArgumentException();
            }
            return n + 1;
        }

        @Override
        public void run() {
            calls = workA(calls);
            try {
                workA(-1);
            } catch (IllegalArgumentException error) {
                calls += 0;
            }
        }
    }

    static byte[] variant(byte[] bytes) {
        String text = new String(bytes, StandardCharsets.ISO_8859_1);
        return text.replace("workA", "workB").getBytes(StandardCharsets.ISO_8859_1);
    }

    static Class<?> use(byte[] bytes, int calls) throws Exception {
        Class<?> loaded = new Loader().define(bytes);
        Runnable plug = (Runnable) loaded.getConstructor().newInstance();
        for (int i = 0; i < calls; i++) {
            plug.run();
        }
        return loaded;
    }

    static int alive(List<WeakReference<Class<?>>> classes) {
        int alive = 0;
        for (WeakReference<Class<?>> one : classes) {
            alive += one.get() == null ? 0 : 1;
        }
        return alive;
    }

    public static void main(String[] arguments) throws Exception {
        int loaders = Integer.parseInt(arguments[0]), calls = Integer.parseInt(arguments[1]);
        byte[] first;
        try (InputStream file = Plugs.class.getResourceAsStream("Plugs$Plug.class")) {
            first = file.readAllBytes();
        }
        byte[] second = variant(first);
        List<WeakReference<Class<?>>> classes = new ArrayList<>();
        for (int i = 0; i < loaders; i++) {
            classes.add(new WeakReference<>(use(i % 2 == 0 ? first : second, calls)));
            if (i % 50 == 49) {
                System.gc();
            }
        }
        for (int i = 0; i < 100 && alive(classes) > 0; i++) {
            System.gc();
            Thread.sleep(10);
        }
        System.out.println("alive " + alive(classes));
    }
}
