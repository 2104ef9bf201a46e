// A small program for runtimes that the shared folder's programs are too new for: .NET Core 3.1. Compiled by mono-mcs
// (C# 7), so it uses what Mono's class library has. Speaks as the shared programs do: `pid N`, `runtime V`, `ready`;
// then each line of input is a round of one event of each kind, answered with `truth {JSON}` and `done`. Ends with its input.
// Says `enabled` when a session has switched its events on: .NET Core 3.1 does that after its reply to the client.
using System;
using System.Diagnostics;
using System.Diagnostics.Tracing;

[EventSource(Name = "Runtap-Small")]
sealed class Source : EventSource
{
    public static readonly Source Log = new Source();

    protected override void OnEventCommand(EventCommandEventArgs command)
    {
        if (command.Command == EventCommand.Enable) { Program.Say("enabled"); }
    }

    [Event(1, Level = EventLevel.Informational)] public void One(int n) { WriteEvent(1, n); }
    [Event(2, Level = EventLevel.Informational)] public void Two(int n, string text) { WriteEvent(2, n, text); }
    [Event(3, Level = EventLevel.Informational)] public void Three(long n) { WriteEvent(3, n); }
}

static class Program
{
    static void Main()
    {
        Say("pid " + Process.GetCurrentProcess().Id);
        Say("runtime " + Environment.Version);
        Source source = Source.Log;
        Say("ready");
        for (int round = 1; Console.In.ReadLine() != null; round++)
        {
            source.One(round);
            source.Two(round, "round " + round);
            source.Three(round);
            Say("truth {\"rounds\":" + round + "}");
            Say("done");
        }
    }

    internal static void Say(string line)
    {
        Console.Out.WriteLine(line);
        Console.Out.Flush();
    }
}
