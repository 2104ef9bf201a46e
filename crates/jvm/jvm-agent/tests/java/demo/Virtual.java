package demo;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;

/**
 * Virtual threads that go from one carrier to another (JDK 21 and later). Arguments: threads, rounds. With a third one, once
 * more after a line of input.
 */
public final class Virtual {
    static int step(int n) throws InterruptedException {
        if (n % 5 == 0) {
            Thread.sleep(1);
        } else {
            Thread.yield();
        }
        return inner(n);
    }

    static int inner(int n) {
        return n + 1;
    }

    static void work(int rounds) {
        try {
            for (int i = 0; i < rounds; i++) {
                step(i);
            }
        } catch (InterruptedException never) {
            throw new IllegalStateException(never);
        }
    }

    public static void main(String[] arguments) throws Exception {
        int threads = Integer.parseInt(arguments[0]);
        int rounds = Integer.parseInt(arguments[1]);
        all(threads, rounds);
        if (arguments.length > 2) {
            System.out.println("once");
            System.in.read();
            all(threads, rounds);
        }
        System.out.println("done");
    }

    static void all(int threads, int rounds) throws Exception {
        Method start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        List<Thread> all = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            all.add((Thread) start.invoke(null, (Runnable) () -> work(rounds)));
        }
        for (Thread thread : all) {
            thread.join();
        }
    }
}
