package demo;

import java.util.function.IntUnaryOperator;

/** Lines that run end with a plus, those that don't with a minus; of others nothing is said. */
public final class Lines {
    static class Base {
        Base(int value) {
            if (value < 0) { //+
                throw new IllegalArgumentException("negative"); //+
            }
        }
    }

    static class Derived extends Base {
        final int value;

        Derived(int value) {
            super( //+
                checked( //+
                    value));
            this.value = //+
                value;
        }
    }

    static int checked(int value) {
        return value == 100 //+
            ? fail() //-
            : value; //+
    }

    static int fail() {
        return Integer.parseInt("x"); //-
    }

    static int loops(int count) {
        int sum = 0; //+
        for (int i = 0; i < count; i++) { //+
            if (i == 3) { //+
                continue; //+
            }
            if (i > 100) { //+
                break; //-
            }
            sum += //+
                i;
        }
        do { //-
            sum--; //+
        } while (sum > 1000); //+
        return sum; //+
    }

    static int caught(int value) {
        int result = 0; //+
        try { //-
            result = 1; //+
            Integer.parseInt(value == 0 ? "none" : "1"); //+
            result = 2; //-
        } catch (NumberFormatException exception) { //+
            result += 10; //+
        } finally {
            result += 100; //+
        }
        return result; //+
    }

    static int chosen(String word, int number) {
        switch (word) { //+
            case "one":
                return 1; //-
            case "two":
                break; //+
            default:
                return 3; //-
        }
        switch (number) { //+
            case 1:
                number = 5; //+
            case 2:
                number++; //+
                break; //+
            case 3:
                number = 9; //-
            default:
        }
        return number; //+
    }

    static int lost(Object object) {
        int before = 1; //+
        synchronized (object) { //+
            before = object.hashCode(); //+
            before /= before - before; //+
            before = 2; //-
        }
        return before; //-
    }

    static final IntUnaryOperator TWICE = value -> { //+
        int twice = value * 2; //+
        return twice; //+
    };

    static final IntUnaryOperator NEVER = value -> //+
        value + 1; //-

    public static void main(String[] arguments) {
        int sum = loops(6) + caught(0) + chosen("two", 1); //+
        sum += new Derived(7).value; //+
        try {
            new Derived(-1); //+
            sum = 0; //-
        } catch (IllegalArgumentException expected) { //+
            sum++; //+
        }
        try {
            lost(new Object()); //+
        } catch (ArithmeticException expected) { //+
            sum++; //+
        }
        System.out.println(TWICE.applyAsInt(sum)); //+
    } //+
}
