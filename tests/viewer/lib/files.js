// The files to look at: those that the environment names, else those of the sample recording and, if the release
// binary is there, those of a recording of its own demo target. Opens no browser.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';

const root = resolve(import.meta.dirname, '../../..');

/** Where this run keeps what it makes: the files if it made them, and the screenshots. */
export const workspace = process.env.RUNTAP_VIEW_SHOTS ?? mkdtempSync(join(tmpdir(), 'runtap-viewer-'));

/** Where cargo puts what it builds. */
export const target = process.env.CARGO_TARGET_DIR ?? join(root, 'target');

/** The program that is tried. */
export const binary = process.env.RUNTAP_BIN ?? join(target, 'release/runtap');

/** The folder with recordings and test applications, if there is one. */
export const shared = process.env.RUNTAP_SHARED;

/** The path of a program on PATH, or null. */
export function which(name) {
  const folders = (process.env.PATH ?? '').split(delimiter).filter(Boolean);
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path)) ?? null;
}

/** A recording of an original Java agent, or null. */
export function jvmRecording(scenario) {
  const recording = shared && join(shared, 'data/bytefrog', scenario);
  return recording && existsSync(`${recording}.ctl.a2h.bin`) ? recording : null;
}

/** The kinds of files, each with its extension and with the variable of the environment that names one. */
const KINDS = {
  speedscope: ['.speedscope.json', 'RUNTAP_VIEW_SPEEDSCOPE'],
  evented: ['.evented.speedscope.json', 'RUNTAP_VIEW_EVENTED'],
  svg: ['.svg', 'RUNTAP_VIEW_SVG'],
  chrome: ['.chromium.json', 'RUNTAP_VIEW_CHROME'],
  perfetto: ['.perfetto-trace', 'RUNTAP_VIEW_PERFETTO'],
  pprof: ['.pb.gz', 'RUNTAP_VIEW_PPROF'],
  folded: ['.folded', 'RUNTAP_VIEW_FOLDED'],
  firefox: ['.firefox.json.gz', 'RUNTAP_VIEW_FIREFOX'],
  mergedChrome: ['.merged.chromium.json', 'RUNTAP_VIEW_MERGED_CHROME'],
  mergedPerfetto: ['.merged.perfetto-trace', 'RUNTAP_VIEW_MERGED_PERFETTO'],
};

/** What `path` gives for each kind. */
const each = (path) => Object.fromEntries(Object.entries(KINDS).map(([kind, details]) => [kind, path(...details)]));

/**
 * Each source has a `name`, and either `make`, which returns the path of a file of each kind, or `skip`, the reason
 * why there are none. A file that is not named in the environment is null.
 */
export function sources() {
  const given = each((_, variable) => process.env[variable] && resolve(process.env[variable]));
  if (Object.values(given).some(Boolean)) return [{ name: 'given', make: async () => given }];
  return [
    which('cargo') ? { name: 'sample', make: sample } : { name: 'sample', skip: 'no cargo on PATH' },
    existsSync(binary)
      ? { name: 'demo', make: () => demo(binary) }
      : { name: 'demo', skip: 'no target/release/runtap (cargo build --release -p runtap)' },
    // Frames of Java have no modules, and what is added up is time that was measured, or calls.
    { name: 'jvm', frame: 'demo.Counts', unit: 'none', pprof: ['events', 'time'], ...jvm() },
  ];
}

/** The recording that examples/sample_files of runtap-sinks makes up. */
async function sample() {
  const folder = join(workspace, 'sample');
  run('cargo', ['run', '-q', '-p', 'runtap-sinks', '--example', 'sample_files', '--', folder]);
  const made = each((extension) => join(folder, `sample${extension}`));
  return { ...made, folded: null, firefox: null };
}

const DEMO = 'speedscope,flamegraph,chrome,perfetto,pprof';

/** A recording of `runtap demo serve` by `runtap trace`. */
async function demo(binary) {
  const target = spawn(binary, ['demo', 'serve', '--seconds', '60'], { stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    const pid = await readyPid(target);
    const output = join(workspace, 'demo.nettrace');
    run(binary, ['trace', '-p', pid, '--duration', '2s', '--to', `nettrace,${DEMO}`, '-o', output]);
    const evented = join(workspace, 'demo.evented.speedscope.json');
    run(binary, ['convert', output, '--to', 'speedscope', '--evented', '-o', evented]);
    const made = each((extension) => join(workspace, `demo${extension}`));
    // It is one process.
    return { ...made, folded: null, firefox: null, mergedChrome: null, mergedPerfetto: null };
  } finally {
    target.kill();
    if (target.exitCode === null && target.signalCode === null) await once(target, 'exit');
  }
}

/** A trace of a Java program, from a recording of its agent. */
function jvm() {
  const recording = jvmRecording('v1_basic');
  if (!recording) return { skip: 'no recordings (RUNTAP_SHARED)' };
  if (!existsSync(binary)) return { skip: `no ${binary}` };
  const make = async () => {
    const formats = {
      evented: ['speedscope', 'time'],
      chrome: ['chrome', 'time'],
      perfetto: ['perfetto', 'time'],
      pprof: ['pprof', 'time'],
      firefox: ['firefox', 'time'],
      speedscope: ['speedscope', 'calls'],
      svg: ['flamegraph', 'calls'],
      folded: ['folded', 'calls'],
    };
    return each((extension, variable) => {
      const kind = Object.keys(KINDS).find((name) => KINDS[name][1] === variable);
      if (!formats[kind]) return null;
      const [format, view] = formats[kind];
      const path = join(workspace, `jvm${extension}`);
      run(binary, ['jvm', 'report', recording, '--to', format, '--view', view, '-o', path]);
      return path;
    });
  };
  return { make };
}

/** The number that the demo target prints as `pid N`, once it has said `ready`. */
async function readyPid(target) {
  let pid = null;
  for await (const line of createInterface({ input: target.stdout })) {
    const [word, value] = line.split(' ');
    if (word === 'pid') pid = value;
    if (word === 'ready' && pid) return pid;
  }
  throw new Error('the demo target ended before it was ready');
}

/** Runs a program to its end and returns what it printed; throws if it failed. */
export function run(program, args, options = {}) {
  const settings = { cwd: root, encoding: 'utf8', maxBuffer: 1 << 30, ...options };
  const { status, signal, error, stdout, stderr } = spawnSync(program, args, settings);
  if (status !== 0) {
    throw new Error(`${program} ${args.join(' ')}: ${error ?? signal ?? `exit ${status}`}\n${stderr ?? ''}`);
  }
  return stdout;
}
