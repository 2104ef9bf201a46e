package later;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;

/** What class files got after Java 8: nests, records, sealed classes, concatenation and switches by invokedynamic. */
public final class Newest {
    @Target(ElementType.TYPE_USE)
    @Retention(RetentionPolicy.RUNTIME)
    @interface Checked {
    }

    sealed interface Shape permits Circle, Square, Many {
        private double twice(double x) {
            return 2 * x;
        }

        default double size() {
            return twice(1);
        }
    }

    record Circle(@Checked double radius) implements Shape {
        Circle {
            if (radius < 0) {
                throw new IllegalArgumentException("radius " + radius);
            }
        }
    }

    record Square(double side, String name) implements Shape {
        static int made;

        Square(double side) {
            this(side, "square " + side + made++);
        }

        @Override
        public double size() {
            return side * side;
        }
    }

    static final class Many implements Shape {
        private final List<@Checked Shape> shapes = new ArrayList<>();

        private final class Walk {
            private int at;

            private Shape next() {
                return at < shapes.size() ? shapes.get(at++) : null;
            }
        }

        /** What it calls before it is an object may fail. */
        static final class Named extends Exception {
            Named(Shape shape) {
                super(shape.toString());
            }
        }

        @Override
        public double size() {
            Walk walk = new Walk();
            double sum = 0;
            for (Shape one = walk.next(); one != null; one = walk.next()) {
                sum += one.size();
            }
            return sum;
        }
    }

    enum Level {
        LOW {
            @Override
            int value() {
                return 1;
            }
        },
        HIGH;

        int value() {
            return 2;
        }
    }

    static String told(Shape shape, Level level) {
        String kind = shape instanceof Square square && square.side() > 2 ? "large" : "other";
        return switch (level) {
            case LOW -> kind + level.value();
            case HIGH -> {
                Supplier<String> later = () -> kind + shape.size();
                yield later.get();
            }
        };
    }

    static int failing() {
        int failed = 0;
        for (int i = -2; i < 2; i++) {
            try {
                new Circle(i);
                throw new Many.Named(i > 0 ? new Circle(i) : null);
            } catch (IllegalArgumentException | NullPointerException error) {
                failed++;
            } catch (Many.Named error) {
                failed += 10;
            }
        }
        return failed;
    }

    public static void main(String[] arguments) {
        Many many = new Many();
        for (int i = 0; i < 5; i++) {
            many.shapes.add(i % 2 == 0 ? new Circle(i) : new Square(i));
        }
        for (Shape shape : many.shapes) {
            System.out.println(shape + " " + shape.hashCode() + told(shape, Level.LOW) + told(shape, Level.HIGH));
        }
        System.out.println(many.size() + " " + many.shapes.contains(new Circle(4)) + " " + failing());
    }
}
