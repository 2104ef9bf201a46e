package demo;

import java.lang.reflect.Method;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** Virtual threads (JDK 21 and later) that are in calls until a byte of input comes. */
public final class Parked {
    static final CountDownLatch begun = new CountDownLatch(3);
    static final CountDownLatch end = new CountDownLatch(1);

    /** Is in a thread of its own. */
    static void waits() throws InterruptedException {
        begun.countDown();
        end.await();
    }

    /** Is in a thread of an executor. */
    static String waits(String text) throws InterruptedException {
        begun.countDown();
        end.await();
        return text;
    }

    /** Is in a thread that goes on. */
    static void works() throws InterruptedException {
        begun.countDown();
        do {
            step();
        } while (end.getCount() > 0);
    }

    static void step() throws InterruptedException {
        Thread.sleep(1);
    }

    static void never() {
    }

    interface Work {
        void run() throws Exception;
    }

    static Runnable checked(Work work) {
        return () -> {
            try {
                work.run();
            } catch (Exception never) {
                throw new IllegalStateException(never);
            }
        };
    }

    public static void main(String[] arguments) throws Exception {
        Method start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        start.invoke(null, checked(Parked::waits));
        start.invoke(null, checked(Parked::works));
        ExecutorService executor = (ExecutorService) Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
        executor.execute(checked(() -> waits("text")));
        begun.await();
        System.out.println("ready");
        System.in.read();
        end.countDown();
        executor.shutdown();
        System.out.println("done");
    }
}
