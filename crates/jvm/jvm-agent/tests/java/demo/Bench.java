package demo;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/** What a call costs: processor time of the threads that call, so that other work on the machine does not count. */
public final class Bench {
    static int leaf(int x) {
        return x * 31 + 7;
    }

    static int calls(int count, int x) {
        for (int i = 0; i < count; i++) {
            x = leaf(x);
        }
        return x;
    }

    static volatile int sink;

    public static void main(String[] arguments) throws InterruptedException {
        int threads = Integer.parseInt(arguments[0]);
        int count = Integer.parseInt(arguments[1]);
        ThreadMXBean clock = ManagementFactory.getThreadMXBean();
        for (int i = 0; i < 20; i++) {
            sink = calls(count / 20, i);
        }
        double[] cost = new double[threads];
        long began = System.nanoTime();
        Thread[] all = new Thread[threads];
        for (int i = 0; i < threads; i++) {
            int number = i;
            all[i] = new Thread(() -> {
                double best = Double.MAX_VALUE;
                for (int round = 0; round < 5; round++) {
                    long before = clock.getCurrentThreadCpuTime();
                    sink = calls(count, number);
                    best = Math.min(best, (clock.getCurrentThreadCpuTime() - before) / (double) count);
                }
                cost[number] = best;
            });
            all[i].start();
        }
        for (Thread thread : all) {
            thread.join();
        }
        double seconds = (System.nanoTime() - began) / 1e9;
        StringBuilder line = new StringBuilder();
        for (double one : cost) {
            line.append(String.format("%.1f ", one));
        }
        System.out.printf("%sns a pair; %.2f million pairs a second%n", line, threads * 5.0 * count / seconds / 1e6);
    }
}
