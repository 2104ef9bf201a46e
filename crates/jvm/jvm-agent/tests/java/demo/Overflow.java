package demo;

/** Runs out of stack, catches that, and goes on in the same call. Argument: how often. */
public final class Overflow {
    static int depth;

    static void down() {
        depth++;
        down();
    }

    static void left() {
        depth++;
        right();
    }

    static void right() {
        depth++;
        left();
    }

    static int after(int n) {
        return n + 1;
    }

    public static void main(String[] arguments) {
        int n = 0;
        for (int i = 0; i < Integer.parseInt(arguments[0]); i++) {
            try {
                if (i % 2 == 0) down(); else left();
            } catch (StackOverflowError expected) {
                n = after(n);
            }
            n = after(n);
        }
        System.out.println(n + " times");
    }
}
