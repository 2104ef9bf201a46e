package demo;

/** Calls until a line, or the end, comes on standard input. */
public final class Forever {
    static volatile long sink;

    static long leaf(long x) {
        return x * 31 + 7;
    }

    static long batch(long x) {
        for (int i = 0; i < 1000; i++) {
            x = leaf(x);
        }
        return x;
    }

    public static void main(String[] arguments) throws Exception {
        Thread worker = new Thread(() -> {
            long x = 1;
            while (!Thread.currentThread().isInterrupted()) {
                x = batch(x);
            }
            sink = x;
        });
        worker.start();
        System.out.println("ready");
        System.in.read();
        worker.interrupt();
        worker.join();
        System.out.println("done");
    }
}
