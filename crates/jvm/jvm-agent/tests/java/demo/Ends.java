package demo;

/** Ends with a status of its own: `STATUS`. */
public final class Ends {
    static int times(int n) {
        return n == 0 ? 0 : 1 + times(n - 1);
    }

    public static void main(String[] arguments) {
        System.out.println(times(100));
        System.exit(Integer.parseInt(arguments[0]));
    }
}
