package demo;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;

/** Virtual threads that all are in a call at the same time (JDK 21 and later). Arguments: threads. */
public final class Herd {
    static CountDownLatch inside;
    static final CountDownLatch LEAVE = new CountDownLatch(1);

    static void hold(int number) {
        inside.countDown();
        try {
            LEAVE.await();
        } catch (InterruptedException never) {
            throw new IllegalStateException(never);
        }
        step(number);
    }

    static int step(int number) {
        return number + 1;
    }

    public static void main(String[] arguments) throws Exception {
        int threads = Integer.parseInt(arguments[0]);
        inside = new CountDownLatch(threads);
        Method start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        List<Thread> all = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            int number = i;
            all.add((Thread) start.invoke(null, (Runnable) () -> hold(number)));
        }
        inside.await();
        LEAVE.countDown();
        for (Thread thread : all) {
            thread.join();
        }
        System.out.println("done");
    }
}
