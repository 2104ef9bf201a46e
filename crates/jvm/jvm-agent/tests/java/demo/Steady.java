package demo;

import java.io.BufferedReader;
import java.io.InputStreamReader;

/**
 * A thread whose calls are traced beside one whose calls are not, both without a pause. On standard input: anything for the
 * longest time that each of them has stood still since it was last asked, and the batches of the traced one; the end ends it.
 */
public final class Steady {
    static volatile boolean over;
    static volatile long sink;

    /** What is traced. */
    static final class Traced {
        static long leaf(long x) {
            return x * 31 + 7;
        }

        static long batch(long x) {
            for (int i = 0; i < 200; i++) {
                x = leaf(x);
            }
            return x;
        }
    }

    /** What is not, and takes a little longer. */
    static long plain(long x) {
        for (int i = 0; i < 20_000; i++) {
            x = x * 31 + 7;
        }
        return x;
    }

    static final class Worker extends Thread {
        final boolean traced;
        volatile long longest;
        volatile long batches;
        volatile boolean asked;

        Worker(boolean traced) {
            this.traced = traced;
        }

        @Override
        public void run() {
            long x = 1;
            long last = System.nanoTime();
            while (!over) {
                x = traced ? Traced.batch(x) : plain(x);
                long now = System.nanoTime();
                if (asked) {
                    longest = 0;
                    batches = 0;
                    asked = false;
                }
                longest = Math.max(longest, now - last);
                batches++;
                last = now;
            }
            sink = x;
        }

        /** From now on. */
        void forget() throws InterruptedException {
            asked = true;
            while (asked) {
                Thread.sleep(1);
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        Worker traced = new Worker(true);
        Worker plain = new Worker(false);
        traced.start();
        plain.start();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            long batches = traced.batches;
            // It goes on: what has stood still until now is part of the answer.
            while (traced.batches == batches && !traced.asked) {
                Thread.sleep(1);
            }
            System.out.println("gap " + traced.longest / 1000 + " " + plain.longest / 1000 + " " + traced.batches);
            traced.forget();
            plain.forget();
        }
        over = true;
        traced.join();
        plain.join();
        System.out.println("done");
    }
}
