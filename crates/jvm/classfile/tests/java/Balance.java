import java.io.Serializable;
import java.util.*;
import java.util.function.*;

/** What a tracer gets wrong first, each in a method of its own, on one thread. Recorder says what was traced. */
public class Balance {
    static int initialized = 1;

    interface Shape {
        double area();

        default String text() {
            return getClass().getSimpleName() + " " + area();
        }

        static Shape of(double side) {
            return () -> side * side;
        }
    }

    static class Base implements Serializable {
        final int number;

        Base(int number) {
            if (number < 0) throw new IllegalArgumentException("negative");
            this.number = number;
        }

        Base(String text) {
            this(text.isEmpty() ? 0 : Integer.parseInt(text));
        }
    }

    static class Derived extends Base implements Shape {
        private final List<String> names = new ArrayList<>();

        Derived(boolean big, Object other) {
            super(big ? new Base(new String("7")).number : other == null ? -1 : new int[] {1, 2, 3}.length);
            names.add("derived");
            if (number == 3) return;
            names.add("other");
        }

        @Override
        public double area() {
            return number;
        }
    }

    static int loop(int n) {
        do {
            n--;
            if (n == 3) continue;
            if (n == -5) return n;
        } while (n > 0);
        return n;
    }

    static String nested(int depth) {
        try {
            if (depth == 0) throw new IllegalStateException("bottom");
            return nested(depth - 1);
        } catch (IllegalArgumentException wrong) {
            return "never";
        } finally {
            initialized++;
        }
    }

    static int implicit(Object nothing) {
        try {
            return nothing.hashCode();
        } catch (NullPointerException expected) {
            return -1;
        }
    }

    static synchronized long locked(Object lock, long a, double b) {
        synchronized (lock) {
            if (a == 0) throw new ArithmeticException();
            return a + (long) b;
        }
    }

    static String choose(int which, String word) {
        switch (which) {
            case 0: return "zero";
            case 1: return "one";
            case 2: which += 5; break;
            default: return word;
        }
        switch (word) {
            case "a": return "A";
            case "b": which++;
            case "c": return "C" + which;
            default: throw new NoSuchElementException(word);
        }
    }

    static <T extends Throwable> void sneaky(Throwable thrown) throws T {
        @SuppressWarnings("unchecked")
        T any = (T) thrown;
        throw any;
    }

    static int attempt(IntSupplier supplier) {
        try {
            return supplier.getAsInt();
        } catch (Throwable thrown) {
            return -thrown.getClass().getSimpleName().length();
        }
    }

    static int deep(int depth) {
        return deep(depth + 1) + 1;
    }

    public static void main(String[] arguments) throws Exception {
        StringBuilder out = new StringBuilder();
        out.append(loop(6)).append(loop(-4)).append(implicit(null)).append(implicit(1));
        out.append(attempt(() -> nested(5).length())).append(initialized);
        out.append(locked(out, 5, 2.5)).append(attempt(() -> (int) locked("", 0, 1)));
        for (int which = 0; which < 4; which++) out.append(choose(which, which == 2 ? "b" : "x"));
        out.append(attempt(() -> choose(2, "none").length()));
        out.append(attempt(() -> new Derived(false, null).number)).append(new Derived(true, null).number);
        out.append(new Derived(false, "").names).append(new Derived(true, "").text()).append(Shape.of(3).area());
        out.append(attempt(() -> { Balance.<RuntimeException>sneaky(new java.io.IOException()); return 0; }));
        out.append(attempt(() -> new Base("-1").number)).append(new Base("").number);
        List<Supplier<String>> list = Arrays.asList(() -> "lambda", new Supplier<String>() {
            public String get() { return "anonymous"; }
        }, out::toString);
        out.append(list.get(0).get()).append(list.get(1).get()).append(list.get(2).get().length());
        System.out.println(out);
        System.out.println(attempt(() -> deep(0)));
        Recorder.report();
    }
}
