package demo;

/** Threads one after the other, some at a time. Arguments: threads, at a time. */
public final class Threads {
    static int work(int n) {
        return n + 1;
    }

    public static void main(String[] arguments) throws InterruptedException {
        int threads = Integer.parseInt(arguments[0]);
        int width = Integer.parseInt(arguments[1]);
        Thread[] now = new Thread[width];
        for (int i = 0; i < threads; i += width) {
            for (int k = 0; k < width; k++) {
                int number = i + k;
                now[k] = new Thread(null, () -> work(number), "t" + number, 64 * 1024);
                now[k].start();
            }
            for (Thread thread : now) {
                thread.join();
            }
        }
        System.out.println("done");
    }
}
