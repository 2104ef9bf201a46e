import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;

/** Types with annotations wherever code can have them, and variables that begin and end in the middle of methods. */
public final class Annotated {
    @Retention(RetentionPolicy.RUNTIME)
    @Target({ElementType.TYPE_USE})
    @interface Seen {
        int value() default 0;
    }

    @Retention(RetentionPolicy.CLASS)
    @Target({ElementType.TYPE_USE})
    @interface Hidden {
    }

    private final @Seen(1) Object held;

    Annotated(Object held) {
        this.held = (@Seen(2) Object) held;
    }

    static <T> T same(T value) {
        return value;
    }

    int all(Object given, int count) throws IOException {
        if (count < 0) {
            return -1;
        }
        @Seen(3) List<@Hidden String> list = new @Seen(4) ArrayList<@Seen(5) String>();
        for (int i = 0; i < count; i++) {
            @Seen(6) String text = (@Seen(7) @Hidden String) given;
            list.add(text);
            if (given instanceof @Seen(8) Integer) {
                return i;
            }
        }
        @Seen(9) int[] @Seen(10) [] table = new @Seen(11) int @Seen(12) [count][];
        Supplier<Object> supplier = @Seen(13) Object::new;
        String made = Annotated.<@Seen(14) String>same(supplier.get().toString());
        try (@Seen(15) InputStream in = new ByteArrayInputStream(new byte[count])) {
            long read = in.read();
            return (int) read + table.length + made.length();
        } catch (@Seen(16) IllegalStateException wrong) {
            double late = wrong.hashCode();
            return (int) late;
        }
    }

    public static void main(String[] arguments) throws IOException {
        System.out.println(new Annotated("x").all("text", 3));
    }
}
