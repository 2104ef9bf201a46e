package demo;

/** Runs out of stack, again and again. Argument: how often. */
public final class Deep {
    static int depth;

    static int down(int n) {
        depth++;
        return down(n + 1) + 1;
    }

    static boolean once() {
        try {
            down(0);
            return false;
        } catch (StackOverflowError expected) {
            return true;
        }
    }

    public static void main(String[] arguments) {
        int found = 0;
        for (int i = 0; i < Integer.parseInt(arguments[0]); i++) {
            found += once() ? 1 : 0;
        }
        System.out.println(found + " times");
    }
}
