/** Probes that only count. */
public class Ticks {
    static long entries, ends;

    public static void entry(int id) {
        entries++;
    }

    public static void exit(int id, int line) {
        ends++;
    }

    public static void unwinding(Throwable thrown, int id) {
        ends++;
    }
}
