package demo;

/**
 * Does what it is told, line by line: {@code run N} has a new thread make N calls, {@code mark} makes one, {@code hold} has a
 * new thread make one that lasts until {@code free}.
 */
public final class Turns {
    static int leaf(int n) {
        return n * 31 + 7;
    }

    static int outer(int calls) {
        int sum = 0;
        for (int i = 0; i < calls; i++) {
            sum = leaf(sum);
        }
        return sum;
    }

    static void mark() {
    }

    static void held(java.util.concurrent.CountDownLatch held, java.util.concurrent.CountDownLatch freed) {
        held.countDown();
        try {
            freed.await();
        } catch (InterruptedException never) {
            throw new IllegalStateException(never);
        }
    }

    public static void main(String[] arguments) throws Exception {
        var held = new java.util.concurrent.CountDownLatch(1);
        var freed = new java.util.concurrent.CountDownLatch(1);
        Thread holder = new Thread(() -> held(held, freed));
        var lines = new java.io.BufferedReader(new java.io.InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            if (line.equals("mark")) {
                mark();
            } else if (line.equals("hold")) {
                holder.start();
                held.await();
            } else if (line.equals("free")) {
                freed.countDown();
                holder.join();
            } else {
                int calls = Integer.parseInt(line.substring("run ".length()));
                Thread thread = new Thread(() -> outer(calls));
                thread.start();
                thread.join();
            }
            System.out.println("did " + line);
        }
    }
}
