import java.io.File;
import java.io.IOException;
import org.jacoco.core.analysis.Analyzer;
import org.jacoco.core.analysis.CoverageBuilder;
import org.jacoco.core.analysis.ICounter;
import org.jacoco.core.analysis.ISourceFileCoverage;
import org.jacoco.core.tools.ExecFileLoader;

/** Prints what JaCoCo tells of each line of some jars after a run: its file, its number, and 1 if it ran, else 0. */
public class Told {
    /** Passes over classes that JaCoCo 0.8.6 can't read: sealed ones. Its agent leaves them alone, too. */
    private static void analyze(Analyzer analyzer, File place) throws IOException {
        File[] inside = place.listFiles();
        if (inside != null) {
            for (File file : inside) analyze(analyzer, file);
            return;
        }
        try {
            analyzer.analyzeAll(place);
        } catch (IOException refused) {
            if (!(refused.getCause() instanceof UnsupportedOperationException)) throw refused;
        }
    }

    public static void main(String[] arguments) throws IOException {
        ExecFileLoader run = new ExecFileLoader();
        run.load(new File(arguments[0]));
        CoverageBuilder all = new CoverageBuilder();
        Analyzer analyzer = new Analyzer(run.getExecutionDataStore(), all);
        for (int at = 1; at < arguments.length; at++) analyze(analyzer, new File(arguments[at]));
        StringBuilder told = new StringBuilder();
        for (ISourceFileCoverage file : all.getSourceFiles()) {
            for (int line = file.getFirstLine(); line <= file.getLastLine(); line++) {
                int status = file.getLine(line).getStatus();
                if (status == ICounter.EMPTY) continue;
                told.append(file.getPackageName()).append('/').append(file.getName()).append(' ').append(line);
                told.append(status == ICounter.NOT_COVERED ? " 0\n" : " 1\n");
            }
        }
        System.out.print(told);
    }
}
