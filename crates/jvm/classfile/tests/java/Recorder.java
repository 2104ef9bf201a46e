import java.util.*;

/** Probes that check that entries and ends belong together, and count both. */
public class Recorder {
    static final ArrayDeque<Integer> open = new ArrayDeque<>();
    static final TreeMap<Integer, long[]> counts = new TreeMap<>();
    static final TreeSet<Integer> lines = new TreeSet<>();
    /** Constructors that an exception of the constructor that they call has ended: nothing tells of that. */
    static final TreeMap<Integer, Integer> silent = new TreeMap<>();
    static String wrong;
    static boolean overflown;

    static void count(int id, int kind) {
        counts.computeIfAbsent(id, any -> new long[4])[kind]++;
    }

    public static void entry(int id) {
        // A deep recursion ends in the probe or in the method: which of them is not known.
        if (overflown) return;
        if (open.size() > 500) {
            overflown = true;
            return;
        }
        count(id, 0);
        open.push(id);
    }

    public static void exit(int id, int line) {
        if (overflown) return;
        end(id, 1);
        lines.add(line);
    }

    public static void throwing(Throwable thrown, int id, int line) {
        if (overflown) return;
        Objects.requireNonNull(thrown);
        count(id, 2);
        lines.add(line);
    }

    public static void unwinding(Throwable thrown, int id) {
        if (overflown) return;
        Objects.requireNonNull(thrown);
        end(id, 3);
    }

    static void end(int id, int kind) {
        count(id, kind);
        while (open.contains(id) && open.peek() != id) silent.merge(open.poll(), 1, Integer::sum);
        Integer last = open.poll();
        if (last == null || last != id) wrong = wrong == null ? "end of " + id + " in " + last : wrong;
    }

    static void report() {
        System.out.println("wrong " + wrong);
        counts.forEach((id, n) -> System.out.println("method " + id + " " + n[0] + " " + n[1] + " " + n[2] + " " + n[3]));
        silent.forEach((id, n) -> System.out.println("silent " + id + " " + n));
        System.out.println("lines " + lines);
    }
}
