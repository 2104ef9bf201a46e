import java.lang.management.ManagementFactory;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;

/** Objects whose number and sizes a test knows. */
class KnownHeap {
    static class Node {
        Node next;
        int number;
        long payload;
    }

    static class Wide extends Node {
        byte small;
        double big;
        Object extra;
    }

    static class Holder {
        Node[] nodes = new Node[1000];
        List<String> texts = new ArrayList<>();
        WeakReference<Object> weak;
        WeakReference<Object> cleared = new WeakReference<>(null);
    }

    static final Holder HOLDER = new Holder();

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < HOLDER.nodes.length; i++) {
            HOLDER.nodes[i] = i % 10 == 0 ? new Wide() : new Node();
            HOLDER.nodes[i].next = i > 0 && i % 10 != 0 ? HOLDER.nodes[i - 1] : null;
        }
        for (int i = 0; i < 50; i++) {
            HOLDER.texts.add(new String("a repeated text".toCharArray()));
            HOLDER.texts.add(new String("zwölf × 中".toCharArray()));
        }
        HOLDER.weak = new WeakReference<>(HOLDER.nodes[7]);
        System.out.println("pid " + ManagementFactory.getRuntimeMXBean().getPid());
        System.out.println("ready");
        System.in.read();
    }
}
