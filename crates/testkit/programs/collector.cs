// Collections of every kind, on several threads, with the runtime's own account of them: blocking and background ones,
// with ephemeral ones inside. Speaks as the shared programs do: `pid N`, `runtime V`, `ready`; begins when a line is
// read; then `truth {JSON}` and `done`; ends with its input.
using System;
using System.Diagnostics;
using System.Threading;

static class Program
{
    sealed class Node
    {
        public Node? Next;
        public byte[] Data = new byte[200];
    }

    static int _rounds;
    static volatile bool _stop;

    static void Main(string[] args)
    {
        int rounds = args.Length > 0 ? int.Parse(args[0]) : 30;
        Say("pid " + Process.GetCurrentProcess().Id);
        Say("runtime " + Environment.Version);
        Say("ready");
        Console.In.ReadLine();
        TimeSpan before = GC.GetTotalPauseDuration();
        int collections = GC.CollectionCount(0);
        var threads = new Thread[2];
        for (int i = 0; i < threads.Length; i++)
        {
            threads[i] = new Thread(Allocate) { IsBackground = true };
            threads[i].Start();
        }
        for (int round = 0; round < rounds; round++)
        {
            GC.Collect(2, GCCollectionMode.Optimized, blocking: false);
            Thread.Sleep(20);
            GC.Collect(round % 3, GCCollectionMode.Forced, blocking: true);
        }
        _stop = true;
        foreach (Thread thread in threads) { thread.Join(); }
        GC.Collect();
        TimeSpan pause = GC.GetTotalPauseDuration() - before;
        Say("truth {\"pause_ns\":" + pause.Ticks * 100 + ",\"collections\":" + (GC.CollectionCount(0) - collections) + ",\"rounds\":" + _rounds + "}");
        Say("done");
        Console.In.ReadLine();
    }

    static void Allocate()
    {
        var random = new Random(1);
        var kept = new Node?[2000];
        while (!_stop)
        {
            Node? first = null;
            for (int i = 0; i < 40; i++) { first = new Node { Next = first }; }
            kept[random.Next(kept.Length)] = first;
            Interlocked.Increment(ref _rounds);
        }
    }

    static void Say(string line)
    {
        Console.Out.WriteLine(line);
        Console.Out.Flush();
    }
}
