package demo;

import java.util.function.IntUnaryOperator;

/** A program of which some lines run and some do not. What is to be expected of a line with code is behind it. */
public class Shop {
    private int stock;

    Shop(int stock) { Truth.in(); Truth.line(); this.stock = stock; Truth.out(); } // ran 2

    int sell(int count) {
        Truth.in(); Truth.line(); // ran 3
        if (Truth.line() && count > stock) { // ran 3
            Truth.line(); Truth.out(); return -1; // ran 1
        }
        if (Truth.line() && count < 0) { // ran 2
            throw new IllegalArgumentException("negative"); // missed
        }
        for (int i = 0; Truth.line() && i < count; i++) { // ran 2
            Truth.line(); stock--; // ran 2
        }
        Truth.line(); Truth.out(); return stock; // ran 2
    }

    void restock() {
        stock += 10; // missed
    } // missed

    static int twice(int number) {
        Truth.in(); Truth.line(); // ran 1
        IntUnaryOperator twice = x -> { Truth.in(); Truth.line(); Truth.out(); return 2 * x; }; int made = Truth.line() ? 1 : 0; // ran 3
        Truth.line(); number = twice.applyAsInt(twice.applyAsInt(number)); // ran 1
        Truth.line(); Truth.out(); return number * made; // ran 1
    }

    static IntUnaryOperator never() {
        return x -> x + 1; // missed
    }

    enum Kind { SMALL, LARGE } // missed

    static final class Name implements Comparable<Name> {
        final String text;

        Name(String text) { Truth.in(); Truth.line(); this.text = text; Truth.out(); } // ran 2

        @Override
        public int compareTo(Name other) {
            Truth.in(); Truth.line(); Truth.out(); return text.compareTo(other.text); // ran 1
        }
    }

    static final class Util {
        private Util() {}

        static int half(int number) {
            Truth.in(); Truth.line(); Truth.out(); return number / 2; // ran 1
        }
    }

    interface Greeter {
        String name();

        default String greet() {
            return "hello " + name(); // missed
        }
    }

    public static void main(String[] arguments) {
        Truth.in(); Truth.line(); Shop shop = new Shop(5); // ran 1
        Truth.line(); new Shop(0); // ran 1
        Truth.line(); shop.sell(2); // ran 1
        Truth.line(); shop.sell(3); // ran 1
        Truth.line(); shop.sell(1); // ran 1
        Truth.line(); twice(Util.half(8)); // ran 1
        Truth.line(); Comparable<Name> name = new Name("a"); // ran 1
        Truth.line(); name.compareTo(new Name("b")); // ran 1
        Truth.line(); Truth.out(); } // ran 1
}

class Unused { // missed
    int field = 1; // missed

    int get() {
        return field; // missed
    }
}
