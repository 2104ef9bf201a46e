/** Runs methods with monitors often enough that they are compiled. */
public class Hot {
    private int sum;

    int block(Object lock, int n) {
        int all = n;
        synchronized (lock) {
            all += sum++;
            try {
                if (n % 1000 == 0) throw new IllegalStateException();
                synchronized (this) {
                    all ^= n;
                }
            } catch (IllegalStateException expected) {
                return -1;
            } finally {
                sum--;
            }
        }
        return all;
    }

    synchronized int method(int n) {
        return sum += n;
    }

    public static void main(String[] arguments) {
        Hot hot = new Hot();
        Object lock = new Object();
        int all = 0;
        for (int i = 1; i < 300_000; i++) {
            all += hot.block(lock, i) + hot.method(1);
        }
        System.out.println(all);
    }
}
