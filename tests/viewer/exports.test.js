// Reads the exports for other viewers with readers that are not ours. README.md says how to run this.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import Ajv from 'ajv';
import { executable, launch, open } from './lib/browser.js';
import { run, sources, which, workspace } from './lib/files.js';
import { serve, speedscopeFolder } from './lib/server.js';

const readJson = (path) => JSON.parse(readFileSync(path, 'utf8'));
const schema = new Ajv({ allErrors: true }).compile(readJson(join(speedscopeFolder, 'file-format-schema.json')));
const noBrowser = executable === null && 'no Chromium (set CHROMIUM, or put chromium on PATH)';
const noGo = which('go') === null && 'no go on PATH (Debian: golang-go)';
const noProtoc = which('protoc') === null && 'no protoc on PATH (Debian: protobuf-compiler)';
const PACKAGE = 'perfetto.protos.perfetto.trace.perfetto_trace_pb2';
const hasPackage = spawnSync('python3', ['-c', `import ${PACKAGE}`]).status === 0;
const noPackage = !hasPackage && 'no Python package perfetto (PyPI)';

/** Counts the slices of a trace by the schema of Perfetto's own package, and the fields that it does not know. */
const COUNT_SLICES = `
import json, sys
from google.protobuf.unknown_fields import UnknownFieldSet
from ${PACKAGE} import Trace, TrackEvent

def unknown(message):
    count = len(UnknownFieldSet(message))
    for field, value in message.ListFields():
        if field.message_type:
            count += sum(unknown(m) for m in (value if hasattr(value, "append") else [value]))
    return count

trace = Trace()
trace.ParseFromString(open(sys.argv[1], "rb").read())
threads = [p.track_descriptor.thread.thread_name for p in trace.packet if p.track_descriptor.HasField("thread")]
types = [p.track_event.type for p in trace.packet if p.HasField("track_event")]
print(json.dumps({
    "threads": threads,
    "processes": [p.track_descriptor.process.pid for p in trace.packet if p.track_descriptor.HasField("process")],
    "threadPids": [p.track_descriptor.thread.pid for p in trace.packet if p.track_descriptor.HasField("thread")],
    "begins": types.count(TrackEvent.TYPE_SLICE_BEGIN),
    "ends": types.count(TrackEvent.TYPE_SLICE_END),
    "unknown": unknown(trace),
}))
`;

for (const source of sources()) {
  describe(`${source.name} exports`, { skip: source.skip }, () => {
    let files, server, browser;

    before(async () => {
      files = await source.make();
      const served = {
        evented: '/evented.speedscope.json',
        chrome: '/chrome.json',
        mergedChrome: '/merged.json',
        pprof: '/profile.pb.gz',
        folded: '/profile.folded',
      };
      const pages = Object.fromEntries(Object.entries(served).map(([kind, path]) => [path, files[kind]]));
      server = await serve(pages);
      if (!noBrowser) browser = await launch();
    });
    after(async () => {
      await browser?.close();
      await server?.close();
    });

    const missing = (t, file) => !file && (t.skip('not given'), true);

    /** Opens a file in speedscope's page, waits for the names of its profiles, and looks at it. */
    const openInSpeedscope = async (t, path, names, name) => {
      const { page, complaints } = await open(browser, server.origin, `/#profileURL=${path}`);
      for (const expected of names) await page.getByText(expected, { exact: false }).first().waitFor();
      await page.getByText('Sandwich').click();
      await page.getByText(source.frame ?? '!', { exact: false }).first().waitFor();
      const picture = join(workspace, `${source.name}-${name}.png`);
      await page.screenshot({ path: picture });
      t.diagnostic(`screenshot: ${picture}`);
      assert.deepEqual(complaints, []);
      await page.close();
    };

    test('speedscope, evented: the file follows the schema, and what opens closes', (t) => {
      if (missing(t, files.evented)) return;
      const file = readJson(files.evented);
      assert.ok(schema(file), JSON.stringify(schema.errors, null, 2));
      for (const { type, name, startValue, endValue, events } of file.profiles) {
        assert.equal(type, 'evented');
        const stack = [];
        let last = startValue;
        for (const { type: change, frame, at } of events) {
          assert.ok(at >= last && at <= endValue, `${name}: ${at}`);
          last = at;
          if (change === 'O') stack.push(frame);
          else assert.equal(stack.pop(), frame, name);
        }
        assert.deepEqual(stack, [], name);
      }
    });

    test('speedscope, evented: the page opens it', { skip: noBrowser }, async (t) => {
      if (missing(t, files.evented)) return;
      const { profiles, activeProfileIndex } = readJson(files.evented);
      await openInSpeedscope(t, '/evented.speedscope.json', [profiles[activeProfileIndex].name], 'evented');
    });

    test('chrome: the events follow the rules of the format', (t) => {
      if (missing(t, files.chrome)) return;
      const { traceEvents } = readJson(files.chrome);
      const threads = new Map();
      for (const event of traceEvents) {
        assert.ok(Number.isInteger(event.pid), JSON.stringify(event));
        if (event.ph === 'M') {
          assert.ok(['process_name', 'thread_name', 'thread_sort_index'].includes(event.name));
          continue;
        }
        assert.ok(Number.isInteger(event.tid) && typeof event.ts === 'number' && event.ts >= 0);
        const thread = threads.get(event.tid) ?? { last: 0, stack: [] };
        threads.set(event.tid, thread);
        assert.ok(event.ts >= thread.last, 'the events of a thread are in order');
        thread.last = event.ts;
        assert.ok(['B', 'E'].includes(event.ph), event.ph);
        if (event.ph === 'B') thread.stack.push(event.name);
        else assert.equal(thread.stack.pop(), event.name);
      }
      assert.ok(threads.size > 0);
      for (const { stack } of threads.values()) assert.deepEqual(stack, []);
    });

    test('chrome: speedscope opens it', { skip: noBrowser }, async (t) => {
      if (missing(t, files.chrome)) return;
      const { traceEvents } = readJson(files.chrome);
      const [{ args }] = traceEvents.filter((event) => event.name === 'process_name');
      await openInSpeedscope(t, '/chrome.json', [args.name], 'chrome');
    });

    test('chrome, merged: each process has a number and a name', (t) => {
      if (missing(t, files.mergedChrome)) return;
      const { traceEvents } = readJson(files.mergedChrome);
      const named = traceEvents.filter((event) => event.name === 'process_name').map((event) => event.pid);
      assert.ok(named.length > 1 && new Set(named).size === named.length, named.join());
      const used = new Set(traceEvents.filter((event) => event.ph === 'B').map((event) => event.pid));
      assert.deepEqual([...used].sort(), named.toSorted());
    });

    test('chrome, merged: speedscope lists the threads of each process', { skip: noBrowser }, async (t) => {
      if (missing(t, files.mergedChrome)) return;
      const { traceEvents } = readJson(files.mergedChrome);
      const of = (wanted) => traceEvents.filter((event) => event.name === wanted);
      const nameOf = new Map(of('process_name').map(({ pid, args }) => [pid, args.name]));
      const { page, complaints } = await open(browser, server.origin, '/#profileURL=/merged.json');
      await page.getByText(/\(\d+\/\d+\)/).first().waitFor();
      // The list of all.
      await page.keyboard.press('t');
      await page.getByText('Total Weight').waitFor();
      for (const { pid, args } of of('thread_name')) {
        const shown = `${nameOf.get(pid)} (pid ${pid}), ${args.name}`;
        await page.getByText(shown, { exact: false }).first().waitFor();
      }
      const picture = join(workspace, `${source.name}-merged.png`);
      await page.screenshot({ path: picture });
      t.diagnostic(`screenshot: ${picture}`);
      assert.deepEqual(complaints, []);
      await page.close();
    });

    test('perfetto: its own schema reads it', { skip: noPackage }, (t) => {
      if (missing(t, files.perfetto)) return;
      const { threads, begins, ends, unknown } = JSON.parse(run('python3', ['-c', COUNT_SLICES, files.perfetto]));
      assert.equal(unknown, 0, 'every field is one of the schema');
      assert.ok(threads.length > 0 && threads.every((name) => /^Thread \(\d+\)/.test(name)), threads.join());
      assert.equal(begins, ends);
      const inChrome = files.chrome && readJson(files.chrome).traceEvents.filter((event) => event.ph === 'B').length;
      assert.equal(begins, inChrome ?? begins, 'as many slices as there are in the other format');
    });

    test('perfetto, merged: its own schema finds the threads of each process', { skip: noPackage }, (t) => {
      if (missing(t, files.mergedPerfetto)) return;
      const { processes, threadPids, unknown } = JSON.parse(run('python3', ['-c', COUNT_SLICES, files.mergedPerfetto]));
      assert.equal(unknown, 0, 'every field is one of the schema');
      assert.ok(processes.length > 1 && new Set(processes).size === processes.length, processes.join());
      assert.deepEqual([...new Set(threadPids)].sort(), processes.toSorted());
    });

    test('perfetto: protoc reads it', { skip: noProtoc }, (t) => {
      if (missing(t, files.perfetto)) return;
      const text = run('protoc', ['--decode_raw'], { input: readFileSync(files.perfetto) });
      const count = (pattern) => text.match(pattern)?.length ?? 0;
      assert.ok(count(/^1 \{$/gm) > 2, 'packets');
      assert.equal(count(/^ {4}9: 1$/gm), count(/^ {4}9: 2$/gm), 'as many slices begin as end');
    });

    test('pprof: go tool pprof reads it', { skip: noGo }, (t) => {
      if (missing(t, files.pprof)) return;
      const raw = run('go', ['tool', 'pprof', '-raw', files.pprof], { env: { ...process.env, HOME: workspace } });
      const [number, sum] = source.pprof ?? ['samples', 'cpu'];
      assert.ok(raw.includes(`Samples:\n${number}/count ${sum}/nanoseconds[dflt]\n`), raw.slice(0, 300));
      assert.match(raw, /thread:\[Thread \(\d+\)/);
      const top = run('go', ['tool', 'pprof', '-top', files.pprof], { env: { ...process.env, HOME: workspace } });
      assert.ok(top.includes(`\nType: ${sum}\n`), top.slice(0, 300));
      assert.match(top, source.frame ? /\d+%.*\(/ : /\d+%.*!/);
    });

    test('folded: every line is a stack and its number', (t) => {
      if (missing(t, files.folded)) return;
      const lines = readFileSync(files.folded, 'utf8').trimEnd().split('\n');
      assert.ok(lines.length > 1);
      for (const line of lines) assert.match(line, /^Thread \(\d+\)[^;]*(;[^;]+)+ [1-9]\d*$/);
      if (!files.speedscope) return;
      // The same stacks as in the other format, and as often.
      const { profiles } = readJson(files.speedscope);
      const total = profiles.flatMap((profile) => profile.weights).reduce((a, b) => a + b, 0);
      const sum = lines.map((line) => Number(line.slice(line.lastIndexOf(' ') + 1))).reduce((a, b) => a + b, 0);
      assert.equal(sum, total);
    });

    test('folded: speedscope opens it', { skip: noBrowser }, async (t) => {
      if (missing(t, files.folded)) return;
      await openInSpeedscope(t, '/profile.folded', [], 'folded');
    });

    test('firefox: the tables of each thread fit together', (t) => {
      if (missing(t, files.firefox)) return;
      const { meta, threads } = JSON.parse(gunzipSync(readFileSync(files.firefox)));
      assert.ok(meta.preprocessedProfileVersion > 0 && threads.length > 0);
      for (const { name, samples, stackTable, frameTable, funcTable, stringArray } of threads) {
        assert.match(name, /^Thread \(\d+\)/);
        for (const list of ['stack', 'time', 'weight']) assert.equal(samples[list].length, samples.length, name);
        assert.ok(samples.time.every((time, at) => at === 0 || time >= samples.time[at - 1]), name);
        for (const stack of samples.stack) assert.ok(stack === null || stack < stackTable.length, name);
        stackTable.prefix.forEach((prefix, at) => assert.ok(prefix === null || prefix < at, name));
        for (const frame of stackTable.frame) assert.ok(frame < frameTable.length, name);
        for (const func of frameTable.func) assert.ok(func < funcTable.length, name);
        assert.ok(funcTable.name.every((text) => typeof stringArray[text] === 'string'), name);
      }
    });

    test('pprof: speedscope opens it', { skip: noBrowser }, async (t) => {
      if (missing(t, files.pprof)) return;
      await openInSpeedscope(t, '/profile.pb.gz', [], 'pprof');
    });
  });
}
