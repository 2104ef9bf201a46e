import org.apache.lucene.analysis.standard.StandardAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.IntPoint;
import org.apache.lucene.document.NumericDocValuesField;
import org.apache.lucene.document.StringField;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.SerialMergeScheduler;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.FuzzyQuery;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.PhraseQuery;
import org.apache.lucene.search.PrefixQuery;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.Sort;
import org.apache.lucene.search.SortField;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.store.ByteBuffersDirectory;
import org.apache.lucene.store.Directory;

/** Indexes 400 documents in several segments, deletes, merges, and searches in most ways that Lucene has. */
public class Search {
    public static void main(String[] arguments) throws Exception {
        Directory directory = new ByteBuffersDirectory();
        IndexWriterConfig config = new IndexWriterConfig(new StandardAnalyzer()).setMaxBufferedDocs(50);
        // In other threads, merges would depend on the time.
        config.setMergeScheduler(new SerialMergeScheduler());
        try (IndexWriter writer = new IndexWriter(directory, config)) {
            for (int n = 0; n < 400; n++) {
                Document document = new Document();
                document.add(new StringField("id", "" + n, Field.Store.YES));
                document.add(new TextField("words", "every word " + n % 7 + " is found again " + n * 31 % 101, Field.Store.NO));
                document.add(new NumericDocValuesField("order", n));
                document.add(new IntPoint("number", n));
                writer.addDocument(document);
                if (n % 100 == 99) writer.commit();
            }
            writer.deleteDocuments(new Term("id", "7"));
            writer.forceMerge(1);
        }
        Query[] queries = {
            new TermQuery(new Term("words", "found")),
            IntPoint.newRangeQuery("number", 10, 20),
            new PhraseQuery("words", "every", "word"),
            new PrefixQuery(new Term("words", "ag")),
            new FuzzyQuery(new Term("words", "fund")),
        };
        try (DirectoryReader reader = DirectoryReader.open(directory)) {
            IndexSearcher searcher = new IndexSearcher(reader);
            for (Query query : queries) {
                System.out.println(searcher.search(query, 10).totalHits);
                System.out.println(searcher.search(query, 10, new Sort(new SortField("order", SortField.Type.LONG))).totalHits);
            }
            try {
                searcher.search(queries[0], 0);
            } catch (IllegalArgumentException told) {
                System.out.println(told.getMessage());
            }
        }
    }
}
