// Async methods that wait for ever in known ways: each static field keeps one chain alive. Speaks as the shared programs do:
// `pid N`, `runtime V`, `ready`; ends with its input. The argument is the number of equal chains (`Many`).
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Net;
using System.Net.Sockets;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Channels;
using System.Threading.Tasks;

// Equal chains of three methods, which wait for one task of a TaskCompletionSource each.
static class Many
{
    public static async Task OuterAsync(object state) { string kept = "kept"; await MiddleAsync(state); GC.KeepAlive(kept); }
    static async Task<int> MiddleAsync(object state) { await Task.Yield(); return await InnerAsync(state).ConfigureAwait(false); }
    static async Task<int> InnerAsync(object state) { var source = new TaskCompletionSource<int>(); Program.Keep(source); return await source.Task; }
}

// What can be awaited.
static class Leaves
{
    public static async Task DelayAsync() { await Task.Delay(3_600_000); }
    public static async Task SemaphoreAsync(SemaphoreSlim none) { await none.WaitAsync(); }
    public static async Task ChannelAsync(ChannelReader<int> reader) { await foreach (int n in reader.ReadAllAsync()) GC.KeepAlive(n); }
    public static async Task TimerAsync(PeriodicTimer timer) { while (await timer.WaitForNextTickAsync()) { } }
    public static async Task SocketAsync(Socket listener) { using Socket accepted = await listener.AcceptAsync(); }
    // Runs on a thread of the pool, and waits for nothing.
    public static async Task RunningAsync() { await Task.Yield(); Thread.Sleep(Timeout.Infinite); }
    public static async void VoidAsync(SemaphoreSlim none) { await SemaphoreAsync(none); }
    public static async ValueTask ValueAsync(ValueTask<int> of) { await of; }
    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    public static async ValueTask<int> PooledAsync() { await Task.Delay(3_600_000); return 1; }
    public static async Task OverPooledAsync() { await PooledAsync(); }
    public static async Task<int> DoneAsync() { await Task.Yield(); return 7; }
}

static class Several
{
    public static async Task AllAsync() { Task first = Leaves.DelayAsync(), second = TwiceAsync(Program.Never.Task); await Task.WhenAll(first, second); GC.KeepAlive(first); }
    public static async Task AnyAsync() { Task first = Leaves.DelayAsync(), second = TwiceAsync(Program.Never.Task); await Task.WhenAny(first, second); GC.KeepAlive(second); }
    public static async Task TwiceAsync(Task of) { await of; }
    // Two methods await one task of an async method, and a third method only keeps it in a variable.
    public static async Task FirstAsync(Task shared) { await shared; }
    public static async Task SecondAsync(Task shared) { await shared; }
    public static async Task KeeperAsync(Task shared) { await Program.Never.Task; GC.KeepAlive(shared); }
    public static async Task TimedAsync(Task of) { await of.WaitAsync(TimeSpan.FromHours(1)); }
    // Waits for itself.
    public static Task circle = Task.CompletedTask;
    public static async Task CircleAsync() { await Task.Yield(); Thread.Sleep(50); await CircleInnerAsync(); }
    static async Task CircleInnerAsync() { await Task.Yield(); await circle; }
    public static async Task UnwrapAsync() { await Task.Run(async () => { await Program.Never.Task; }); }
}

class Generic<T>
{
    public async Task<T> RunAsync<U>(U value) { await Program.Never.Task; GC.KeepAlive(value); return default!; }
}

sealed class Posting : SynchronizationContext { }

static class Program
{
    public static readonly TaskCompletionSource<int> Never = new();
    static readonly List<object> kept = new();

    public static void Keep(object it) { lock (kept) kept.Add(it); }

    static void Main(string[] args)
    {
        Console.WriteLine("pid " + Process.GetCurrentProcess().Id);
        Console.WriteLine("runtime " + Environment.Version);
        int many = args.Length > 0 ? int.Parse(args[0]) : 10;
        for (int n = 0; n < many; n++) Keep(Many.OuterAsync("state"));
        Keep(Leaves.DelayAsync());
        var none = new SemaphoreSlim(0);
        Keep(none);
        Keep(Leaves.SemaphoreAsync(none));
        Leaves.VoidAsync(none);
        var channel = Channel.CreateUnbounded<int>();
        Keep(channel);
        Keep(Leaves.ChannelAsync(channel.Reader));
        Keep(Leaves.OverPooledAsync());
        Keep(Leaves.ValueAsync(new ValueTask<int>(Never.Task)).AsTask());
        var timer = new PeriodicTimer(TimeSpan.FromHours(1));
        Keep(timer);
        Keep(Leaves.TimerAsync(timer));
        var listener = new Socket(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        listener.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        listener.Listen();
        Keep(listener);
        Keep(Leaves.SocketAsync(listener));
        Keep(Leaves.RunningAsync());
        Several.circle = Several.CircleAsync();
        Task<int> done = Leaves.DoneAsync();
        done.Wait();
        Keep(done);
        Keep(Several.AllAsync());
        Keep(Several.AnyAsync());
        Task shared = Several.TwiceAsync(Never.Task);
        Keep(Several.FirstAsync(shared));
        Keep(Several.SecondAsync(shared));
        Keep(Several.KeeperAsync(shared));
        Keep(Several.TimedAsync(Several.TwiceAsync(Never.Task)));
        Keep(Several.UnwrapAsync());
        Keep(new Generic<string>().RunAsync(5));
        SynchronizationContext.SetSynchronizationContext(new Posting());
        Keep(PostedAsync());
        SynchronizationContext.SetSynchronizationContext(null);
        async Task LocalAsync(Task of) { await of; }
        Keep(LocalAsync(Never.Task));
        Func<Task> lambda = async () => await LocalAsync(Never.Task);
        Keep(lambda());
        Keep(Ended().ContinueWith(task => 1));
        Thread.Sleep(300);
        Console.WriteLine("ready");
        Console.Out.Flush();
        while (Console.In.ReadLine() != null) { }
    }

    static async Task PostedAsync() { await PostedInnerAsync(); }
    static async Task PostedInnerAsync() { await Never.Task; }
    static async Task Ended() { await Never.Task; }
}
