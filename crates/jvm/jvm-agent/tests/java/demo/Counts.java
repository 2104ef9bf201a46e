package demo;

import java.util.ArrayList;
import java.util.List;
import java.util.function.IntUnaryOperator;

/** Calls whose number is known: `tests/it/counts.rs` has the formulas. Arguments: threads, rounds. */
public final class Counts {
    static final class Node {
        final Node next;

        Node(Node next) {
            this.next = next;
        }
    }

    static class Base {
        final int value;

        Base(int value) {
            this.value = value > 0 ? value : -value;
        }
    }

    static final class Derived extends Base {
        Derived(int value) {
            super(value % 2 == 0 ? value : twice(value));
        }
    }

    interface Shape {
        default int sides() {
            return 4;
        }
    }

    static int twice(int value) {
        return 2 * value;
    }

    static int fib(int n) {
        return n < 2 ? n : fib(n - 1) + fib(n - 2);
    }

    static int thrower(int n) {
        if (n % 3 == 0) {
            throw new IllegalStateException("three");
        }
        if (n % 3 == 1) {
            Object nothing = null;
            return nothing.hashCode();
        }
        return n;
    }

    static int catcher(int n) {
        try {
            return thrower(n);
        } catch (IllegalStateException thrown) {
            return -1;
        }
    }

    static int outer(int n) {
        try {
            return catcher(n);
        } catch (NullPointerException thrown) {
            return -2;
        }
    }

    static synchronized long loop(int n) {
        long sum = 0;
        for (int i = 0; i < n; i++) {
            switch (i % 4) {
                case 0: sum += i; break;
                case 1: sum -= 1; break;
                default: sum ^= i;
            }
        }
        return sum;
    }

    static long work(int rounds) {
        long sum = 0;
        Node list = null;
        IntUnaryOperator plus = x -> x + 1;
        Shape shape = new Shape() { };
        for (int i = 0; i < rounds; i++) {
            sum += fib(10);
            sum += outer(i);
            sum += loop(i % 10);
            list = new Node(i % 7 == 0 ? null : list);
            sum += new Derived(i).value;
            sum += plus.applyAsInt(i);
            sum += shape.sides();
        }
        return sum + (list == null ? 0 : 1);
    }

    public static void main(String[] arguments) throws InterruptedException {
        int threads = Integer.parseInt(arguments[0]);
        int rounds = Integer.parseInt(arguments[1]);
        List<Thread> all = new ArrayList<>();
        long[] sums = new long[threads];
        for (int i = 0; i < threads; i++) {
            int number = i;
            Thread thread = new Thread(() -> sums[number] = work(rounds), "worker-" + i);
            thread.start();
            all.add(thread);
        }
        long sum = 0;
        for (int i = 0; i < threads; i++) {
            all.get(i).join();
            sum += sums[i];
        }
        System.out.println("sum " + sum);
    }
}
