import java.lang.reflect.Method;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/** Threads that are stuck in known ways. Arguments: the numbers of idle and virtual threads; a third one leaves out odd names. */
public class Stuck {
    static final Object FIRST = new Object(), SECOND = new Object(), NOTIFY = new Object(), HELD = new Object();
    static final ReentrantLock LEFT = new ReentrantLock(), RIGHT = new ReentrantLock(), OWNED = new ReentrantLock();
    static volatile long sum;

    interface Work { void run() throws Exception; }

    static void start(String name, boolean daemon, Work work) {
        Thread thread = new Thread(() -> {
            try { work.run(); } catch (Exception e) { throw new IllegalStateException(e); }
        }, name);
        thread.setDaemon(daemon);
        thread.start();
    }

    static void takeFirstThenSecond(CyclicBarrier both) throws Exception {
        synchronized (FIRST) { both.await(); enter(SECOND); }
    }

    static void takeSecondThenFirst(CyclicBarrier both) throws Exception {
        synchronized (SECOND) { both.await(); enter(FIRST); }
    }

    static void enter(Object lock) { synchronized (lock) { sum++; } }

    static void lockBoth(ReentrantLock one, ReentrantLock other, CyclicBarrier both) throws Exception {
        one.lock();
        both.await();
        other.lock();
    }

    static void down(int depth) throws Exception { if (depth == 0) Thread.sleep(1_000_000); else down(depth - 1); }

    public static void main(String[] words) throws Exception {
        int idle = words.length > 0 ? Integer.parseInt(words[0]) : 0;
        int virtual = words.length > 1 ? Integer.parseInt(words[1]) : 0;
        CyclicBarrier monitors = new CyclicBarrier(2), locks = new CyclicBarrier(2);
        start("monitor-1", true, () -> takeFirstThenSecond(monitors));
        start("monitor-2", true, () -> takeSecondThenFirst(monitors));
        start("lock-1", true, () -> lockBoth(LEFT, RIGHT, locks));
        start("lock-2", true, () -> lockBoth(RIGHT, LEFT, locks));
        CountDownLatch held = new CountDownLatch(2);
        start("holder", true, () -> { synchronized (HELD) { held.countDown(); Thread.sleep(1_000_000); } });
        start("owner", true, () -> { OWNED.lock(); held.countDown(); LockSupport.park(); });
        held.await();
        start("blocked", true, () -> enter(HELD));
        start("parked", true, OWNED::lock);
        start("waiting", true, () -> { synchronized (NOTIFY) { NOTIFY.wait(); } });
        start("deep", true, () -> down(50));
        start("spinning", true, () -> { while (true) sum++; });
        start("\"quoted\" #7 daemon prio=5 os_prio=0 cpu=1.00ms elapsed=1.00s tid=0x1 nid=0x2 runnable  [0x0]", true, () -> Thread.sleep(1_000_000));
        if (words.length < 3) start("lines\n   java.lang.Thread.State: RUNNABLE\n\tat fake.Frame.run(Fake.java:1)\n\n\"fake\" #99 prio=5 os_prio=0 tid=0x1 nid=0x3 runnable  [0x0]\n", true, () -> Thread.sleep(1_000_000));
        if (words.length < 3) start("escape \u001b[31m\u202e\u00e9\ud83d\ude00 \t\\", true, () -> Thread.sleep(1_000_000));
        start("", true, () -> Thread.sleep(1_000_000));
        for (int index = 0; index < idle; index++) start("idle-" + index, true, () -> Thread.sleep(1_000_000));
        if (virtual > 0) {
            Method startVirtual = Thread.class.getMethod("startVirtualThread", Runnable.class);
            CountDownLatch started = new CountDownLatch(virtual);
            for (int index = 0; index < virtual; index++) {
                startVirtual.invoke(null, (Runnable) () -> { started.countDown(); LockSupport.park(); });
            }
            started.await();
        }
        Thread.sleep(300);
        System.out.println("pid " + ProcessHandle.current().pid());
        System.out.println("stuck");
        Thread.sleep(1_000_000);
    }
}
