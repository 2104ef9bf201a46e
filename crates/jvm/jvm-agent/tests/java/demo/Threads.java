package demo;

import java.lang.reflect.Method;

/** Virtual threads one after the other, some at a time (JDK 21 and later). Arguments: threads, at a time. */
public final class Threads {
    static int work(int n) {
        return n + 1;
    }

    public static void main(String[] arguments) throws Exception {
        int threads = Integer.parseInt(arguments[0]);
        int width = Integer.parseInt(arguments[1]);
        Method start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        Thread[] now = new Thread[width];
        for (int i = 0; i < threads; i += width) {
            for (int k = 0; k < width; k++) {
                int number = i + k;
                now[k] = (Thread) start.invoke(null, (Runnable) () -> work(number));
            }
            for (Thread thread : now) {
                thread.join();
            }
        }
        System.out.println("done");
    }
}
