package demo;

import java.io.FileInputStream;
import java.io.IOException;

/** Constructors that end by an exception of the constructor that they call. The argument is the number of rounds. */
public final class Constructors {
    static class Base {
        Base(int value) {
            work(value);
            if (value < 0) {
                throw new IllegalArgumentException("base");
            }
        }
    }

    static class Middle extends Base {
        Middle(int value) {
            super(argument(value));
        }

        Middle() {
            this(-2);
        }
    }

    static final class Lowest extends Middle {
        Lowest(int value) {
            super(value);
        }
    }

    /** Its superclass is not traced, and fails. */
    static final class Missing extends FileInputStream {
        Missing(String path) throws IOException {
            super(path(path));
        }
    }

    /** Its superclass is not traced. */
    static final class Fine extends RuntimeException {
        Fine(String text) {
            super(text);
        }
    }

    static final class Recursive extends IllegalStateException {
        final Recursive inner;

        Recursive(int depth) {
            super("depth " + depth);
            inner = depth > 0 ? new Recursive(depth - 1) : null;
        }
    }

    static int argument(int value) {
        if (value == 0) {
            throw new IllegalStateException("argument");
        }
        return value;
    }

    static String path(String path) {
        if (path.isEmpty()) {
            throw new IllegalStateException("path");
        }
        return path;
    }

    static void work(int value) {
        long end = System.nanoTime() + value * 1000L;
        while (System.nanoTime() < end) {
            Thread.yield();
        }
    }

    static int caught(Throwable thrown) {
        return thrown.getMessage().length();
    }

    static int round(int number) {
        int sum = 0;
        for (int value : new int[] {-1, 0, 1}) {
            try {
                new Lowest(value);
            } catch (RuntimeException expected) {
                sum += caught(expected);
            }
        }
        try {
            new Middle();
        } catch (IllegalArgumentException expected) {
            sum += caught(expected);
        }
        for (String path : new String[] {"/there/is/no/such/file", ""}) {
            try {
                new Missing(path).close();
            } catch (IOException | IllegalStateException expected) {
                sum += caught(expected);
            }
        }
        return sum + caught(new Fine("fine")) + caught(new Recursive(3));
    }

    public static void main(String[] arguments) {
        int sum = 0;
        for (int number = 0; number < Integer.parseInt(arguments[0]); number++) {
            sum += round(number);
        }
        System.out.println(sum);
    }
}
