// Events of sizes around 64 KiB, above which runtimes drop them whatever the buffer. Speaks as the shared programs do:
// `pid N`, `runtime V`, `ready`; begins when a line is read; then `truth {JSON}` and `done`; ends with its input.
using System;
using System.Diagnostics;
using System.Diagnostics.Tracing;

[EventSource(Name = "Runtap-Sizes")]
sealed class Sizes : EventSource
{
    public static readonly Sizes Log = new Sizes();

    [Event(1)]
    public void Text(int n, string text) => WriteEvent(1, n, text);
}

static class Program
{
    static void Main()
    {
        Say("pid " + Process.GetCurrentProcess().Id);
        Say("runtime " + Environment.Version);
        Say("ready");
        Console.In.ReadLine();
        int fitting = 0, tooLarge = 0;
        for (int n = 32_640; n <= 32_800; n += 10)
        {
            Sizes.Log.Text(n, new string('x', n));
            // The number, the characters, and the zero behind them.
            if (4 + 2 * (n + 1) < 65_536) { fitting++; } else { tooLarge++; }
        }
        // A last one, by which the gap before it is seen.
        Sizes.Log.Text(0, "");
        fitting++;
        Say("truth {\"fitting\":" + fitting + ",\"too_large\":" + tooLarge + "}");
        Say("done");
        Console.In.ReadLine();
    }

    static void Say(string line)
    {
        Console.Out.WriteLine(line);
        Console.Out.Flush();
    }
}
