package demo;

import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.xml.parsers.SAXParserFactory;
import org.xml.sax.Attributes;
import org.xml.sax.helpers.DefaultHandler;

/**
 * Parses XML on several threads, with as many classes of the parser's packages loaded as wanted. Arguments: threads, classes.
 * On standard input: "speed" for the processor time of a document; the end ends it.
 */
public final class Loaded {
    static final String PACKAGES = "/modules/java.xml/com/sun/org/apache";
    static final int DOCUMENTS = 400;
    static volatile boolean over;
    static volatile long sink;

    static byte[] document() {
        StringBuilder text = new StringBuilder("<?xml version='1.0'?><all>");
        for (int i = 0; i < 100; i++) {
            text.append("<one id='").append(i).append("' name='n").append(i % 7).append("'>text &amp; more</one>");
        }
        return text.append("</all>").toString().getBytes(StandardCharsets.UTF_8);
    }

    static long parse(SAXParserFactory factory, byte[] document) {
        long[] count = new long[1];
        try {
            factory.newSAXParser().parse(new ByteArrayInputStream(document), new DefaultHandler() {
                @Override
                public void startElement(String uri, String local, String name, Attributes attributes) {
                    count[0] += attributes.getLength() + 1;
                }
            });
        } catch (Exception failed) {
            throw new IllegalStateException(failed);
        }
        return count[0];
    }

    /** Loads and links; gives the number that could be. */
    static int load(int wanted) throws Exception {
        Path folder = FileSystems.getFileSystem(URI.create("jrt:/")).getPath(PACKAGES);
        List<String> names;
        try (Stream<Path> files = Files.walk(folder)) {
            names = files.map(Path::toString).filter(name -> name.endsWith(".class")).sorted()
                .map(name -> name.substring("/modules/java.xml/".length(), name.length() - ".class".length()))
                .collect(Collectors.toList());
        }
        int loaded = 0;
        for (String name : names) {
            if (loaded == wanted) {
                break;
            }
            try {
                Class.forName(name.replace('/', '.'), false, null).getDeclaredMethods();
                loaded++;
            } catch (LinkageError missing) {
                // A smaller runtime has not everything that it refers to.
            }
        }
        return loaded;
    }

    /**
     * The processor time of a document that a tenth of many attempts stay below: other work on the machine makes it longer, and
     * the clock of a virtual machine is far too short now and then.
     */
    static long speed(SAXParserFactory factory, byte[] document) {
        ThreadMXBean clock = ManagementFactory.getThreadMXBean();
        long[] all = new long[DOCUMENTS];
        for (int i = 0; i < DOCUMENTS; i++) {
            long before = clock.getCurrentThreadCpuTime();
            sink += parse(factory, document);
            all[i] = clock.getCurrentThreadCpuTime() - before;
        }
        Arrays.sort(all);
        return all[DOCUMENTS / 10];
    }

    public static void main(String[] arguments) throws Exception {
        int threads = Integer.parseInt(arguments[0]);
        int loaded = load(Integer.parseInt(arguments[1]));
        byte[] document = document();
        List<Thread> all = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            Thread thread = new Thread(() -> {
                SAXParserFactory factory = SAXParserFactory.newInstance();
                while (!over) {
                    if (parse(factory, document) != 301) {
                        System.out.println("wrong");
                    }
                }
            }, "parser-" + i);
            thread.start();
            all.add(thread);
        }
        SAXParserFactory factory = SAXParserFactory.newInstance();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready " + loaded);
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            System.out.println("speed " + speed(factory, document));
        }
        over = true;
        for (Thread thread : all) {
            thread.join();
        }
        System.out.println("done");
    }
}
